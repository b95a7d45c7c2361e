//! What a ring promises to its two halves, one promise a test.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ringway_shm::{Bell, Consumer, PopError, Producer, PushError, ring};

fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring(capacity, Bell::thread(), Bell::thread())
}

/// Three queued clones, and the original that counts them.
fn three_queued() -> (Arc<()>, Producer<Arc<()>>, Consumer<Arc<()>>) {
    let counted = Arc::new(());
    let (mut producer, consumer) = pair(4);
    for _ in 0..3 {
        producer.try_push(counted.clone()).unwrap();
    }
    (counted, producer, consumer)
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
        assert!(producer.is_empty() && consumer.is_empty());
    }
    assert_eq!((producer.position(), consumer.position()), (30, 30));
}

#[test]
fn a_rejected_element_comes_back_and_the_capacity_is_exact() {
    for capacity in [1, 2, 3, 5, 8, 1000] {
        let (mut producer, mut consumer) = pair(capacity);
        consumer.give_back_every(1);
        assert_eq!(
            (producer.capacity(), consumer.capacity()),
            (capacity, capacity)
        );
        for element in 0..capacity {
            assert_eq!(producer.slots(), capacity - element);
            producer.try_push(element).unwrap();
        }
        assert_eq!(producer.slots(), 0);
        assert_eq!(producer.try_push(77), Err(PushError::Full(77)));
        assert_eq!(producer.push_quiet(77), Err(PushError::Full(77)));
        assert_eq!(consumer.try_pop(), Ok(0));
        assert_eq!(producer.try_push(77), Ok(()));
        assert_eq!(producer.try_push(78), Err(PushError::Full(78)));
    }
}

#[test]
fn a_large_ring_gives_slots_back_in_small_portions_and_at_once_when_it_is_empty() {
    // No multiple of a portion, so that the last slots go back because the ring is empty.
    let (mut producer, mut consumer) = pair(1000);
    for element in 0..1000 {
        producer.try_push(element).unwrap();
    }
    let mut popped = 0;
    while producer.slots() == 0 {
        assert_eq!(consumer.try_pop(), Ok(popped));
        popped += 1;
    }
    assert!(popped <= 16, "{popped} slots were held back");
    while consumer.try_pop().is_ok() {}
    assert_eq!(producer.slots(), 1000);
}

#[test]
#[should_panic(expected = "at least one element")]
fn a_ring_without_room_is_refused() {
    pair::<u8>(0);
}

#[test]
fn an_empty_ring_is_not_an_ended_one() {
    let (producer, mut consumer) = pair::<u8>(2);
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    assert!(!consumer.is_ready());
    drop(producer);
    assert!(consumer.is_ready());
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
    assert_eq!(consumer.try_pop(), Err(PopError::Finished));
}

#[test]
fn a_producer_dropped_without_finish_drains_and_is_then_abandoned() {
    let (counted, producer, mut consumer) = three_queued();
    drop(producer);
    for _ in 0..3 {
        assert!(consumer.try_pop().is_ok());
    }
    assert_eq!(consumer.try_pop(), Err(PopError::Abandoned));
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn a_dropped_consumer_drops_what_is_queued_and_gives_later_pushes_back() {
    let (counted, mut producer, consumer) = three_queued();
    drop(consumer);
    assert_eq!(Arc::strong_count(&counted), 1);
    assert!(producer.is_abandoned());
    assert!(producer.is_ready());
    assert_eq!(
        producer
            .try_push(counted.clone())
            .map_err(PushError::into_inner),
        Err(counted.clone())
    );
    let rejected = producer.try_push_priority(counted.clone());
    assert_eq!(rejected, Err(PushError::Abandoned(counted.clone())));
    assert_eq!(
        producer.push_from(&mut std::iter::repeat(counted.clone())),
        0
    );
    assert_eq!(Arc::strong_count(&counted), 1 + 1);
    drop((rejected, producer));
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn dropping_both_halves_drops_what_is_queued_in_either_order() {
    let (counted, producer, consumer) = three_queued();
    drop((producer, consumer));
    assert_eq!(Arc::strong_count(&counted), 1);
    let (counted, producer, consumer) = three_queued();
    drop((consumer, producer));
    assert_eq!(Arc::strong_count(&counted), 1);
}

/// Panics when dropped, if told to, and counts all drops in a shared cell.
struct Fragile {
    panics: bool,
    alive: Arc<()>,
}

fn fragile(alive: &Arc<()>, panics: bool) -> Fragile {
    Fragile {
        panics,
        alive: alive.clone(),
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(Arc::strong_count(&self.alive) > 1, "dropped twice");
        if self.panics {
            panic!("the drop of an element panics");
        }
    }
}

#[test]
fn an_element_whose_drop_panics_is_dropped_once_and_the_others_too() {
    let alive = Arc::new(());
    for fragile_at in 0..3 {
        let (mut producer, consumer) = pair(4);
        for index in 0..3 {
            assert!(
                producer
                    .try_push(fragile(&alive, index == fragile_at))
                    .is_ok()
            );
        }
        catch_unwind(AssertUnwindSafe(|| drop(consumer))).unwrap_err();
        assert!(producer.is_abandoned());
        drop(producer);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}

#[test]
fn an_element_whose_drop_panics_in_the_last_half_leaks_nothing() {
    let alive = Arc::new(());
    let (mut producer, consumer) = pair(4);
    for index in 0..3 {
        assert!(producer.try_push(fragile(&alive, index == 0)).is_ok());
    }
    drop(producer);
    catch_unwind(AssertUnwindSafe(|| drop(consumer))).unwrap_err();
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn an_iterator_that_panics_leaves_what_it_gave_in_the_ring() {
    let (mut producer, mut consumer) = pair(8);
    let mut values = (0..5).inspect(|value| assert!(*value < 3, "the source fails"));
    let pushing = AssertUnwindSafe(|| producer.push_from(&mut values));
    catch_unwind(pushing).unwrap_err();
    assert_eq!(consumer.pop_chunk(8).collect::<Vec<_>>(), [0, 1, 2]);
    producer.try_push(9).unwrap();
    assert_eq!(consumer.try_pop(), Ok(9));
}

#[test]
fn push_from_pushes_what_fits_and_leaves_the_rest_in_the_iterator() {
    let (mut producer, mut consumer) = pair(5);
    let mut values = 0..8;
    assert_eq!(producer.push_from(&mut values), 5);
    assert_eq!(producer.push_from(&mut values), 0);
    assert_eq!(consumer.try_pop(), Ok(0));
    assert_eq!(producer.push_from(&mut values), 1);
    assert_eq!(values, 6..8);
    // A source that can't say how much it has fills the ring as well.
    assert_eq!(consumer.pop_chunk(5).count(), 5);
    let mut values = (0..100).filter(|value| value % 2 == 0);
    assert_eq!(producer.push_from(&mut values), 5);
    assert_eq!(values.next(), Some(10));
}

#[test]
fn what_a_chunk_did_not_give_stays_queued() {
    let (mut producer, mut consumer) = pair(4);
    producer.push_from(&mut (0..4));
    let mut chunk = consumer.pop_chunk(3);
    assert_eq!(chunk.len(), 3);
    assert_eq!(chunk.next(), Some(0));
    assert_eq!(chunk.len(), 2);
    drop(chunk);
    assert_eq!((producer.len(), producer.slots()), (3, 1));
    assert_eq!(consumer.pop_chunk(9).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(consumer.pop_chunk(9).next(), None);
}

#[test]
fn a_forgotten_chunk_neither_repeats_nor_drops_an_element_twice() {
    let (counted, mut producer, mut consumer) = three_queued();
    let mut chunk = consumer.pop_chunk(2);
    let taken = chunk.next();
    std::mem::forget(chunk);
    assert_eq!((consumer.position(), consumer.len()), (1, 2));
    drop(taken);
    producer.try_push(counted.clone()).unwrap();
    assert!(consumer.try_pop().is_ok());
    assert_eq!(producer.slots(), 2);
    // Once more, and now the halves are dropped before anything else is popped.
    let mut chunk = consumer.pop_chunk(2);
    let taken = chunk.next();
    std::mem::forget(chunk);
    drop((consumer, producer));
    assert_eq!(Arc::strong_count(&counted), 2);
    drop(taken);
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
fn peeking_takes_nothing() {
    let (mut producer, mut consumer) = pair(4);
    assert_eq!(consumer.peek(), None);
    producer.push_from(&mut (0..2));
    consumer.try_pop().unwrap();
    producer.push_from(&mut (2..5));
    assert_eq!(consumer.peek(), Some(&1));
    let queued = |position| consumer.peek_until(position).copied().collect::<Vec<_>>();
    assert_eq!(queued(0), []);
    assert_eq!(queued(1), []);
    assert_eq!(queued(3), [1, 2]);
    assert_eq!(queued(u64::MAX), [1, 2, 3, 4]);
    assert_eq!(consumer.len(), 4);
    assert_eq!(consumer.try_pop(), Ok(1));
}

#[test]
fn the_high_water_mark_is_the_true_depth_and_never_falls() {
    let (mut producer, mut consumer) = pair(16);
    producer.push_from(&mut (0..5));
    assert_eq!(producer.high_water(), 5);
    assert_eq!(consumer.pop_chunk(5).count(), 5);
    assert_eq!(producer.high_water(), 5);
    for element in 0..100 {
        producer.try_push(element).unwrap();
        consumer.try_pop().unwrap();
    }
    assert_eq!(producer.high_water(), 5);
    for element in 0..6 {
        producer.try_push(element).unwrap();
    }
    assert_eq!(producer.high_water(), 6);
}

#[test]
fn a_priority_value_overtakes_and_carries_its_position() {
    let (mut producer, mut consumer) = pair(4);
    producer.push_from(&mut (0..2));
    assert_eq!(consumer.try_pop(), Ok(0));
    assert_eq!(consumer.peek_priority(), None);
    producer.try_push_priority(100).unwrap();
    producer.try_push(2).unwrap();
    assert_eq!(producer.try_push_priority(101), Err(PushError::Full(101)));
    assert_eq!(consumer.peek_priority(), Some(2));
    assert_eq!(consumer.peek_until(2).collect::<Vec<_>>(), [&1]);
    assert_eq!(consumer.take_priority(), Some((100, 2)));
    assert_eq!(consumer.take_priority(), None);
    assert_eq!(producer.try_push_priority(101), Ok(()));
    assert_eq!(consumer.pop_chunk(4).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn the_end_waits_until_the_priority_value_was_taken() {
    let (mut producer, mut consumer) = pair(4);
    producer.try_push_priority(1).unwrap();
    producer.finish();
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    assert_eq!(consumer.take_priority(), Some((1, 0)));
    assert_eq!(consumer.try_pop(), Err(PopError::Finished));
}

#[test]
fn a_priority_value_that_nobody_took_is_dropped_with_the_ring() {
    let counted = Arc::new(());
    let (mut producer, consumer) = pair(4);
    producer.try_push_priority(counted.clone()).unwrap();
    drop(consumer);
    assert_eq!(Arc::strong_count(&counted), 1);
    drop(producer);
}

#[test]
fn released_weight_reaches_the_producer() {
    let (mut producer, mut consumer) = pair(4);
    producer.push_from(&mut (0..2));
    consumer.pop_quiet().unwrap();
    consumer.release(100);
    assert_eq!((producer.released(), producer.slots()), (100, 3));
    consumer.pop_quiet().unwrap();
    consumer.release(23);
    assert_eq!(producer.released(), 123);
}

#[test]
fn a_peer_that_is_awake_is_never_rung() {
    let (mut producer, mut consumer) = pair(8);
    for element in 0..100 {
        producer.try_push(element).unwrap();
        consumer.try_pop().unwrap();
        producer.push_from(&mut (0..5));
        assert_eq!(consumer.pop_chunk(5).count(), 5);
    }
    assert_eq!(producer.consumer_bell().rings_total(), 0);
    assert_eq!(consumer.producer_bell().rings_total(), 0);
}

#[test]
fn an_armed_peer_is_rung_once_for_each_of_the_ways_to_be_woken() {
    let (mut producer, mut consumer) = pair(8);
    let bell = consumer.consumer_bell().clone();
    let mut rings = 0;
    let mut rung = |what: &str| {
        rings += 1;
        assert_eq!(bell.rings_total(), rings, "{what}");
        bell.arm();
    };
    bell.arm();
    producer.try_push(1).unwrap();
    rung("try_push");
    producer.push_from(&mut (0..3));
    rung("push_from");
    producer.push_quiet(1).unwrap();
    producer.push_quiet(2).unwrap();
    producer.wake();
    rung("push_quiet and wake");
    producer.try_push_priority(1).unwrap();
    rung("try_push_priority");

    let bell = consumer.producer_bell().clone();
    let mut rings = 0;
    let mut rung = |what: &str| {
        rings += 1;
        assert_eq!(bell.rings_total(), rings, "{what}");
        bell.arm();
    };
    bell.arm();
    consumer.try_pop().unwrap();
    rung("try_pop");
    assert_eq!(consumer.pop_chunk(2).count(), 2);
    rung("pop_chunk");
    consumer.pop_quiet().unwrap();
    consumer.release(9);
    rung("pop_quiet and release");
    consumer.take_priority().unwrap();
    rung("take_priority");
    drop(consumer);
    rung("dropping the consumer");
}

#[test]
fn an_armed_consumer_is_rung_by_the_end() {
    for finishes in [true, false] {
        let (producer, consumer) = pair::<u8>(1);
        consumer.consumer_bell().arm();
        if finishes {
            producer.finish();
        } else {
            drop(producer);
        }
        assert_eq!(consumer.consumer_bell().rings_total(), 1);
    }
}

#[test]
fn values_without_size_are_counted_like_others() {
    let (mut producer, mut consumer) = pair(3);
    assert_eq!(producer.push_from(&mut std::iter::repeat(())), 3);
    assert_eq!(consumer.pop_chunk(9).count(), 3);
}
