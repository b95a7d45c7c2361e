//! Batches that are larger than what the segment takes at a time.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use ringway::edge::{Ending, FailureKind, RejectReason};
use ringway::element::StreamElement;
use ringway_tests::within::{LONG, until};

use crate::rig::{SEGMENT_BYTES, all, are_all, data, open};

/// Rows of a batch of ten segments.
const MANY: i64 = 10 * SEGMENT_BYTES as i64 / 8;

#[test]
fn a_large_batch_comes_in_pieces_and_in_order() {
    let (mut sender, mut receiver) = open();
    sender.push(data(0..5)).unwrap();
    sender.push(data(5..MANY)).unwrap();
    // Nothing more is asked of the sender.
    let waiting = std::thread::spawn(move || sender.finish_and_wait(LONG));
    let (batches, ending) = all(&mut receiver);
    waiting.join().unwrap().unwrap();
    assert!(batches.len() > 20);
    assert_eq!(ending, Ending::End);
    are_all(&batches, MANY);
}

#[test]
fn what_follows_a_large_batch_waits_for_it() {
    let (mut sender, mut receiver) = open();
    let sending = std::thread::spawn(move || {
        for part in 0..3 {
            sender.push(data(part * MANY..(part + 1) * MANY)).unwrap();
        }
        sender.push(data(3 * MANY..3 * MANY + 1)).unwrap();
        // A half that goes while the last of it is on its way.
        sender.finish().unwrap();
    });
    let (batches, ending) = all(&mut receiver);
    sending.join().unwrap();
    assert_eq!(ending, Ending::End);
    are_all(&batches, 3 * MANY + 1);
}

#[test]
fn a_sender_that_is_dropped_within_a_large_batch_has_failed() {
    let (mut sender, mut receiver) = open();
    sender.push(data(0..MANY)).unwrap();
    drop(sender);
    let (batches, ending) = all(&mut receiver);
    assert!(matches!(ending, Ending::Failed(_)), "{ending}");
    are_all(&batches, MANY);
}

#[test]
fn a_row_that_does_not_fit_is_told_to_both_ends() {
    let (mut sender, mut receiver) = open();
    let text = "x".repeat(SEGMENT_BYTES);
    let column = Arc::new(StringArray::from_iter_values(["a", &text])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
    sender.push(StreamElement::Data(batch)).unwrap();
    until(LONG, "the sender is told", || sender.is_closed());
    let rejected = sender.try_push(data(0..1)).unwrap_err();
    let RejectReason::Failed(failure) = rejected.reason else {
        panic!("failed, not {}", rejected.reason);
    };
    assert!(matches!(failure.kind, FailureKind::Unsendable(_)));
    assert!(failure.to_string().contains("segment_bytes"), "{failure}");
    let (_, ending) = all(&mut receiver);
    let Ending::Failed(failure) = ending else {
        panic!("failed, not {ending}");
    };
    assert!(
        matches!(failure.kind, FailureKind::PeerFailed(_)),
        "{failure}"
    );
}
