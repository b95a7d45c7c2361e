//! Batches that are larger than what the segment takes at a time.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use ringway::edge::{Ending, Popped, Receiver};
use ringway::element::StreamElement;
use ringway_tests::within::LONG;

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

/// The half has lent what it pushes with by then.
#[test]
fn a_receiver_that_goes_within_a_large_batch_is_told_to_its_sender() {
    type Goes = fn(Receiver<RecordBatch>);
    let ways: [(Goes, &str); 3] = [
        (Receiver::close, "closed"),
        (|receiver| receiver.fail("why"), "why"),
        (drop, "gone"),
    ];
    for (go, told) in ways {
        let (mut sender, mut receiver) = open();
        sender.push(data(0..MANY)).unwrap();
        assert!(matches!(receiver.pop_timeout(LONG), Popped::Element(_)));
        go(receiver);
        let pushing = std::thread::spawn(move || {
            let reason = sender.push(data(0..1)).unwrap_err().reason;
            assert!(sender.is_closed());
            let finished = sender.finish();
            (reason, finished)
        });
        let (reason, finished) = pushing.join().unwrap();
        assert!(reason.to_string().contains(told), "{reason}");
        assert_eq!(finished, Err(reason));
    }
}

#[test]
fn a_sender_that_is_ready_for_many_narrow_columns_takes_them() {
    let (mut sender, _receiver) = open();
    let text = || Arc::new(StringArray::from_iter_values(["a"])) as ArrayRef;
    let columns = (0..60).map(|number| (number.to_string(), text()));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let element = StreamElement::Data(batch);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut refused = 0;
    for _ in 0..1_000 {
        let is_ready = std::pin::pin!(sender.ready(&element)).poll(&mut context);
        match (is_ready.is_ready(), sender.try_push(element.clone())) {
            (_, Ok(())) => refused = 0,
            (true, Err(_)) => refused += 1,
            (false, Err(_)) => return,
        }
        assert!(
            refused <= 1,
            "it says that there is room, and there is none"
        );
    }
    panic!("it never fills");
}
