//! What columnar operators share: event times, selecting rows, and the keys of rows.
//!
//! Columns are found by position, never by name: a schema may hold a name twice. Whatever
//! selects rows keeps the schema with its metadata, and the row count of a batch that has no
//! column.

mod key;
mod select;

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::compute;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use crate::batch::EVENT_TIME_COLUMN;
use crate::element::EventTime;

pub use key::KeyColumns;
pub use select::{filter_batch, split_by_target, take_rows};

/// Why a columnar operator can't work on a batch.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// Column 0 is not the event time.
    #[error("column 0 is {found}, and must be `event_time` Int64")]
    EventTime {
        /// Name and type of column 0, if there is one.
        found: String,
    },
    /// A key without a column.
    #[error("a key needs one column at least")]
    NoKey,
    /// The schema has no such column.
    #[error("key column {column} of a batch that has {columns}")]
    NoColumn {
        /// The position of the key column.
        column: usize,
        /// Columns that there are.
        columns: usize,
    },
    /// Rows can't be keyed by a column of this type.
    #[error(
        "column {column} `{name}` is {data_type}, which can't be a key: \
         use integers, booleans, floats, dates, times, text or bytes"
    )]
    KeyType {
        /// The position of the key column.
        column: usize,
        /// Its name.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// The key column of a batch has not the type that it had in the schema.
    #[error("key column {column} is {found} in this batch, and {expected} in the plan")]
    KeyChanged {
        /// The position of the key column.
        column: usize,
        /// The type in the schema that the key was bound to.
        expected: DataType,
        /// The type in the batch.
        found: DataType,
    },
    /// Arrow refused what it was given.
    #[error("arrow: {0}")]
    Arrow(#[from] ArrowError),
}

/// The event times of a batch: its column 0.
///
/// # Errors
///
/// [`ColumnError::EventTime`] where column 0 has another name or type, or there is none: the
/// batch did not come from a source or batcher of ours, so correct what built it.
pub fn event_times(batch: &RecordBatch) -> Result<&Int64Array, ColumnError> {
    let field = batch.schema_ref().fields().first();
    let times = match field {
        Some(field) if field.name() == EVENT_TIME_COLUMN => batch.column(0).as_any().downcast_ref(),
        _ => None,
    };
    times.ok_or_else(|| ColumnError::EventTime {
        found: field.map_or_else(
            || "missing".into(),
            |field| format!("`{}` {}", field.name(), field.data_type()),
        ),
    })
}

/// The latest event time of a batch; none where no row has one, or no column holds it.
pub fn max_event_time(batch: &RecordBatch) -> Option<EventTime> {
    event_times(batch).ok().and_then(compute::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int32Array, RecordBatchOptions};
    use arrow::datatypes::Schema;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn event_times_are_column_0_and_nothing_else() {
        let times = Arc::new(Int64Array::from(vec![Some(3), None, Some(-1)]));
        let good = batch(vec![("event_time", times.clone()), ("v", times.clone())]);
        assert_eq!(event_times(&good).unwrap(), times.as_ref());
        assert_eq!(max_event_time(&good), Some(3));

        let second = batch(vec![("v", times.clone()), ("event_time", times)]);
        let refused = event_times(&second).unwrap_err().to_string();
        assert!(refused.contains("`v` Int64"), "{refused}");
        assert_eq!(max_event_time(&second), None);

        let narrow = Arc::new(Int32Array::from(vec![1]));
        assert!(event_times(&batch(vec![("event_time", narrow)])).is_err());
    }

    #[test]
    fn a_batch_without_columns_or_times_has_no_latest_event_time() {
        let rows = RecordBatchOptions::new().with_row_count(Some(5));
        let none = Arc::new(Schema::empty());
        let none = RecordBatch::try_new_with_options(none, vec![], &rows).unwrap();
        assert!(event_times(&none).is_err());
        assert_eq!(max_event_time(&none), None);

        let times = Arc::new(Int64Array::from(vec![None, None]));
        assert_eq!(max_event_time(&batch(vec![("event_time", times)])), None);
    }
}
