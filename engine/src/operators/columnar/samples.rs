//! Batches that several tests use.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

use super::BatchPredicate;

/// A batch of an event time (always 7) and one int64 column.
pub(crate) fn numbers(values: &[Option<i64>]) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("event_time", DataType::Int64, true),
        Field::new("number", DataType::Int64, true),
    ]);
    let values: Int64Array = values.iter().copied().collect();
    let times = Int64Array::from(vec![7; values.len()]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(times), Arc::new(values)])
        .expect("columns and schema agree")
}

/// Whether the number of [`numbers`] is even.
pub(crate) fn even_numbers() -> BatchPredicate {
    Box::new(|batch| {
        let values = batch.column(1).as_primitive::<Int64Type>();
        Ok(BooleanArray::from_unary(values, |value| value % 2 == 0))
    })
}

/// A batch of `rows` rows and no column.
pub(crate) fn zero_columns(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)
        .expect("a row count is enough")
}

/// Two columns of the same name beside the event time, and metadata, in two rows.
pub(crate) fn duplicate_names() -> RecordBatch {
    let schema = Schema::new_with_metadata(
        vec![
            Field::new("event_time", DataType::Int64, true),
            Field::new("same", DataType::Int64, true),
            Field::new("same", DataType::Int64, true),
        ],
        HashMap::from([("origin".to_owned(), "t1".to_owned())]),
    );
    let column = |values: [i64; 2]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    RecordBatch::try_new(
        Arc::new(schema),
        vec![column([0, 1]), column([1, 2]), column([3, 4])],
    )
    .expect("columns and schema agree")
}
