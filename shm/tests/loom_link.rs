//! Models of the link between processes: publication, giving space back, leases, the priority
//! slot and waking, under every order of the threads' steps (up to three preemptions).
//!
//! Both halves are in one process here, over words and cells on the heap. A lost wake-up shows
//! as a deadlock; bytes that are written while someone may still read them as a race on a cell.
//!
//! Run by `scripts/loom`.
#![cfg(loom)]

use std::mem::ManuallyDrop;

use loom::thread;
use ringway_shm::Bell;
use ringway_shm::link::{ClaimError, Consumer, PopError, Producer, model};

/// What payloads begin at multiples of.
const UNIT: usize = 64;

fn check(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// A link of so many slots and units.
fn pair(slots: usize, units: usize) -> (Producer, Consumer) {
    let (producer_bell, consumer_bell) = (Bell::model_shared(), Bell::model_shared());
    model(slots, units * UNIT, &producer_bell, &consumer_bell)
}

fn try_push(producer: &mut Producer, value: u8) -> Result<(), ClaimError> {
    let mut claim = producer.try_claim(1)?;
    claim[0] = value;
    claim.commit(u32::from(value), 1);
    Ok(())
}

/// Pushes and publishes, sleeping while there is no room.
fn push(producer: &mut Producer, value: u8) {
    let bell = producer.producer_bell().clone();
    while let Err(full) = try_push(producer, value) {
        assert!(matches!(full, ClaimError::Full { .. }), "{full}");
        bell.arm();
        if producer.has_room(1) {
            bell.disarm();
        } else {
            bell.park(None);
        }
    }
    producer.flush();
}

/// Pops, sleeping while there is nothing.
fn pop(consumer: &mut Consumer) -> u8 {
    let bell = consumer.consumer_bell().clone();
    loop {
        match consumer.try_pop() {
            Ok(message) => {
                assert_eq!(u32::from(message.bytes()[0]), message.kind());
                return message.bytes()[0];
            }
            Err(end) => assert_eq!(end, PopError::Empty),
        }
        bell.arm();
        if consumer.is_ready() {
            bell.disarm();
        } else {
            bell.park(None);
        }
    }
}

#[test]
fn a_sleeping_consumer_misses_no_message() {
    check(|| {
        let (mut producer, mut consumer) = pair(4, 4);
        let pushing = thread::spawn(move || {
            push(&mut producer, 1);
            push(&mut producer, 2);
        });
        assert_eq!((pop(&mut consumer), pop(&mut consumer)), (1, 2));
        pushing.join().unwrap();
    });
}

#[test]
fn a_sleeping_producer_misses_no_room() {
    check(|| {
        // One message fills it.
        let (mut producer, mut consumer) = pair(2, 4);
        let pushing = thread::spawn(move || {
            push(&mut producer, 1);
            push(&mut producer, 2);
        });
        assert_eq!(pop(&mut consumer), 1);
        consumer.flush();
        assert_eq!(pop(&mut consumer), 2);
        pushing.join().unwrap();
    });
}

#[test]
fn bytes_are_overwritten_only_after_they_were_given_back() {
    check(|| {
        let (mut producer, mut consumer) = pair(8, 4);
        // All units are in use.
        for value in 1..=4 {
            push(&mut producer, value);
        }
        let pushing = thread::spawn(move || {
            let overwrites = try_push(&mut producer, 5).is_ok();
            producer.flush();
            overwrites
        });
        for value in 1..=2 {
            assert_eq!(consumer.try_pop().unwrap().bytes(), [value]);
            consumer.flush();
        }
        let overwrites = pushing.join().unwrap();
        let left = core::iter::from_fn(|| consumer.try_pop().ok().map(|last| last.kind()));
        assert_eq!(left.last(), Some(if overwrites { 5 } else { 4 }));
    });
}

/// Or a reader of single messages would go to the slots for them.
#[test]
fn what_stands_beside_the_tail_is_never_older_than_the_tail() {
    check(|| {
        let (mut producer, mut consumer) = pair(4, 4);
        let pushing = thread::spawn(move || {
            push(&mut producer, 1);
            push(&mut producer, 2);
        });
        for _ in 0..2 {
            let tail = consumer.len() as u64;
            assert!(consumer.model_newest_tail() >= tail);
        }
        pushing.join().unwrap();
    });
}

/// A message is whole whether it comes alone or behind others, and whichever of the two words of
/// it a reader takes.
#[test]
fn messages_that_are_published_together_and_alone_come_whole() {
    check(|| {
        let (mut producer, mut consumer) = pair(4, 4);
        let pushing = thread::spawn(move || {
            push(&mut producer, 1);
            try_push(&mut producer, 2).unwrap();
            push(&mut producer, 3);
        });
        for value in 1..=3 {
            assert_eq!(pop(&mut consumer), value);
        }
        pushing.join().unwrap();
    });
}

/// Shows that these models can fail. What belongs to loom must not be dropped while its panic
/// unwinds.
#[test]
#[should_panic(expected = "deadlock")]
fn a_consumer_that_does_not_look_again_after_arming_sleeps_for_ever() {
    check(|| {
        let (mut producer, consumer) = pair(4, 4);
        let mut consumer = ManuallyDrop::new(consumer);
        let bell = ManuallyDrop::new(consumer.consumer_bell().clone());
        // The first message rings for a sleep that may have begun before.
        push(&mut producer, 1);
        assert_eq!(consumer.try_pop().unwrap().bytes(), [1]);
        bell.clear();
        let pushing = ManuallyDrop::new(thread::spawn(move || {
            push(&mut producer, 2);
            producer
        }));
        if !consumer.is_ready() {
            bell.arm();
            bell.park(None);
        }
        drop(ManuallyDrop::into_inner(pushing).join().unwrap());
        drop((
            ManuallyDrop::into_inner(bell),
            ManuallyDrop::into_inner(consumer),
        ));
    });
}

#[test]
fn leased_bytes_are_written_around_until_the_lease_is_dropped_elsewhere() {
    check(|| {
        let (mut producer, mut consumer) = pair(8, 4);
        push(&mut producer, 1);
        let lease = consumer.try_pop().unwrap().lease().unwrap();
        let reading = thread::spawn(move || {
            assert_eq!(lease.read(), [1]);
        });
        let pushing = thread::spawn(move || {
            // More than the arena has room for if nothing is given back.
            for value in 2..=5 {
                if try_push(&mut producer, value).is_ok() {
                    producer.flush();
                }
            }
        });
        for _ in 0..2 {
            if let Ok(message) = consumer.try_pop() {
                assert_eq!(u32::from(message.bytes()[0]), message.kind());
            }
            consumer.flush();
        }
        reading.join().unwrap();
        pushing.join().unwrap();
    });
}

#[test]
fn a_lease_that_came_back_gives_its_bytes_to_the_producer() {
    check(|| {
        let (mut producer, mut consumer) = pair(8, 4);
        push(&mut producer, 1);
        let lease = consumer.try_pop().unwrap().lease().unwrap();
        let reading = thread::spawn(move || assert_eq!(lease.read(), [1]));
        consumer.flush();
        let pushing = thread::spawn(move || {
            // Four units around the one that may still be leased, or over it.
            (2..=5)
                .take_while(|value| try_push(&mut producer, *value).is_ok())
                .count()
        });
        consumer.flush();
        reading.join().unwrap();
        assert!(pushing.join().unwrap() >= 3);
    });
}

#[test]
fn a_priority_message_is_read_whole_and_wakes() {
    check(|| {
        let (mut producer, mut consumer) = pair(4, 4);
        let pushing = thread::spawn(move || {
            for value in 1..=2 {
                let bell = producer.producer_bell().clone();
                while producer
                    .try_push_priority(value, &[value as u8; 9])
                    .is_err()
                {
                    bell.arm();
                    if producer.has_room_for_priority() {
                        bell.disarm();
                    } else {
                        bell.park(None);
                    }
                }
            }
        });
        let bell = consumer.consumer_bell().clone();
        for value in 1..=2 {
            let letter = loop {
                if let Some(letter) = consumer.take_priority().unwrap() {
                    break letter;
                }
                bell.arm();
                if consumer.is_ready() {
                    bell.disarm();
                } else {
                    bell.park(None);
                }
            };
            assert_eq!(
                (letter.kind, letter.bytes()),
                (value, &[value as u8; 9][..])
            );
        }
        pushing.join().unwrap();
    });
}

#[test]
fn a_sleeping_producer_learns_that_the_consumer_takes_no_more_and_why() {
    check(|| {
        let (mut producer, mut consumer) = pair(4, 4);
        let bell = producer.producer_bell().clone();
        // The first ring is for a sleep that may have begun before.
        producer.wait_for_room();
        push(&mut producer, 1);
        assert_eq!(pop(&mut consumer), 1);
        consumer.flush();
        bell.clear();
        let closing = thread::spawn(move || consumer.close(5, &[6; 9]));
        while !producer.is_closed() {
            bell.arm();
            if producer.is_closed() {
                bell.disarm();
            } else {
                bell.park(None);
            }
        }
        let reason = producer.closed().unwrap().unwrap();
        assert_eq!((reason.kind, reason.bytes()), (5, &[6; 9][..]));
        closing.join().unwrap();
    });
}

#[test]
fn one_bell_serves_two_links() {
    check(|| {
        let (bell, other) = (Bell::model_shared(), Bell::model_shared());
        let (mut first, mut from_first) = model(4, 4 * UNIT, &other, &bell);
        let (mut second, mut from_second) = model(4, 4 * UNIT, &other, &bell);
        let threads = [
            thread::spawn(move || push(&mut first, 1)),
            thread::spawn(move || push(&mut second, 2)),
        ];
        let mut popped = 0;
        while popped < 2 {
            popped += u32::from(from_first.try_pop().is_ok());
            popped += u32::from(from_second.try_pop().is_ok());
            if popped == 2 {
                break;
            }
            bell.arm();
            if from_first.is_ready() || from_second.is_ready() {
                bell.disarm();
            } else {
                bell.park(None);
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
