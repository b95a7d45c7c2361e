//! The batches that carry a column.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use ringway_tests::columns::ROWS;

/// Positions in a batch. The carried column stands between two others of its name.
pub(crate) const KEY: usize = 1;
pub(crate) const ID: usize = 2;
pub(crate) const CARRIED: usize = 4;

/// What is sent.
pub(crate) struct Input {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Input {
    /// All rows by their ids, which are their positions in the column.
    pub(crate) fn ids(&self) -> Vec<i64> {
        self.ids_that(|_| true)
    }

    pub(crate) fn ids_that(&self, wanted: impl Fn(i64) -> bool) -> Vec<i64> {
        let rows = self
            .batches
            .iter()
            .map(RecordBatch::num_rows)
            .sum::<usize>() as i64;
        let first = ROWS as i64 - rows;
        (first..ROWS as i64).filter(|&id| wanted(id)).collect()
    }
}

/// Two batches of uneven size with all rows, or with those from the fourth on, as slices.
pub(crate) fn input(column: &ArrayRef, sliced: bool) -> Input {
    let whole = batch(column);
    let schema = whole.schema();
    let (first, middle) = if sliced { (3, 7) } else { (0, 5) };
    let batches = vec![
        whole.slice(first, middle - first),
        whole.slice(middle, ROWS - middle),
    ];
    Input { schema, batches }
}

fn pairs(of: &str) -> HashMap<String, String> {
    HashMap::from([
        ("origin".to_owned(), of.to_owned()),
        (String::new(), String::new()),
    ])
}

fn batch(column: &ArrayRef) -> RecordBatch {
    let int64 = |name: &str, nullable| Field::new(name, DataType::Int64, nullable);
    let same = |of: &str| int64("same", true).with_metadata(pairs(of));
    let carried = Field::new("same", column.data_type().clone(), true);
    let fields = vec![
        int64("event_time", true),
        int64("key", false),
        int64("id", false).with_metadata(pairs("the id")),
        same("the one before"),
        carried.with_metadata(pairs("the carried")),
        same("the one after"),
    ];
    let schema = Schema::new_with_metadata(fields, pairs("the batch"));
    let ids = |value: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(value)))
    };
    let columns = vec![
        ids(|id| id),
        ids(|id| id % 3),
        ids(|id| id),
        ids(|id| -id),
        Arc::clone(column),
        ids(|id| 100 + id),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}
