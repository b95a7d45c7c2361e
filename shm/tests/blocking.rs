//! What the waiting forms promise to threads, with real threads.
#![allow(clippy::disallowed_methods, reason = "the test measures a wait")]

use std::thread;
use std::time::{Duration, Instant};

use ringway_shm::{Bell, Consumer, PopError, Producer, PushError, ring};

/// Long enough that only a lost wake-up waits for it to pass.
const LONG: Option<Duration> = Some(Duration::from_secs(20));
const SHORT: Option<Duration> = Some(Duration::from_millis(20));

fn pair<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    ring(capacity, Bell::thread(), Bell::thread())
}

/// Waits until whoever owns the bell is asleep or about to be.
fn until_armed(bell: &Bell) {
    while !bell.is_armed() {
        thread::yield_now();
    }
}

#[test]
fn a_push_into_a_full_ring_waits_for_a_pop() {
    let (mut producer, mut consumer) = pair(1);
    producer.try_push(1).unwrap();
    let bell = producer.producer_bell().clone();
    let pushing = thread::spawn(move || producer.push_blocking(2, None));
    until_armed(&bell);
    assert_eq!(consumer.try_pop(), Ok(1));
    assert_eq!(consumer.pop_blocking(LONG), Ok(2));
    assert_eq!(pushing.join().unwrap(), Ok(()));
}

#[test]
fn one_pop_wakes_a_producer_that_sleeps_on_a_large_ring() {
    let (mut producer, mut consumer) = pair(1024);
    while producer.try_push(1).is_ok() {}
    let bell = producer.producer_bell().clone();
    let patience = Duration::from_secs(10);
    let pushing = thread::spawn(move || producer.push_blocking(2, Some(patience)));
    until_armed(&bell);
    // Less than a portion of slots: it goes back because the producer sleeps.
    assert_eq!(consumer.try_pop(), Ok(1));
    assert_eq!(pushing.join().unwrap(), Ok(()));
}

#[test]
fn a_pop_from_an_empty_ring_waits_for_a_push() {
    let (mut producer, mut consumer) = pair(1);
    let bell = consumer.consumer_bell().clone();
    let popping = thread::spawn(move || consumer.pop_blocking(None));
    until_armed(&bell);
    producer.try_push(1).unwrap();
    assert_eq!(popping.join().unwrap(), Ok(1));
}

#[test]
fn a_blocked_pop_is_woken_by_the_end_and_learns_which() {
    for (finishes, end) in [(true, PopError::Finished), (false, PopError::Abandoned)] {
        let (producer, mut consumer) = pair::<u8>(1);
        let bell = consumer.consumer_bell().clone();
        let popping = thread::spawn(move || consumer.pop_blocking(None));
        until_armed(&bell);
        if finishes {
            producer.finish();
        } else {
            drop(producer);
        }
        assert_eq!(popping.join().unwrap(), Err(end));
    }
}

#[test]
fn a_blocked_push_is_woken_within_100_ms_when_the_consumer_is_dropped() {
    let (mut producer, consumer) = pair(1);
    producer.try_push(1).unwrap();
    let bell = producer.producer_bell().clone();
    let pushing = thread::spawn(move || (producer.push_blocking(2, None), Instant::now()));
    until_armed(&bell);
    let dropped = Instant::now();
    drop(consumer);
    let (rejected, woken) = pushing.join().unwrap();
    assert_eq!(rejected, Err(PushError::Abandoned(2)));
    assert!(woken.saturating_duration_since(dropped) < Duration::from_millis(100));
}

#[test]
fn a_timed_pop_and_push_give_up_in_time() {
    let (mut producer, mut consumer) = pair(1);
    let start = Instant::now();
    assert_eq!(consumer.pop_blocking(SHORT), Err(PopError::Empty));
    producer.try_push(1).unwrap();
    assert_eq!(producer.push_blocking(2, SHORT), Err(PushError::Full(2)));
    assert!(start.elapsed() >= 2 * SHORT.unwrap());
    assert_eq!(consumer.pop_blocking(SHORT), Ok(1));
    assert_eq!(producer.push_blocking(2, SHORT), Ok(()));
}

#[test]
fn a_blocked_pop_returns_for_a_priority_value() {
    let (mut producer, mut consumer) = pair(1);
    let bell = consumer.consumer_bell().clone();
    let popping = thread::spawn(move || (consumer.pop_blocking(None), consumer.take_priority()));
    until_armed(&bell);
    producer.try_push_priority(5).unwrap();
    assert_eq!(
        popping.join().unwrap(),
        (Err(PopError::Empty), Some((5, 0)))
    );
}

#[test]
fn a_hundred_thousand_elements_pass_through_one_slot() {
    for descriptor in [false, true] {
        let bell = || {
            if descriptor {
                Bell::descriptor().unwrap()
            } else {
                Bell::thread()
            }
        };
        let rounds = if descriptor { 10_000 } else { 100_000 };
        let (mut producer, mut consumer) = ring(1, bell(), bell());
        let pushing = thread::spawn(move || {
            for element in 0..rounds {
                producer.push_blocking(element, LONG).unwrap();
            }
            producer.finish();
        });
        for element in 0..rounds {
            assert_eq!(consumer.pop_blocking(LONG), Ok(element));
        }
        assert_eq!(consumer.pop_blocking(LONG), Err(PopError::Finished));
        pushing.join().unwrap();
    }
}

#[test]
fn a_push_that_races_with_the_end_is_taken_or_given_back() {
    for capacity in 1..200 {
        let (mut producer, mut consumer) = pair(capacity % 7 + 1);
        let popping =
            thread::spawn(move || (0..capacity).map_while(|_| consumer.try_pop().ok()).count());
        let pushed = (0..capacity)
            .filter(|element| producer.try_push(*element).is_ok())
            .count();
        assert!(popping.join().unwrap() <= pushed);
    }
}
