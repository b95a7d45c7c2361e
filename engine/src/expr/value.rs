//! Values during evaluation: a column, or one value that stands for all rows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Datum, RecordBatch, UInt32Array, new_null_array,
};
use arrow::compute::{filter, take};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::bound::Bound;

/// A column of as many values as there are rows, or a scalar of length 1.
///
/// Kernels take it as a `Datum`, so literals are never expanded for them.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) array: ArrayRef,
    pub(super) scalar: bool,
}

impl Value {
    pub(super) fn column(array: ArrayRef) -> Self {
        Value {
            array,
            scalar: false,
        }
    }

    pub(super) fn scalar(array: ArrayRef) -> Self {
        debug_assert_eq!(array.len(), 1);
        Value {
            array,
            scalar: true,
        }
    }

    /// The null of a type, for every row.
    pub(super) fn null(data_type: &DataType) -> Self {
        Value::scalar(new_null_array(data_type, 1))
    }

    /// What a kernel gave for these operands: a scalar if all of them are.
    pub(super) fn result<'a>(
        array: impl Array + 'static,
        operands: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let scalar = operands.into_iter().all(|operand| operand.scalar);
        Value {
            array: Arc::new(array),
            scalar,
        }
    }

    /// One value a row.
    pub(super) fn expand(&self, rows: usize) -> Result<ArrayRef, ArrowError> {
        if !self.scalar {
            return Ok(Arc::clone(&self.array));
        }
        take(&self.array, &UInt32Array::from_value(0, rows), None)
    }

    /// The index of a row's value.
    pub(super) fn index(&self, row: usize) -> usize {
        if self.scalar { 0 } else { row }
    }

    /// The booleans of a value that was bound as boolean.
    pub(super) fn booleans(&self) -> &BooleanArray {
        self.array.as_boolean()
    }
}

impl Datum for Value {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.scalar)
    }
}

/// The columns that an expression reads, and the number of rows.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) count: usize,
}

impl Rows {
    pub(super) fn of(batch: &RecordBatch) -> Self {
        Rows {
            columns: batch.columns().to_vec(),
            count: batch.num_rows(),
        }
    }

    /// The chosen rows of those columns that `reader` reads; the other columns
    /// stay as they are, since filtering them would be work for nothing.
    pub(super) fn filter(&self, mask: &BooleanArray, reader: &Bound) -> Result<Rows, ArrowError> {
        let mut used = Vec::new();
        reader.mark_columns(&mut used);
        let choose = |(index, column): (usize, &ArrayRef)| {
            if used.get(index) == Some(&true) {
                filter(column, mask)
            } else {
                Ok(Arc::clone(column))
            }
        };
        let columns = self
            .columns
            .iter()
            .enumerate()
            .map(choose)
            .collect::<Result<_, ArrowError>>()?;
        Ok(Rows {
            columns,
            count: mask.true_count(),
        })
    }
}

/// Puts the values of chosen rows back to their places; the other rows are null.
pub(super) fn scatter(values: &Value, mask: &BooleanArray) -> Result<Value, ArrowError> {
    if values.scalar {
        return Ok(values.clone());
    }
    let mut next = 0;
    let indices = UInt32Array::from_iter(mask.iter().map(|chosen| {
        (chosen == Some(true)).then(|| {
            next += 1;
            next - 1
        })
    }));
    Ok(Value::column(take(&values.array, &indices, None)?))
}
