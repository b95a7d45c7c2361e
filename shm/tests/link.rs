//! What the two halves of a link promise, in one process.

mod common;

use std::thread;
use std::time::Duration;

use common::forged::{FIRST_SLOT, NEWEST, SLOTS, TAIL};
use common::{bell, content, copies, pair, small};
use ringway_shm::link::{
    ClaimError, Incoming, KIND_MAX, Lease, LinkConfig, Outgoing, PopError, SMALL_BYTES_MAX,
    SMALL_QUEUED_MAX, Stores,
};

const LONG: Option<Duration> = Some(Duration::from_secs(20));

fn push(producer: &mut ringway_shm::link::Producer, bytes: &[u8]) -> Result<(), ClaimError> {
    let mut claim = producer.try_claim(bytes.len())?;
    claim.append(bytes);
    claim.commit(7, bytes.len());
    Ok(())
}

#[test]
fn messages_come_out_as_they_went_in_after_a_flush() {
    let (mut producer, mut consumer) = pair(&small());
    for number in 0..5 {
        push(&mut producer, &content(number, 100 * number as usize)).unwrap();
    }
    assert_eq!(consumer.try_pop().unwrap_err(), PopError::Empty);
    producer.flush();
    for number in 0..5 {
        let message = consumer.try_pop().unwrap();
        assert_eq!((message.kind(), message.position()), (7, number));
        assert_eq!(message.bytes(), content(number, 100 * number as usize));
        assert_eq!(message.bytes().as_ptr() as usize % 64, 0);
    }
    assert_eq!(consumer.try_pop().unwrap_err(), PopError::Empty);
}

#[test]
fn kinds_and_lengths_of_every_size_arrive_one_by_one_and_together() {
    let large = LinkConfig {
        arena_bytes: 80 << 20,
        ..small()
    };
    let (mut producer, mut consumer) = pair(&large);
    let messages = [
        (0, 0),
        (255, 1),
        (256, 64),
        (KIND_MAX, 2),
        (9, (1 << 24) - 1),
        (9, 1 << 24),
    ];
    for together in [1, messages.len()] {
        for group in messages.chunks(together) {
            for (kind, len) in group {
                producer.try_claim(*len).unwrap().commit(*kind, *len);
            }
            producer.flush();
            for (kind, len) in group {
                let message = consumer.try_pop().unwrap();
                assert_eq!((message.kind(), message.bytes().len()), (*kind, *len));
            }
            assert_eq!(consumer.try_pop().unwrap_err(), PopError::Empty);
        }
    }
}

/// What a consumer of another make would read: slots, and the word beside the tail.
#[test]
fn the_last_slot_stands_beside_the_tail_at_each_flush_also_behind_a_gap() {
    let (to_producer, to_consumer) = (bell(), bell());
    let outgoing = Outgoing::new(&small(), &to_producer).unwrap();
    let incoming = Incoming::new(&to_consumer).unwrap();
    let [ours, theirs] = [outgoing.descriptors(), incoming.descriptors()].map(copies);
    let segment = ours[0].try_clone().unwrap();
    let mut producer = outgoing.meet(theirs).unwrap();
    let mut consumer = incoming.meet(ours, usize::MAX).unwrap();
    let word = |offset: usize| {
        let mut bytes = [0; 8];
        rustix::io::pread(&segment, &mut bytes, offset as u64).unwrap();
        u64::from_ne_bytes(bytes)
    };
    let (mut leases, mut gaps) = (Vec::new(), 0);
    for number in 0..600_u64 {
        // Some come alone, some together, and some kinds have no room there.
        let (kind, len) = (number as u32 % 300, 1 + number as usize * 97 % 20_000);
        producer.try_claim(len).unwrap().commit(kind, len);
        if number % 5 < 2 {
            continue;
        }
        producer.flush();
        let (tail, newest) = (word(TAIL), word(NEWEST));
        let slot = word(FIRST_SLOT + 8 * ((tail - 1) % SLOTS) as usize);
        assert_eq!(slot, u64::from(kind) << 32 | len as u64);
        let told = (tail & 0xffff_ffff) << 32 | u64::from(kind) << 24 | len as u64;
        let for_none = ((tail ^ 1 << 31) & 0xffff_ffff) << 32;
        assert_eq!(newest, if kind < 256 { told } else { for_none }, "{number}");
        gaps = tail - producer.position();
        // All before them were taken, also where the first of them is a gap.
        let queued = number + 1 - consumer.position();
        assert_eq!(producer.len() as u64, queued, "{number}");
        while let Ok(message) = consumer.try_pop() {
            leases.extend(message.lease().ok());
        }
        leases.truncate(1);
        consumer.flush();
    }
    assert!(gaps > 10, "{gaps} gaps around the lease");
}

#[test]
fn a_claim_that_is_dropped_leaves_no_trace_and_less_than_claimed_may_be_committed() {
    let (mut producer, mut consumer) = pair(&small());
    drop(producer.try_claim(5000).unwrap());
    let mut claim = producer.try_claim(5000).unwrap();
    claim[..3].copy_from_slice(b"abc");
    claim.commit(1, 3);
    producer.flush();
    assert_eq!(producer.position(), 1);
    assert_eq!(consumer.try_pop().unwrap().bytes(), b"abc");
}

#[test]
fn what_is_full_has_room_again_after_the_consumer_has_flushed() {
    let (mut producer, mut consumer) = pair(&small());
    let most = producer.claim_max_bytes();
    let mut pushed = 0;
    while push(&mut producer, &content(pushed, most)).is_ok() {
        pushed += 1;
    }
    assert!(pushed >= 3);
    assert!(!producer.has_room(most));
    // It was full, so that it was published.
    assert_eq!(consumer.try_pop().unwrap().bytes(), content(0, most));
    consumer.flush();
    assert!(producer.has_room(most));
    push(&mut producer, &content(pushed, most)).unwrap();
    producer.flush();
    for number in 1..=pushed {
        assert_eq!(consumer.try_pop().unwrap().bytes(), content(number, most));
    }
}

#[test]
fn a_message_above_the_largest_is_refused_with_that() {
    let (mut producer, _consumer) = pair(&small());
    let max_bytes = producer.claim_max_bytes();
    let refused = producer.try_claim(max_bytes + 1).unwrap_err();
    assert_eq!(refused, ClaimError::TooLarge { max_bytes });
}

#[test]
fn small_messages_have_room_in_order_however_full_the_link_is() {
    for bytes in [0, 4096] {
        let (mut producer, mut consumer) = pair(&small());
        let mut pushed = 0;
        while push(&mut producer, &content(pushed, bytes)).is_ok() {
            pushed += 1;
        }
        for number in 0..SMALL_QUEUED_MAX as u64 {
            let bytes = content(number, SMALL_BYTES_MAX);
            producer.push_small(number as u32, &bytes).unwrap();
        }
        producer.flush();
        for number in 0..pushed {
            assert_eq!(consumer.try_pop().unwrap().bytes(), content(number, bytes));
        }
        for number in 0..SMALL_QUEUED_MAX as u64 {
            let message = consumer.try_pop().unwrap();
            assert_eq!(u64::from(message.kind()), number);
            assert_eq!(message.bytes(), content(number, SMALL_BYTES_MAX));
        }
    }
}

#[test]
fn a_priority_message_overtakes_with_the_position_it_was_pushed_at() {
    let (mut producer, mut consumer) = pair(&small());
    push(&mut producer, b"first").unwrap();
    producer.try_push_priority(3, b"letter").unwrap();
    let full = producer.try_push_priority(4, b"another").unwrap_err();
    assert!(matches!(full, ClaimError::Full { .. }));
    push(&mut producer, b"second").unwrap();
    producer.flush();
    assert_eq!(consumer.peek_priority(), Ok(Some(1)));
    let letter = consumer.take_priority().unwrap().unwrap();
    assert_eq!((letter.kind, letter.position), (3, 1));
    assert_eq!(letter.bytes(), b"letter");
    assert!(consumer.take_priority().unwrap().is_none());
    producer.try_push_priority_at(4, b"another", 9).unwrap();
    assert_eq!(consumer.peek_priority(), Ok(Some(9)));
    assert_eq!(consumer.try_pop().unwrap().bytes(), b"first");
}

#[test]
fn peeked_messages_stay_queued() {
    let (mut producer, mut consumer) = pair(&small());
    for number in 0..4 {
        push(&mut producer, &content(number, 70)).unwrap();
    }
    producer.flush();
    drop(consumer.try_pop().unwrap());
    let seen: Vec<_> = consumer
        .peek_until(3)
        .map(|peeked| peeked.unwrap().position)
        .collect();
    assert_eq!(seen, [1, 2]);
    let last = consumer.peek_until(u64::MAX).last().unwrap().unwrap();
    assert_eq!(last.bytes, content(3, 70));
    assert_eq!(consumer.try_pop().unwrap().position(), 1);
}

#[test]
fn leased_messages_stay_as_they_are_while_others_come_and_go() {
    let (mut producer, mut consumer) = pair(&small());
    let bytes = 3000;
    let mut leases: Vec<(u64, Lease)> = Vec::new();
    let mut copied = 0;
    for number in 0..2000 {
        push(&mut producer, &content(number, bytes)).unwrap();
        producer.flush();
        let message = consumer.try_pop().unwrap();
        match message.lease() {
            Ok(lease) => leases.push((number, lease)),
            Err(message) => {
                assert_eq!(message.bytes(), content(number, bytes));
                copied += 1;
            }
        }
        consumer.flush();
        if number % 7 == 0 && !leases.is_empty() {
            leases.swap_remove(number as usize % leases.len());
        }
    }
    assert!(copied > 0 && !leases.is_empty());
    assert!(consumer.leased_bytes() <= consumer.arena_bytes() / 2);
    drop(producer);
    drop(consumer);
    for (number, lease) in leases {
        assert_eq!(lease.as_ref(), content(number, bytes));
    }
}

#[test]
fn keeping_every_message_of_ten_times_the_arena_never_starves_the_link() {
    let (mut producer, mut consumer) = pair(&small());
    let most = producer.claim_max_bytes();
    let total = 10 * producer.arena_bytes();
    let (mut kept, mut taken, mut number) = (Vec::new(), 0, 0);
    while taken < total {
        let len = 1 + (number as usize * 7919) % most;
        push(&mut producer, &content(number, len)).unwrap();
        producer.flush();
        let message = consumer.try_pop().unwrap();
        kept.push((
            number,
            len,
            message.lease().map_err(|message| message.bytes().to_vec()),
        ));
        consumer.flush();
        taken += len;
        number += 1;
    }
    for (number, len, kept) in &kept {
        let expected = content(*number, *len);
        match kept {
            Ok(lease) => assert_eq!(lease.as_ref(), expected),
            Err(copied) => assert_eq!(*copied, expected),
        }
    }
    assert!(kept.iter().any(|(.., kept)| kept.is_ok()));
}

#[test]
fn a_lease_dropped_by_another_thread_gives_its_space_back() {
    let (mut producer, mut consumer) = pair(&small());
    push(&mut producer, &content(0, 9000)).unwrap();
    producer.flush();
    let lease = consumer.try_pop().unwrap().lease().unwrap();
    assert_eq!(consumer.leases(), 1);
    assert_eq!(consumer.leased_bytes(), 9000_usize.next_multiple_of(64));
    thread::spawn(move || drop(lease)).join().unwrap();
    assert_eq!((consumer.leases(), consumer.leased_bytes()), (0, 0));
}

#[test]
fn streaming_and_plain_stores_write_the_same_bytes() {
    let (mut producer, mut consumer) = pair(&small());
    for stores in [Stores::Plain, Stores::Streaming, Stores::Auto] {
        producer.set_stores(stores);
        for len in [0, 1, 15, 16, 17, 63, 64, 65, 4095, 4096, 4097, 10_000] {
            let bytes = content(len as u64, len);
            let mut claim = producer.try_claim(len + 40).unwrap();
            // At every alignment of the destination.
            claim.append_zeroes(len % 40);
            claim.append(&bytes);
            assert_eq!(claim.appended(), len % 40 + len);
            claim.commit(0, len % 40 + len);
            producer.flush();
            let message = consumer.try_pop().unwrap();
            assert_eq!(message.bytes()[len % 40..], bytes);
        }
    }
}

#[test]
fn a_gone_consumer_refuses_pushes_and_a_gone_producer_ends_after_what_it_published() {
    let (mut producer, mut consumer) = pair(&small());
    push(&mut producer, b"published").unwrap();
    producer.try_push_priority(1, b"letter").unwrap();
    push(&mut producer, b"committed only").unwrap();
    drop(producer);
    consumer.set_peer_gone();
    assert!(consumer.is_ready());
    let lease = consumer.try_pop().unwrap().lease().unwrap();
    assert_eq!(consumer.try_pop().unwrap_err(), PopError::Empty);
    assert!(consumer.take_priority().unwrap().is_some());
    assert_eq!(consumer.try_pop().unwrap_err(), PopError::PeerGone);
    drop(consumer);
    assert_eq!(lease.as_ref(), b"published");

    let (mut producer, _consumer) = pair(&small());
    producer.set_peer_gone();
    assert!(producer.has_room(1) && producer.is_peer_gone());
    assert_eq!(producer.try_claim(1).unwrap_err(), ClaimError::PeerGone);
    assert_eq!(producer.push_small(0, b""), Err(ClaimError::PeerGone));
    assert_eq!(
        producer.try_push_priority(0, b""),
        Err(ClaimError::PeerGone)
    );
}

#[test]
fn a_sleeping_consumer_is_woken_once_for_each_sleep() {
    let (mut producer, mut consumer) = pair(&small());
    let bell = consumer.consumer_bell().clone();
    // The first flush may ring for a sleep that began before the link was there.
    push(&mut producer, b"a").unwrap();
    producer.flush();
    let before = producer.rings_total();
    for sleep in 1..=3 {
        bell.arm();
        while consumer.try_pop().is_ok() {}
        assert!(!consumer.is_ready());
        push(&mut producer, b"b").unwrap();
        producer.flush();
        push(&mut producer, b"c").unwrap();
        producer.flush();
        assert!(bell.park(LONG));
        assert!(consumer.is_ready());
        assert_eq!(producer.rings_total() - before, sleep);
    }
    push(&mut producer, b"awake").unwrap();
    producer.flush();
    assert_eq!(producer.rings_total() - before, 3);
}

#[test]
fn a_sleeping_producer_is_woken_when_there_is_room_and_only_if_it_waits() {
    let (mut producer, mut consumer) = pair(&small());
    let bell = producer.producer_bell().clone();
    push(&mut producer, b"one").unwrap();
    producer.flush();
    bell.arm();
    drop(consumer.try_pop().unwrap());
    consumer.flush();
    assert_eq!(consumer.rings_total(), 0);
    assert!(!bell.park(Some(Duration::from_millis(5))));

    while push(&mut producer, &[1; 4096]).is_ok() {}
    bell.arm();
    assert!(!producer.has_room(4096));
    drop(consumer.try_pop().unwrap());
    consumer.flush();
    assert!(bell.park(LONG));
    assert_eq!(consumer.rings_total(), 1);
    assert!(producer.has_room(4096));
}

#[test]
fn a_consumer_that_takes_no_more_says_why_once_and_wakes_the_producer() {
    let (mut producer, mut consumer) = pair(&small());
    assert!(!producer.is_closed() && producer.closed().unwrap().is_none());
    let bell = producer.producer_bell().clone();
    bell.arm();
    consumer.close(5, b"the operator has failed");
    consumer.close(6, b"later");
    assert!(bell.park(LONG));
    assert!(producer.is_closed());
    let reason = producer.closed().unwrap().unwrap();
    assert_eq!(
        (reason.kind, reason.bytes()),
        (5, &b"the operator has failed"[..])
    );
    // What was on the way may still be pushed, in vain.
    push(&mut producer, b"on the way").unwrap();
}

#[test]
fn a_producer_with_bounds_of_its_own_is_woken_by_what_is_given_back() {
    let (mut producer, mut consumer) = pair(&small());
    push(&mut producer, b"one").unwrap();
    producer.wait_for_room();
    let bell = producer.producer_bell().clone();
    bell.arm();
    drop(consumer.try_pop().unwrap());
    consumer.flush();
    assert!(bell.park(LONG));
    // It waits until it has claimed.
    push(&mut producer, b"two").unwrap();
    producer.flush();
    bell.arm();
    drop(consumer.try_pop().unwrap());
    consumer.flush();
    assert!(!bell.park(Some(Duration::from_millis(5))));
}

#[test]
fn a_watch_tells_of_everything_that_the_peer_has_published_and_of_nothing_twice() {
    let (mut producer, mut consumer) = pair(&small());
    let (mut of_consumer, mut of_producer) = (producer.watch(), consumer.watch());
    assert!(!of_consumer.has_news() && !of_producer.has_news());
    push(&mut producer, b"one").unwrap();
    assert!(!of_producer.has_news());
    producer.flush();
    assert!(of_producer.has_news() && !of_producer.has_news());
    producer.try_push_priority(1, b"letter").unwrap();
    assert!(of_producer.has_news() && !of_producer.has_news());
    let lease = consumer.try_pop().unwrap().lease().unwrap();
    consumer.flush();
    assert!(of_consumer.has_news() && !of_consumer.has_news());
    drop(lease);
    consumer.flush();
    assert!(of_consumer.has_news() && !of_consumer.has_news());
    consumer.take_priority().unwrap().unwrap();
    assert!(of_consumer.has_news() && !of_consumer.has_news());
    consumer.close(1, b"");
    drop((producer, consumer));
    assert!(of_consumer.has_news() && !of_consumer.has_news());
}

#[test]
fn two_threads_that_sleep_and_wake_lose_nothing() {
    let config = LinkConfig {
        messages_max: 4,
        ..small()
    };
    let (mut producer, mut consumer) = pair(&config);
    let count = 20_000;
    let pushing = thread::spawn(move || {
        let bell = producer.producer_bell().clone();
        for number in 0..count {
            let bytes = content(number, 40);
            while push(&mut producer, &bytes).is_err() {
                bell.arm();
                if producer.has_room(bytes.len()) {
                    bell.disarm();
                } else {
                    assert!(bell.park(LONG));
                }
            }
            if number % 3 == 0 {
                producer.flush();
            }
        }
        producer.flush();
        producer
    });
    let bell = consumer.consumer_bell().clone();
    for number in 0..count {
        loop {
            match consumer.try_pop() {
                Ok(message) => {
                    assert_eq!(message.position(), number);
                    assert_eq!(message.bytes(), content(number, 40));
                    break;
                }
                Err(PopError::Empty) => {
                    bell.arm();
                    if consumer.is_ready() {
                        bell.disarm();
                    } else {
                        assert!(bell.park(LONG));
                    }
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    drop(pushing.join().unwrap());
}
