//! Edges with a small segment, and batches that say what is in them.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, Sender};
use ringway::element::StreamElement;
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::subjects::{SHARED, SharedEdge};
use ringway_tests::within::LONG;

/// Bytes of the segments.
pub(crate) const SEGMENT_BYTES: usize = 256 << 10;

pub(crate) fn small() -> SharedEdge {
    SharedEdge(
        SHARED
            .0
            .with(|remote| remote.shared.segment_bytes = Some(SEGMENT_BYTES)),
    )
}

pub(crate) fn open() -> (Sender<RecordBatch>, Receiver<RecordBatch>) {
    small().open(EdgeOptions::named("edge"))
}

pub(crate) fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    let column = Arc::new(Int64Array::from_iter_values(range)) as ArrayRef;
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

pub(crate) fn data(range: std::ops::Range<i64>) -> StreamElement<RecordBatch> {
    StreamElement::Data(numbers(range))
}

pub(crate) fn values(batch: &RecordBatch) -> &[i64] {
    batch.column(0).as_primitive::<Int64Type>().values()
}

/// Takes everything up to the end: all batches, and how it ended.
pub(crate) fn all(receiver: &mut Receiver<RecordBatch>) -> (Vec<RecordBatch>, Ending) {
    let mut batches = Vec::new();
    loop {
        match receiver.pop_timeout(LONG) {
            Popped::Element(StreamElement::Data(batch)) => batches.push(batch),
            Popped::Element(other) => panic!("data, not {other:?}"),
            Popped::Ended(ending) => return (batches, ending),
            Popped::Empty => panic!("it hangs"),
        }
    }
}

/// The numbers from 0 up to `end`, none missing, none twice.
#[track_caller]
pub(crate) fn are_all(batches: &[RecordBatch], end: i64) {
    let found = batches.iter().flat_map(values);
    assert!(found.copied().eq(0..end));
}

/// What the process holds of the system: descriptors, and segments that are mapped.
pub(crate) fn held() -> (usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let segments = maps.lines().filter(|line| line.contains("memfd:")).count();
    (descriptors, segments)
}
