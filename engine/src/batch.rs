//! What a data element holds: an Arrow record batch, or typed rows.

use arrow::array::RecordBatch;

use crate::element::EventTime;

mod bytes;
mod either;

pub use either::Either;

use bytes::slice_bytes;

/// The name of column 0 of every columnar batch: int64 milliseconds, nullable.
pub const EVENT_TIME_COLUMN: &str = "event_time";

/// What a data element may hold.
///
/// A batch is moved along an edge, never copied; it is cloned only where one batch goes to
/// several places, so cloning should be cheap (for `RecordBatch` it counts references).
pub trait Payload: Clone + Send + 'static {
    /// Rows in the batch.
    fn rows(&self) -> usize;

    /// Bytes of memory that the rows of the batch take, counted against byte bounds. A slice
    /// of a large batch counts its own rows.
    fn bytes(&self) -> usize;
}

impl Payload for RecordBatch {
    fn rows(&self) -> usize {
        self.num_rows()
    }

    fn bytes(&self) -> usize {
        self.columns()
            .iter()
            .map(|column| slice_bytes(column.as_ref()))
            .sum()
    }
}

/// One typed row with its optional event time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Row<T> {
    /// The value.
    pub value: T,
    /// Milliseconds since the Unix epoch, if the row has an event time.
    pub event_time: Option<EventTime>,
}

impl<T> Row<T> {
    /// A row with an event time.
    pub const fn at(event_time: EventTime, value: T) -> Self {
        Self {
            value,
            event_time: Some(event_time),
        }
    }

    /// A row without an event time.
    pub const fn untimed(value: T) -> Self {
        Self {
            value,
            event_time: None,
        }
    }
}

/// A batch of typed rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows<T> {
    rows: Vec<Row<T>>,
}

impl<T> Rows<T> {
    /// An empty batch.
    pub const fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// An empty batch with room for `capacity` rows.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            rows: Vec::with_capacity(capacity),
        }
    }

    /// Adds a row at the end.
    pub fn push(&mut self, row: Row<T>) {
        self.rows.push(row);
    }

    /// Rows in the batch.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the batch has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Row<T>> {
        self.rows.iter()
    }

    /// The rows, in order, to change in place.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Row<T>> {
        self.rows.iter_mut()
    }

    /// The rows as a vector.
    pub fn into_vec(self) -> Vec<Row<T>> {
        self.rows
    }

    /// Keeps the rows for which `keep` says so.
    pub fn retain(&mut self, keep: impl FnMut(&Row<T>) -> bool) {
        self.rows.retain(keep);
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<Vec<Row<T>>> for Rows<T> {
    fn from(rows: Vec<Row<T>>) -> Self {
        Self { rows }
    }
}

impl<T> FromIterator<Row<T>> for Rows<T> {
    fn from_iter<I: IntoIterator<Item = Row<T>>>(rows: I) -> Self {
        Self {
            rows: rows.into_iter().collect(),
        }
    }
}

impl<T> Extend<Row<T>> for Rows<T> {
    fn extend<I: IntoIterator<Item = Row<T>>>(&mut self, rows: I) {
        self.rows.extend(rows);
    }
}

impl<T> IntoIterator for Rows<T> {
    type Item = Row<T>;
    type IntoIter = std::vec::IntoIter<Row<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Rows<T> {
    type Item = &'a Row<T>;
    type IntoIter = std::slice::Iter<'a, Row<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

/// The bytes are those of the rows themselves; what a value owns elsewhere (the text of a
/// `String`) is not seen, so a byte bound over rows bounds rows.
impl<T: Clone + Send + 'static> Payload for Rows<T> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row<T>>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batch(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([("c", column, true)]).unwrap()
    }

    #[test]
    fn nested_columns_and_batches_without_columns_are_counted() {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1); 100])]);
        assert!(batch(Arc::new(lists)).bytes() >= 800);
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(5));
        let none = RecordBatch::try_new_with_options(
            Arc::new(arrow::datatypes::Schema::empty()),
            vec![],
            &options,
        );
        assert_eq!(none.unwrap().bytes(), 0);
    }
}
