//! A bounded queue from one producer to one consumer.

use crate::bell::Bell;
use crate::consumer::Consumer;
use crate::producer::Producer;
use crate::shared::Shared;
use crate::sync::Arc;

/// Makes a ring that holds up to `capacity` elements, exactly.
///
/// `producer_bell` is the bell of whoever pushes: popping rings it.
/// `consumer_bell` is the bell of whoever pops: pushing rings it. Each may be
/// shared with other rings of the same owner.
///
/// # Panics
///
/// If `capacity` is 0, or so large that its slots don't fit into memory.
pub fn ring<T>(
    capacity: usize,
    producer_bell: Bell,
    consumer_bell: Bell,
) -> (Producer<T>, Consumer<T>) {
    let shared = Arc::new(Shared::new(capacity));
    let producer = Producer::new(shared.clone(), producer_bell.clone(), consumer_bell.clone());
    let consumer = Consumer::new(shared, producer_bell, consumer_bell);
    (producer, consumer)
}

/// The halves move between threads but are not shared by them. If one were
/// Sync, or not Send, this would not compile.
const _: () = {
    trait SyncIsAmbiguous<Choice> {
        fn choose() {}
    }
    struct Sync_;
    impl<H> SyncIsAmbiguous<()> for H {}
    impl<H: Sync> SyncIsAmbiguous<Sync_> for H {}
    let _ = <Producer<u64> as SyncIsAmbiguous<_>>::choose;
    let _ = <Consumer<u64> as SyncIsAmbiguous<_>>::choose;

    const fn is_send<H: Send>() {}
    is_send::<Producer<u64>>();
    is_send::<Consumer<u64>>();
    is_send::<Bell>();
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::{PopError, PushError};

    fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
        ring(capacity, Bell::thread(), Bell::thread())
    }

    #[test]
    fn elements_come_out_in_the_order_they_went_in() {
        let (mut producer, mut consumer) = pair(3);
        for round in 0..10 {
            for element in 0..3 {
                producer.try_push(3 * round + element).unwrap();
            }
            assert_eq!((producer.len(), consumer.len()), (3, 3));
            for element in 0..3 {
                assert_eq!(consumer.try_pop(), Ok(3 * round + element));
            }
        }
        assert_eq!((producer.position(), consumer.position()), (30, 30));
    }

    #[test]
    fn a_rejected_element_comes_back_and_the_capacity_is_exact() {
        for capacity in [1, 2, 3, 5, 8, 1000] {
            let (mut producer, mut consumer) = pair(capacity);
            for element in 0..capacity {
                producer.try_push(element).unwrap();
            }
            assert_eq!(producer.try_push(77), Err(PushError::Full(77)));
            assert_eq!(producer.slots(), 0);
            assert_eq!(consumer.try_pop(), Ok(0));
            assert_eq!(producer.try_push(77), Ok(()));
            assert_eq!(producer.try_push(78), Err(PushError::Full(78)));
        }
    }
    #[test]
    fn finish_drains_and_then_ends() {
        let (mut producer, mut consumer) = pair(4);
        producer.try_push(1).unwrap();
        producer.try_push(2).unwrap();
        producer.finish();
        assert_eq!(consumer.try_pop(), Ok(1));
        assert_eq!(consumer.try_pop(), Ok(2));
        assert_eq!(consumer.try_pop(), Err(PopError::Finished));
    }
}
