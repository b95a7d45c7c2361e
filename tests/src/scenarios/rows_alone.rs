//! B23: batches whose rows no column holds.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use ringway::edge::{Ending, Popped, RejectReason, Transport};
use ringway::element::{Barrier, StreamElement};

use super::{receive, send};
use crate::conformance::EdgeSubject;
use crate::conformance::elements::room_for;
use crate::within::{LONG, until};

fn rows(count: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)
        .expect("rows need no column")
}

/// Slices of it too.
pub fn b23_a_batch_without_columns_has_its_rows_behind_the_edge<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<RecordBatch>(room_for(4));
    for (batch, expected) in [(rows(5), 5), (rows(0), 0), (rows(5).slice(1, 3), 3)] {
        send(&mut sender, &batch);
        let arrived = receive(&mut receiver);
        assert_eq!((arrived.num_rows(), arrived.num_columns()), (expected, 0));
    }
    assert_eq!(sender.metrics().rows, 8);
}

/// An edge may have a bound for the rows of a batch; no counter may overflow.
pub fn b23_rows_that_no_column_holds_are_counted_exactly_or_refused<S: EdgeSubject>(subject: &S) {
    let many = 1 << 62;
    let (mut sender, mut receiver) = subject.open::<RecordBatch>(room_for(4));
    for times in 1..=3 {
        match sender.try_push(StreamElement::Data(rows(many))) {
            Ok(()) => assert_eq!(sender.metrics().rows, times << 62),
            Err(rejected) => {
                assert_eq!(rejected.element, StreamElement::Data(rows(many)));
                assert!(matches!(rejected.reason, RejectReason::Failed(_)));
                assert_eq!(sender.metrics().rows, (times - 1) << 62);
            }
        }
        match receiver.pop_timeout(LONG) {
            Popped::Element(StreamElement::Data(batch)) => assert_eq!(batch.num_rows(), many),
            Popped::Ended(Ending::Failed(failure)) if sender.transport() != Transport::Local => {
                until(LONG, "the sender is told", || sender.is_closed());
                let reason = sender.finish().expect_err("it has failed").to_string();
                assert!(reason.contains("rows"), "{reason}, {failure}");
                return;
            }
            other => panic!("all rows or an error, not {other:?}"),
        }
    }
}

/// What a checkpoint would save of them has their rows.
pub fn b23_rows_without_columns_are_in_flight_under_a_barrier_that_overtakes<S: EdgeSubject>(
    subject: &S,
) {
    let (mut sender, mut receiver) = subject.open::<RecordBatch>(room_for(4));
    send(&mut sender, &rows(5));
    super::arrived(&receiver, 1);
    sender
        .try_push_priority(Barrier::unaligned(1))
        .expect("the first");
    let overtaken = super::overtaken(&mut receiver);
    assert_eq!(
        overtaken
            .iter()
            .map(RecordBatch::num_rows)
            .collect::<Vec<_>>(),
        [5]
    );
    assert_eq!(receive(&mut receiver).num_rows(), 5);
}
