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
