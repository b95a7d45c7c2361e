//! Senders that write what no sender writes, and when what they write is seen.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use ringway_shm::Bell;
use ringway_shm::link::{Consumer, DESCRIPTORS, Incoming, LinkConfig, Outgoing, Producer};

use super::entry::{small_of, small_of_barrier};
use super::outlet::{Gone, Outlet};
use super::parts::{PART_BYTES_MIN, region_bytes_max};
use super::receiver::{Receiver, ReceiverParts};
use crate::edge::remote::{Connection, Names};
use crate::edge::{EdgeOptions, Ending, FailureKind, Popped};
use crate::element::{Barrier, StreamElement, Watermark};
use crate::limits::IPC_BODY_BYTES_MAX;
use crate::wire::Wired;
use crate::wire::region::{RegionEncoder, RegionKind};

/// The kinds of messages.
const FLAT: u32 = 1;
const PART: u32 = 3;
const LAST_FLAT: u32 = 4;
const WATERMARK: u32 = 16;
const END: u32 = 32;
const FAILED: u32 = 36;

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

/// A region of one row, cut into parts.
fn parts_of_a_row() -> (RecordBatch, Vec<(u32, Vec<u8>)>) {
    let text = "x".repeat(3 * PART_BYTES_MIN);
    let column = Arc::new(StringArray::from_iter_values([text])) as ArrayRef;
    let row = RecordBatch::try_from_iter([("text", column)]).unwrap();
    let mut encoder = RegionEncoder::new();
    let mut region = Vec::new();
    assert_eq!(encoder.prepare(&row).unwrap().kind, RegionKind::Flat);
    encoder.write(0, &mut region);
    let mut parts: Vec<_> = region
        .chunks(PART_BYTES_MIN)
        .map(|part| (PART, part.to_vec()))
        .collect();
    parts.last_mut().unwrap().0 = LAST_FLAT;
    assert!(parts.len() > 3);
    (row, parts)
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
fn a_barrier_that_overtakes_parts_counts_the_row_and_not_them() {
    let barrier = Barrier::unaligned(7);
    let small = small_of_barrier(&barrier, 0);
    let watermark = small_of(&StreamElement::<()>::Watermark(Watermark::active(5)), 0).unwrap();
    // How many parts are popped before the barrier is asked for, and whether it comes ahead of them.
    for (popped, is_ahead) in [(0, false), (2, false), (0, true), (2, true)] {
        let (row, parts) = parts_of_a_row();
        let (mut producer, mut receiver) = receiver();
        producer
            .push_small(watermark.kind, watermark.bytes())
            .unwrap();
        producer.flush();
        assert!(matches!(receiver.try_pop(), Popped::Element(_)));
        if is_ahead {
            producer
                .try_push_priority(small.kind, small.bytes())
                .unwrap();
        }
        let (before, behind) = parts.split_at(popped);
        before
            .iter()
            .for_each(|(kind, part)| push(&mut producer, *kind, part));
        if popped > 0 {
            assert_eq!(receiver.try_pop(), Popped::Empty);
        }
        behind
            .iter()
            .for_each(|(kind, part)| push(&mut producer, *kind, part));
        if !is_ahead {
            producer
                .try_push_priority(small.kind, small.bytes())
                .unwrap();
        }
        let position = if is_ahead { 1 } else { 2 };
        assert_eq!(receiver.poll_priority(), Some((barrier, position)));
        let mut peeked = 0;
        receiver.peek_until(position, |_| peeked += 1);
        assert_eq!(peeked, position - 1);
        assert_eq!(
            receiver.try_pop(),
            Popped::Element(StreamElement::Data(row))
        );
        assert_eq!(
            (receiver.position(), receiver.try_pop()),
            (2, Popped::Empty)
        );
    }
}

#[test]
fn a_sender_that_ends_within_a_row_has_not_ended_its_stream() {
    let (_, parts) = parts_of_a_row();
    for (kind, bytes) in [
        (END, &b""[..]),
        (FLAT, b"x"),
        (WATERMARK, &[0; 16]),
        (FAILED, b"why"),
    ] {
        let (mut producer, mut receiver) = receiver();
        push(&mut producer, PART, &parts[0].1);
        push(&mut producer, kind, bytes);
        let failure = failure(receiver.try_pop());
        match kind {
            FAILED => assert_eq!(failure, FailureKind::PeerFailed("why".to_owned())),
            _ => assert!(matches!(failure, FailureKind::Protocol(_)), "{failure}"),
        }
    }
}

#[test]
fn parts_that_never_end_are_refused_when_they_are_more_than_the_edge_holds() {
    let (mut producer, mut receiver) = receiver();
    let part = vec![0; 256 << 10];
    let mut pushed = 0;
    let kind = loop {
        match producer.is_closed() {
            false => push(&mut producer, PART, &part),
            true => break failure(receiver.try_pop()),
        }
        pushed += part.len();
        assert!(pushed <= IPC_BODY_BYTES_MAX + part.len());
        if let Popped::Ended(ending) = receiver.try_pop() {
            break failure(Popped::Ended(ending));
        }
    };
    assert!(kind.to_string().contains("edge_bytes_max"), "{kind}");
    // A million of one byte each would take long to go through.
    let (mut producer, mut receiver) = self::receiver();
    push(&mut producer, PART, b"x");
    assert!(matches!(
        failure(receiver.try_pop()),
        FailureKind::Protocol(_)
    ));
}

#[test]
fn what_a_hostile_sender_puts_into_its_segment_is_an_error_and_nothing_else() {
    let seed = std::env::var("RINGWAY_SEED").ok();
    let seed = seed.map_or(u64::from(std::process::id()), |seed| seed.parse().unwrap());
    eprintln!("RINGWAY_SEED={seed}");
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
            let kind =
                [1, 2, 3, 4, 5, 16, 17, 18, 19, 32, 33, 34, 35, 36, 37, 77][next(16) as usize];
            let length = [200, 10_000][next(2) as usize];
            let bytes: Vec<u8> = (0..next(length)).map(|_| next(256) as u8).collect();
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
    let bytes_max = region_bytes_max(&options);
    let mut outlet = Outlet::new(producer, codec, options, names, Gone::default(), bytes_max);
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
