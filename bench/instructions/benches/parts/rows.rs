//! The record batches that the parts are given.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

/// So many rows of an event time, a key that repeats, a measure and a text.
///
/// # Panics
/// Never: the columns have one length.
pub(crate) fn batch(rows: usize) -> RecordBatch {
    let numbers = || 0..rows as i64;
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers().map(|n| n * 7)));
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(
        numbers().map(|n| n * 31 % 101),
    ));
    let measures = numbers().map(|n| (n % 3 > 0).then_some(n as f64 / 8.0));
    let measures: ArrayRef = Arc::new(measures.collect::<Float64Array>());
    let texts = numbers().map(|n| format!("row {}", n % 17));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let columns = [
        ("event_time", times),
        ("key", keys),
        ("measure", measures),
        ("text", texts),
    ];
    RecordBatch::try_from_iter(columns).expect("the columns have one length")
}
