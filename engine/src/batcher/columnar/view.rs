//! Structs read where they lie.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};

use super::Columnar;
use super::live::{Live, typed};
use crate::batcher::{BatchError, View, check_schema};

/// The view over a batch of structs.
///
/// The derive gives it a name of its own: that of the struct with `View` behind it.
pub struct ColumnarView<'a, T: Columnar> {
    event_times: &'a Int64Array,
    columns: T::Columns<'a>,
}

impl<'a, T: Columnar> ColumnarView<'a, T> {
    /// The columns, each under the name of its field: for operators that need few of them.
    #[inline]
    pub fn columns(&self) -> T::Columns<'a> {
        self.columns
    }

    /// A row, borrowed.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> T::RowRef<'a> {
        let rows = self.event_times.len();
        assert!(row < rows, "row {row} of a batch of {rows}");
        T::row(&self.columns, row)
    }
}

impl<T: Columnar> Clone for ColumnarView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Columnar> Copy for ColumnarView<'_, T> {}

impl<T: Columnar> fmt::Debug for ColumnarView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries((0..self.len()).map(|row| self.get(row)))
            .finish()
    }
}

impl<'a, T: Columnar> View<'a> for ColumnarView<'a, T> {
    type Value = T::RowRef<'a>;

    fn of(batch: &'a RecordBatch) -> Result<Self, BatchError> {
        let expected = T::layout().schema();
        // What was built in this process shares the schema, which is then not compared.
        if !Arc::ptr_eq(batch.schema_ref(), expected) {
            check_schema(batch.schema_ref(), expected)?;
        }
        let (event_times, fields) = batch.columns().split_at(1);
        let columns = T::columns(fields, &Live::all(batch.num_rows()));
        Ok(Self {
            event_times: typed(&event_times[0]).map_err(|misfit| misfit.into_error(0))?,
            columns: columns.map_err(|misfit| misfit.into_error(1))?,
        })
    }

    fn event_times(&self) -> &'a Int64Array {
        self.event_times
    }

    #[inline]
    fn value(&self, row: usize) -> T::RowRef<'a> {
        self.get(row)
    }
}
