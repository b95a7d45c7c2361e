//! Senders that write what no sender writes, and when what they write is seen.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ringway_shm::Bell;
use ringway_shm::link::{Consumer, DESCRIPTORS, Incoming, LinkConfig, Outgoing, Producer};

use super::entry::{small_of, small_of_barrier};
use super::outlet::{Gone, Outlet};
use super::receiver::{Receiver, ReceiverParts};
use crate::edge::remote::{Connection, Names};
use crate::edge::{EdgeOptions, Ending, FailureKind, Popped};
use crate::element::{Barrier, StreamElement, Watermark};
use crate::wire::Wired;

/// The kinds of a batch, and of a watermark.
const FLAT: u32 = 1;
const WATERMARK: u32 = 16;

fn copies(descriptors: [BorrowedFd<'_>; DESCRIPTORS]) -> [OwnedFd; DESCRIPTORS] {
    descriptors.map(|descriptor| descriptor.as_fd().try_clone_to_owned().unwrap())
}

/// The two ends of a link.
fn link(bell: &Bell) -> (Producer, Consumer) {
    let outgoing = Outgoing::new(&LinkConfig::default(), bell).unwrap();
    let incoming = Incoming::new(bell).unwrap();
    let (out, back) = (
        copies(outgoing.descriptors()),
        copies(incoming.descriptors()),
    );
    let consumer = incoming.meet(out, 1 << 30).unwrap();
    (outgoing.meet(back).unwrap(), consumer)
}

/// A receiver, and the end of its link that a sender would have.
fn receiver() -> (Producer, Receiver<RecordBatch>) {
    let bell = Bell::descriptor().unwrap();
    let (producer, consumer) = link(&bell);
    let (lives, _) = ringway_shm::ring::<()>(1, bell.clone(), bell.clone());
    let receiver = Receiver::new(ReceiverParts {
        consumer,
        codec: RecordBatch::codec(),
        edge: EdgeOptions::named("edge"),
        connection: Connection::alone("edge", bell),
        lives,
        copies: false,
        shift_nanos: 0,
    });
    (producer, receiver)
}

fn push(producer: &mut Producer, kind: u32, bytes: &[u8]) {
    let mut claim = producer.try_claim(bytes.len()).unwrap();
    claim.append(bytes);
    claim.commit(kind, bytes.len());
    producer.flush();
}

#[track_caller]
fn failure(popped: Popped<RecordBatch>) -> FailureKind {
    match popped {
        Popped::Ended(Ending::Failed(failure)) => failure.kind,
        other => panic!("a failure, not {other:?}"),
    }
}

#[test]
fn a_barrier_that_has_overtaken_what_can_not_be_read_is_given_and_then_the_failure() {
    let (mut producer, mut receiver) = receiver();
    push(&mut producer, FLAT, b"no region");
    let barrier = Barrier::unaligned(7);
    let small = small_of_barrier(&barrier, 0);
    producer
        .try_push_priority(small.kind, small.bytes())
        .unwrap();
    assert_eq!(receiver.poll_priority(), Some((barrier, 0)));
    let kind = failure(receiver.try_pop());
    assert!(matches!(kind, FailureKind::Undecodable(_)), "{kind}");
    assert_eq!(failure(receiver.try_pop()), kind);
}

#[test]
fn what_came_before_what_can_not_be_read_is_taken_though_a_barrier_has_overtaken_both() {
    let (mut producer, mut receiver) = receiver();
    let watermark = StreamElement::<()>::Watermark(Watermark::active(5));
    let small = small_of(&watermark, 0).unwrap();
    producer.push_small(small.kind, small.bytes()).unwrap();
    push(&mut producer, FLAT, b"no region");
    let barrier = Barrier::unaligned(7);
    let small = small_of_barrier(&barrier, 0);
    producer
        .try_push_priority(small.kind, small.bytes())
        .unwrap();
    assert_eq!(receiver.poll_priority(), Some((barrier, 1)));
    let popped = receiver.try_pop();
    let watermark = StreamElement::Watermark(Watermark::active(5));
    assert_eq!(popped, Popped::Element(watermark));
    failure(receiver.try_pop());
    assert!(producer.is_closed());
}

#[test]
fn a_message_of_no_kind_and_one_of_another_length_end_the_stream_and_the_sender_is_told() {
    for (kind, bytes) in [(99, &b""[..]), (WATERMARK, b"short"), (FLAT, b"")] {
        let (mut producer, mut receiver) = receiver();
        push(&mut producer, kind, bytes);
        failure(receiver.try_pop());
        assert!(producer.is_closed());
    }
}

#[test]
fn what_a_hostile_sender_puts_into_its_segment_is_an_error_and_nothing_else() {
    let seed = u64::from(std::process::id());
    eprintln!("seed {seed}");
    let mut random = seed;
    let mut next = move |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..300 {
        let (mut producer, mut receiver) = receiver();
        for _ in 0..next(8) {
            let kind = [1, 2, 16, 17, 18, 19, 32, 33, 34, 35, 36, 37, 77][next(13) as usize];
            let bytes: Vec<u8> = (0..next(200)).map(|_| next(256) as u8).collect();
            match next(4) {
                0 if bytes.len() <= 200 => drop(producer.try_push_priority(kind, &bytes)),
                _ => push(&mut producer, kind, &bytes),
            }
        }
        for _ in 0..20 {
            let _ = receiver.poll_priority();
            receiver.peek_until(u64::MAX, |_| {});
            drop(receiver.try_pop());
        }
    }
}

#[test]
fn much_is_seen_without_a_flush_and_little_with_it() {
    let (producer, mut consumer) = link(&Bell::descriptor().unwrap());
    let names = Names {
        edge: "edge".to_owned(),
        peer: "peer".to_owned(),
    };
    let options = EdgeOptions::named("edge");
    let codec = RecordBatch::codec();
    let mut outlet = Outlet::new(producer, codec, options, names, Gone::default());
    let mut push = |rows: usize, flushes: bool| {
        let times: ArrayRef = Arc::new(Int64Array::from_value(7, rows));
        let batch = RecordBatch::try_from_iter([("event_time", times)]).unwrap();
        outlet.push(StreamElement::Data(batch), 0).unwrap();
        if flushes {
            outlet.flush();
        }
        consumer.len()
    };
    assert_eq!(push(1, false), 0);
    assert_eq!(push(1, true), 2);
    assert_eq!(push(8192, false), 3);
    assert_eq!(push(4096, false), 3);
    assert_eq!(push(4096, false), 5);
}
