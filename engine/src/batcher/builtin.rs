//! Batchers of types that have columns of their own: one value, or a key and a value.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::Batcher;
use super::error::BatchError;
use super::scalar::Scalar;
use super::views::{PairView, ValueView, View};
use crate::batch::{EVENT_TIME_COLUMN, Row, Rows};

/// The name of the column that holds the value of a row.
pub const VALUE_COLUMN: &str = "value";

/// The name of the column that holds the key of a row.
pub const KEY_COLUMN: &str = "key";

/// Rows of one value: `event_time`, `value`.
#[derive(Debug)]
pub struct ValueBatcher<V> {
    schema: SchemaRef,
    value: PhantomData<fn() -> V>,
}

impl<V: Scalar> ValueBatcher<V> {
    /// The batcher; all of one type are alike.
    pub fn new() -> Self {
        Self {
            schema: schema_of([(VALUE_COLUMN, V::DATA_TYPE)]),
            value: PhantomData,
        }
    }
}

impl<V: Scalar> Default for ValueBatcher<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Scalar> Batcher<V> for ValueBatcher<V> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn build(&self, rows: &Rows<V>) -> Result<RecordBatch, BatchError> {
        let values = V::array(rows.iter().map(|row| &row.value))?;
        let columns = vec![event_time_array(rows), values];
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn parse(&self, batch: &RecordBatch) -> Result<Rows<V>, BatchError> {
        let view = ValueView::<V>::of(batch)?;
        Ok(view
            .iter()
            .map(|(event_time, value)| Row {
                value: V::to_owned(value),
                event_time,
            })
            .collect())
    }
}

/// Rows of a key and a value: `event_time`, `key`, `value`.
#[derive(Debug)]
pub struct PairBatcher<K, V> {
    schema: SchemaRef,
    pair: PhantomData<fn() -> (K, V)>,
}

impl<K: Scalar, V: Scalar> PairBatcher<K, V> {
    /// The batcher; all of one type are alike.
    pub fn new() -> Self {
        Self {
            schema: schema_of([(KEY_COLUMN, K::DATA_TYPE), (VALUE_COLUMN, V::DATA_TYPE)]),
            pair: PhantomData,
        }
    }
}

impl<K: Scalar, V: Scalar> Default for PairBatcher<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Scalar, V: Scalar> Batcher<(K, V)> for PairBatcher<K, V> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn build(&self, rows: &Rows<(K, V)>) -> Result<RecordBatch, BatchError> {
        let keys = K::array(rows.iter().map(|row| &row.value.0))?;
        let values = V::array(rows.iter().map(|row| &row.value.1))?;
        let columns = vec![event_time_array(rows), keys, values];
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn parse(&self, batch: &RecordBatch) -> Result<Rows<(K, V)>, BatchError> {
        let view = PairView::<K, V>::of(batch)?;
        Ok(view
            .iter()
            .map(|(event_time, (key, value))| Row {
                value: (K::to_owned(key), V::to_owned(value)),
                event_time,
            })
            .collect())
    }
}

/// The schema with `event_time` ahead of the given columns, none of which holds nulls.
pub(super) fn schema_of<const N: usize>(columns: [(&str, DataType); N]) -> SchemaRef {
    let event_time = Field::new(EVENT_TIME_COLUMN, DataType::Int64, true);
    let columns = columns.map(|(name, data_type)| Field::new(name, data_type, false));
    let fields: Vec<Field> = std::iter::once(event_time).chain(columns).collect();
    Arc::new(Schema::new(fields))
}

/// Column 0. Rows without an event time are null over a zero, and where there are none the
/// array has no validity buffer: the bytes of a batch depend on its rows only.
pub(super) fn event_time_array<T>(rows: &Rows<T>) -> ArrayRef {
    let mut validity = NullBufferBuilder::new(rows.len());
    let mut times = Vec::with_capacity(rows.len());
    for row in rows {
        validity.append(row.event_time.is_some());
        times.push(row.event_time.unwrap_or(0));
    }
    Arc::new(Int64Array::new(times.into(), validity.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Array;

    #[test]
    fn rows_without_event_time_are_null_over_zero() {
        let rows = Rows::from(vec![Row::at(7, 1_i64), Row::untimed(2)]);
        let times = event_time_array(&rows);
        let times = times.as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!((times.value(0), times.value(1)), (7, 0));
        assert!(times.is_valid(0) && times.is_null(1));

        let timed = event_time_array(&Rows::from(vec![Row::at(7, 1_i64)]));
        assert!(timed.nulls().is_none());
    }

    #[test]
    fn an_empty_batch_has_the_schema_and_comes_back_empty() {
        let batcher = PairBatcher::<String, i64>::new();
        let batch = batcher.build(&Rows::new()).unwrap();
        assert_eq!(batch.schema(), batcher.schema());
        assert!(batcher.parse(&batch).unwrap().is_empty());
    }

    #[test]
    fn a_batch_of_another_type_is_refused() {
        let batch = ValueBatcher::<i64>::new().build(&Rows::new()).unwrap();
        let refused = ValueBatcher::<i32>::new().parse(&batch);
        assert!(matches!(refused, Err(BatchError::Schema { column: 1, .. })));
        let refused = PairBatcher::<i64, i64>::new().parse(&batch);
        assert!(matches!(refused, Err(BatchError::Schema { column: 1, .. })));
    }
}
