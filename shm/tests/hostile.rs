//! A peer that writes anything into its own segment costs the other side an error at most.
//!
//! The forged segments follow the table of docs/SHARED_MEMORY.md; what is written into them is
//! random. Each random test prints its seed; `RINGWAY_SEED` replays it.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::forged::{
    ARENA, FIRST_SLOT, FREED, Forged, HEAD, LETTER, LETTERS, LETTERS_TAKEN, NEWEST, PIN, SLOTS,
    TAIL,
};
use common::{Random, content};
use ringway_shm::link::{ClaimError, Consumer, Corrupt, Lease, PopError, Producer};

const GAP: u32 = u32::MAX;

fn consumer(forged: &Forged) -> Consumer {
    forged.try_consumer(usize::MAX).unwrap()
}

/// What a pop finds wrong.
fn corrupt(consumer: &mut Consumer) -> Corrupt {
    let found = match consumer.try_pop() {
        Err(PopError::Corrupt(corrupt)) => corrupt,
        other => panic!("{other:?}"),
    };
    // The link is dead: nothing else is said from now on, whatever is asked.
    assert_eq!(consumer.try_pop().unwrap_err(), PopError::Corrupt(found));
    assert_eq!(consumer.take_priority().map(drop), Err(found));
    assert_eq!(
        consumer.peek_until(u64::MAX).next().unwrap().map(drop),
        Err(found)
    );
    assert!(consumer.is_ready());
    consumer.set_peer_gone();
    assert_eq!(consumer.try_pop().unwrap_err(), PopError::Corrupt(found));
    found
}

#[test]
fn a_tail_that_goes_back_or_too_far_ahead_is_an_error() {
    for tail in [1, SLOTS + 3, u64::MAX] {
        let forged = Forged::producer();
        let mut consumer = consumer(&forged);
        forged.set(TAIL, 2);
        drop(consumer.try_pop().unwrap());
        drop(consumer.try_pop().unwrap());
        forged.set(TAIL, tail);
        assert_eq!(corrupt(&mut consumer).found, tail);
    }
}

#[test]
fn a_message_that_is_too_long_or_where_there_is_no_room_is_an_error() {
    let most = consumer(&Forged::producer()).arena_bytes() as u64 / 4;
    for len in [most, u64::from(u32::MAX)] {
        let forged = Forged::producer();
        forged.set_slot(0, 1, len);
        forged.set(TAIL, 1);
        assert_eq!(corrupt(&mut consumer(&forged)).found, len);
    }
    // Each may be so long, but not all of them together.
    let forged = Forged::producer();
    for number in 0..20 {
        forged.set_slot(number, 1, ARENA / 16);
    }
    forged.set(TAIL, 20);
    let mut consumer = consumer(&forged);
    let peeked = consumer.peek_until(u64::MAX).count();
    assert_eq!(peeked, 16 + 1, "the last is the error");
    corrupt(&mut consumer);
}

#[test]
fn the_word_beside_the_tail_is_checked_as_a_slot_is_and_believed_for_its_own_slot_only() {
    let long = (1 << 24) - 1;
    for (tail, is_believed) in [(1, true), (2, false), (0, false)] {
        let forged = Forged::producer();
        forged.set_slot(0, 300, 5);
        forged.set(NEWEST, tail << 32 | 7 << 24 | long);
        forged.set(TAIL, 1);
        let mut consumer = consumer(&forged);
        if is_believed {
            assert_eq!(corrupt(&mut consumer).found, long);
        } else {
            let message = consumer.try_pop().unwrap();
            assert_eq!((message.kind(), message.bytes().len()), (300, 5));
        }
    }
}

/// A reader that went to the slots would find 300: it is to take the line that it has anyway.
#[test]
fn the_word_beside_the_tail_is_taken_each_time_that_a_message_comes_alone() {
    let forged = Forged::producer();
    let mut consumer = consumer(&forged);
    for number in 0..3 * SLOTS {
        forged.set_slot(number, 300, 5);
        forged.set(NEWEST, (number + 1) << 32 | 7 << 24 | 9);
        forged.set(TAIL, number + 1);
        let message = consumer.try_pop().unwrap();
        assert_eq!((message.kind(), message.bytes().len()), (7, 9), "{number}");
    }
}

#[test]
fn the_word_beside_the_tail_is_that_of_when_the_tail_was_read() {
    let forged = Forged::producer();
    let mut consumer = consumer(&forged);
    forged.set_slot(0, 300, 5);
    forged.set(NEWEST, 1 << 32 | 7 << 24 | 9);
    forged.set(TAIL, 1);
    let kind = consumer.peek_until(1).next().unwrap().unwrap().kind;
    // What it becomes without the tail is not looked at.
    forged.set(NEWEST, 1 << 32 | 8 << 24 | 10);
    assert_eq!((kind, consumer.try_pop().unwrap().kind()), (7, 7));
    // With the tail it may be that of a later slot, and what the first was is in the slots.
    forged.set(NEWEST, 3 << 32 | 8 << 24 | 10);
    forged.set_slot(1, 301, 6);
    forged.set(TAIL, 2);
    assert_eq!(consumer.try_pop().unwrap().kind(), 301);
}

#[test]
fn gaps_that_no_producer_leaves_are_errors_by_name() {
    let wrong = [
        (vec![(GAP, 0), (5, 3)], "gap between messages"),
        (vec![(GAP, ARENA + 64), (5, 3)], "gap between messages"),
        (vec![(GAP, 96), (5, 3)], "rest of a gap"),
        (vec![(GAP, 64)], "gap before the end"),
        (vec![(GAP, 64), (GAP, 64), (5, 3)], "kind behind a gap"),
        (vec![(5, 3), (GAP, ARENA), (5, 3)], "end of a message"),
    ];
    for (slots, named) in wrong {
        let forged = Forged::producer();
        for (number, (kind, len)) in (0..).zip(&slots) {
            forged.set_slot(number, *kind, *len);
        }
        forged.set(TAIL, slots.len() as u64);
        let mut consumer = consumer(&forged);
        let messages = slots.iter().take_while(|(kind, _)| *kind != GAP);
        for _ in messages {
            drop(consumer.try_pop().unwrap());
        }
        assert_eq!(corrupt(&mut consumer).field, named, "{slots:?}");
    }
    let forged = Forged::producer();
    forged.set_slot(0, GAP, 128);
    forged.set_slot(1, 5, 3);
    forged.set(TAIL, 2);
    let mut consumer = consumer(&forged);
    let message = consumer.try_pop().unwrap();
    assert_eq!(
        (message.kind(), message.position(), message.bytes().len()),
        (5, 0, 3)
    );
}

#[test]
fn priority_messages_that_can_not_be_are_errors() {
    let forged = Forged::producer();
    let mut dead = consumer(&forged);
    forged.set(LETTERS, 2);
    assert_eq!(dead.take_priority().unwrap_err().found, 2);
    corrupt(&mut dead);

    let forged = Forged::producer();
    let mut dead = consumer(&forged);
    forged.set(LETTER, 1 << 32 | 257);
    forged.set(LETTERS, 1);
    assert_eq!(dead.peek_priority(), Ok(Some(0)));
    assert_eq!(dead.take_priority().unwrap_err().found, 257);
}

/// A producer with some messages in flight.
fn producer(forged: &Forged) -> Producer {
    let mut producer = forged.try_producer().unwrap();
    for _ in 0..3 {
        producer.try_claim(1000).unwrap().commit(0, 1000);
    }
    producer.flush();
    producer.try_push_priority(1, b"letter").unwrap();
    producer
}

#[test]
fn positions_of_a_consumer_that_can_not_be_are_errors() {
    let beyond = [
        (HEAD, 4),
        (HEAD, u64::MAX),
        (FREED, 3 * 1024 + 64),
        (PIN, ARENA / 64),
        (PIN, (ARENA / 128 + 1) << 32),
    ];
    for (offset, value) in beyond {
        let forged = Forged::consumer();
        let mut producer = producer(&forged);
        forged.set(offset, value);
        // Looking is no error by itself, but every push from then on.
        let _ = producer.len();
        assert!(producer.has_room(1));
        let found = producer.try_claim(1).unwrap_err();
        assert!(
            matches!(found, ClaimError::Corrupt(_)),
            "{offset} {value}: {found}"
        );
        assert_eq!(producer.push_small(0, b""), Err(found));
        assert_eq!(producer.try_push_priority(0, b""), Err(found));
    }
    let forged = Forged::consumer();
    let mut producer = producer(&forged);
    forged.set(HEAD, 2);
    assert_eq!(producer.len(), 1);
    forged.set(HEAD, 1);
    let _ = producer.len();
    assert!(matches!(producer.try_claim(1), Err(ClaimError::Corrupt(_))));
}

#[test]
fn a_priority_message_that_was_taken_before_it_was_put_is_an_error() {
    let forged = Forged::consumer();
    let mut producer = producer(&forged);
    forged.set(LETTERS_TAKEN, 2);
    let found = producer.try_push_priority(0, b"").unwrap_err();
    assert!(matches!(found, ClaimError::Corrupt(_)), "{found}");
}

/// Writes a random word somewhere, more often where it matters and near what is right.
fn scribble(random: &mut Random, forged: &Forged, places: &[usize]) {
    let offset = match random.below(4) {
        0 => 64 + 8 * random.below(forged.words() - 8) as usize,
        1 => FIRST_SLOT.min(forged.words() as usize * 8 - 8),
        _ => places[random.below(places.len() as u64) as usize],
    };
    let old = forged.word(offset).load(Ordering::Relaxed);
    let value = match random.below(8) {
        0 => random.next(),
        1 => 1 << random.below(64),
        2 => old.wrapping_sub(random.below(4)),
        _ => old.wrapping_add(random.below(9)),
    };
    forged.set(offset, value);
}

/// What reads all that a consumer gives.
#[derive(Default)]
struct User {
    sum: u64,
    kept: Vec<Lease>,
}

/// Uses a consumer in every way, and reads all that it gives. Returns whether it is alive.
fn use_consumer(random: &mut Random, consumer: &mut Consumer, user: &mut User) -> bool {
    let User { sum, kept } = user;
    let mut add = |bytes: &[u8]| bytes.iter().for_each(|byte| *sum += u64::from(*byte));
    match random.below(8) {
        0 => consumer.flush(),
        1 => {
            let _ = consumer
                .take_priority()
                .map(|letter| letter.map(|letter| add(letter.bytes())));
        }
        2 => consumer
            .peek_until(u64::MAX)
            .flatten()
            .for_each(|peeked| add(peeked.bytes)),
        3 => {
            let _ = (
                consumer.len(),
                consumer.is_ready(),
                consumer.peek_priority(),
            );
        }
        _ => match consumer.try_pop() {
            Ok(message) => {
                add(message.bytes());
                if let Ok(lease) = message.lease() {
                    add(lease.as_ref());
                    kept.push(lease);
                }
                if random.below(4) == 0 && !kept.is_empty() {
                    let lease = kept.swap_remove(random.below(kept.len() as u64) as usize);
                    add(lease.as_ref());
                }
            }
            Err(end) => return end == PopError::Empty,
        },
    }
    true
}

#[test]
fn a_consumer_survives_whatever_its_producer_writes() {
    let mut random = Random::new();
    for _ in 0..150 {
        let forged = Forged::producer();
        let mut consumer = consumer(&forged);
        let mut user = User::default();
        let slots: Vec<usize> = (0..16).map(|slot| FIRST_SLOT + 8 * slot).collect();
        let places = [&[TAIL, TAIL, NEWEST, LETTERS, LETTER][..], &slots].concat();
        for number in 0..SLOTS {
            forged.set_slot(number, random.below(4) as u32, random.below(3000));
        }
        for _ in 0..150 {
            scribble(&mut random, &forged, &places);
            if !use_consumer(&mut random, &mut consumer, &mut user) {
                break;
            }
        }
    }
}

#[test]
fn a_consumer_survives_a_producer_that_writes_at_the_same_time() {
    let mut random = Random::new();
    for _ in 0..30 {
        let forged = Forged::producer();
        let mut consumer = consumer(&forged);
        let mut user = User::default();
        let done = AtomicBool::new(false);
        let mut scribbling = Random(random.next());
        thread::scope(|scope| {
            let scribbler = scope.spawn(|| {
                let places = [TAIL, NEWEST, LETTERS, LETTER, FIRST_SLOT, FIRST_SLOT + 8];
                while !done.load(Ordering::Relaxed) {
                    scribble(&mut scribbling, &forged, &places);
                }
            });
            for _ in 0..2000 {
                if !use_consumer(&mut random, &mut consumer, &mut user) {
                    break;
                }
            }
            done.store(true, Ordering::Relaxed);
            // The end of the scope would do, but not for ThreadSanitizer, which does not see it.
            scribbler.join().unwrap();
        });
    }
}

#[test]
fn a_producer_survives_whatever_its_consumer_writes() {
    let mut random = Random::new();
    for _ in 0..150 {
        let forged = Forged::consumer();
        let mut producer = forged.try_producer().unwrap();
        for number in 0..300 {
            scribble(&mut random, &forged, &[HEAD, FREED, PIN, LETTERS_TAKEN]);
            let len = random.below(producer.claim_max_bytes() as u64 / 4) as usize;
            match random.below(8) {
                0 => producer.flush(),
                1 => drop(producer.try_push_priority(1, b"letter")),
                2 => drop(producer.push_small(1, b"small")),
                3 => {
                    let _ = (
                        producer.len(),
                        producer.in_flight_bytes(),
                        producer.has_room(len),
                    );
                }
                _ => match producer.try_claim(len) {
                    Ok(mut claim) => {
                        claim.append(&content(number, len));
                        claim.commit(1, len);
                    }
                    Err(ClaimError::Full { free_bytes }) => {
                        assert!(free_bytes <= ARENA as usize);
                    }
                    Err(ClaimError::Corrupt(_)) => break,
                    Err(other) => panic!("{other}"),
                },
            }
        }
    }
}
