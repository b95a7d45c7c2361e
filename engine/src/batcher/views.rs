//! Rows read where they lie: typed, borrowed views over the columns of a batch.

use arrow::array::{Array, BinaryArray, Int64Array, RecordBatch};
use arrow::datatypes::DataType;

use super::binary::VALUE_BYTES_COLUMN;
use super::builtin::{KEY_COLUMN, VALUE_COLUMN};
use super::error::BatchError;
use super::scalar::Scalar;
use super::schema::{Column, check_columns};
use crate::batch::EVENT_TIME_COLUMN;
use crate::element::EventTime;

/// A typed view over a record batch.
pub trait View<'a>: Sized {
    /// A value, borrowed from the batch where it is more than a number.
    type Value;

    /// The view of a batch, whose schema and nulls are checked here, once for all rows.
    ///
    /// # Errors
    ///
    /// [`BatchError::Schema`] where the batch has another schema and [`BatchError::Null`] where
    /// a value is missing: whoever sent the batch uses another type.
    fn of(batch: &'a RecordBatch) -> Result<Self, BatchError>;

    /// The event times of all rows.
    fn event_times(&self) -> &'a Int64Array;

    /// The value of a row.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    fn value(&self, row: usize) -> Self::Value;

    /// Rows in the batch.
    fn len(&self) -> usize {
        self.event_times().len()
    }

    /// Whether the batch has no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The event time of a row, if it has one.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    fn event_time(&self, row: usize) -> Option<EventTime> {
        let times = self.event_times();
        times.is_valid(row).then(|| times.value(row))
    }

    /// Event time and value of each row, in order.
    fn iter(&self) -> impl ExactSizeIterator<Item = (Option<EventTime>, Self::Value)> {
        (0..self.len()).map(|row| (self.event_time(row), self.value(row)))
    }
}

/// A type whose own batcher builds batches that can be viewed.
pub trait Viewed {
    /// The view over such a batch.
    type View<'a>: View<'a>;
}

/// The view over a batch of `T`.
///
/// # Errors
///
/// As [`View::of`].
pub fn view<T: Viewed>(batch: &RecordBatch) -> Result<T::View<'_>, BatchError> {
    View::of(batch)
}

/// The view over rows of one value.
#[derive(Debug)]
pub struct ValueView<'a, V: Scalar> {
    event_times: &'a Int64Array,
    values: &'a V::Array,
}

impl<'a, V: Scalar> ValueView<'a, V> {
    /// All values.
    pub fn values(&self) -> &'a V::Array {
        self.values
    }
}

impl<'a, V: Scalar> View<'a> for ValueView<'a, V> {
    type Value = V::Ref<'a>;

    fn of(batch: &'a RecordBatch) -> Result<Self, BatchError> {
        let value = Column {
            name: VALUE_COLUMN,
            data_type: &V::DATA_TYPE,
            nullable: false,
        };
        check_columns(batch.schema_ref(), [EVENT_TIME, value])?;
        Ok(Self {
            event_times: typed(batch, 0)?,
            values: without_nulls(batch, 1)?,
        })
    }

    fn event_times(&self) -> &'a Int64Array {
        self.event_times
    }

    fn value(&self, row: usize) -> V::Ref<'a> {
        V::at(self.values, row)
    }
}

/// The view over rows of a key and a value.
#[derive(Debug)]
pub struct PairView<'a, K: Scalar, V: Scalar> {
    event_times: &'a Int64Array,
    keys: &'a K::Array,
    values: &'a V::Array,
}

impl<'a, K: Scalar, V: Scalar> PairView<'a, K, V> {
    /// All keys.
    pub fn keys(&self) -> &'a K::Array {
        self.keys
    }

    /// All values.
    pub fn values(&self) -> &'a V::Array {
        self.values
    }
}

impl<'a, K: Scalar, V: Scalar> View<'a> for PairView<'a, K, V> {
    type Value = (K::Ref<'a>, V::Ref<'a>);

    fn of(batch: &'a RecordBatch) -> Result<Self, BatchError> {
        let key = Column {
            name: KEY_COLUMN,
            data_type: &K::DATA_TYPE,
            nullable: false,
        };
        let value = Column {
            name: VALUE_COLUMN,
            data_type: &V::DATA_TYPE,
            nullable: false,
        };
        check_columns(batch.schema_ref(), [EVENT_TIME, key, value])?;
        Ok(Self {
            event_times: typed(batch, 0)?,
            keys: without_nulls(batch, 1)?,
            values: without_nulls(batch, 2)?,
        })
    }

    fn event_times(&self) -> &'a Int64Array {
        self.event_times
    }

    fn value(&self, row: usize) -> (K::Ref<'a>, V::Ref<'a>) {
        (K::at(self.keys, row), V::at(self.values, row))
    }
}

/// The view over rows whose values are the bytes of a codec.
#[derive(Debug)]
pub struct BytesView<'a> {
    event_times: &'a Int64Array,
    values: &'a BinaryArray,
}

impl<'a> View<'a> for BytesView<'a> {
    type Value = &'a [u8];

    fn of(batch: &'a RecordBatch) -> Result<Self, BatchError> {
        let value = Column {
            name: VALUE_BYTES_COLUMN,
            data_type: &DataType::Binary,
            nullable: false,
        };
        check_columns(batch.schema_ref(), [EVENT_TIME, value])?;
        Ok(Self {
            event_times: typed(batch, 0)?,
            values: without_nulls(batch, 1)?,
        })
    }

    fn event_times(&self) -> &'a Int64Array {
        self.event_times
    }

    fn value(&self, row: usize) -> &'a [u8] {
        self.values.value(row)
    }
}

macro_rules! viewed {
    ($($type:ty => $view:ty),*) => {$(
        impl Viewed for $type {
            type View<'a> = $view;
        }
    )*};
}

viewed!(
    i32 => ValueView<'a, i32>,
    i64 => ValueView<'a, i64>,
    u32 => ValueView<'a, u32>,
    u64 => ValueView<'a, u64>,
    String => ValueView<'a, String>,
    (i64, i64) => PairView<'a, i64, i64>,
    (String, i64) => PairView<'a, String, i64>
);

const EVENT_TIME: Column<'static> = Column {
    name: EVENT_TIME_COLUMN,
    data_type: &DataType::Int64,
    nullable: true,
};

/// A column as the array of its type.
fn typed<A: Array + 'static>(batch: &RecordBatch, column: usize) -> Result<&A, BatchError> {
    let array = batch.column(column);
    let typed = array.as_any().downcast_ref();
    typed.ok_or_else(|| BatchError::Schema {
        column,
        expected: std::any::type_name::<A>().into(),
        found: array.data_type().to_string(),
    })
}

/// As [`typed`]. A schema that forbids nulls does not keep a peer from sending some.
fn without_nulls<A: Array + 'static>(batch: &RecordBatch, column: usize) -> Result<&A, BatchError> {
    let array = typed::<A>(batch, column)?;
    match array.nulls() {
        Some(nulls) if nulls.null_count() > 0 => {
            let row = nulls.iter().position(|valid| !valid).unwrap_or(0);
            Err(BatchError::Null { column, row })
        }
        _ => Ok(array),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema};

    use crate::batch::{Row, Rows};
    use crate::batcher::{Batchable, BinaryBatcher, choose_batcher};

    fn built<T: Batchable>(rows: Vec<Row<T>>) -> RecordBatch {
        choose_batcher(None).build(&Rows::from(rows)).unwrap()
    }

    #[test]
    fn a_view_borrows_what_the_rows_hold() {
        let batch = built(vec![
            Row::at(5, ("a".to_string(), 1_i64)),
            Row::untimed(("漢\0".to_string(), i64::MIN)),
        ]);
        let view = view::<(String, i64)>(&batch).unwrap();
        let rows: Vec<_> = view.iter().collect();
        assert_eq!(rows, [(Some(5), ("a", 1)), (None, ("漢\0", i64::MIN))]);
        assert_eq!(view.values().values(), &[1, i64::MIN]);
        assert_eq!(view.keys().value(0), "a");
    }

    #[test]
    fn a_view_of_a_slice_sees_the_slice() {
        let batch = built((0..10_i64).map(|n| Row::at(n, n * n)).collect());
        let slice = batch.slice(3, 2);
        let view = view::<i64>(&slice).unwrap();
        assert_eq!(view.len(), 2);
        assert_eq!((view.event_time(0), view.value(1)), (Some(3), 16));
    }

    #[test]
    fn bytes_are_viewed_without_decoding_them() {
        let rows = Rows::from(vec![Row::untimed(vec![0xff_u8, 0xfe]), Row::at(1, vec![])]);
        let batch = BinaryBatcher::plain();
        let batch = crate::batcher::Batcher::build(&batch, &rows).unwrap();
        let view = BytesView::of(&batch).unwrap();
        assert_eq!((view.value(0), view.value(1)), (&[0xff, 0xfe][..], &[][..]));
        assert!(!view.is_empty());
    }

    #[test]
    fn a_null_where_none_may_be_is_an_error_with_its_row() {
        let field = Field::new(VALUE_COLUMN, DataType::Int64, true);
        let values = Int64Array::from(vec![Some(1), None, None]);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(values)]).unwrap();
        let refused = without_nulls::<Int64Array>(&batch, 0);
        assert!(matches!(
            refused,
            Err(BatchError::Null { column: 0, row: 1 })
        ));
        assert!(without_nulls::<Int64Array>(&batch.slice(0, 1), 0).is_ok());
    }

    #[test]
    fn a_view_of_another_type_is_refused() {
        let batch = built(vec![Row::untimed(1_i64)]);
        assert!(view::<u64>(&batch).is_err());
        assert!(view::<(i64, i64)>(&batch).is_err());
        assert!(BytesView::of(&batch).is_err());
    }
}
