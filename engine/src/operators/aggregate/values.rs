//! The values that aggregates take in, brought to four types.

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::compute::can_cast_types;
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

use super::encoding::as_type;
use crate::error::OperatorError;

/// What a column is brought to before it is aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Int,
    UInt,
    Float,
    Text,
}

impl ValueKind {
    /// The kind of a type, if it can be aggregated as one.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        let kind = match data_type {
            DataType::UInt64 => Self::UInt,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Self::Float,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Boolean => Self::Int,
            integer if integer.is_integer() => Self::Int,
            temporal if temporal.is_temporal() => Self::Int,
            _ => return None,
        };
        let plain = kind.data_type();
        let casts = can_cast_types(data_type, &plain) && can_cast_types(&plain, data_type);
        casts.then_some(kind)
    }

    /// The type of the kind.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Text => DataType::Utf8,
        }
    }
}

/// The values of one column of a batch.
pub(super) enum Values {
    Int(ScalarBuffer<i64>),
    UInt(ScalarBuffer<u64>),
    Float(ScalarBuffer<f64>),
    Text(StringArray),
}

impl Values {
    /// `column` as `kind`, and which of its values are not null.
    pub(super) fn new(
        kind: ValueKind,
        column: &ArrayRef,
    ) -> Result<(Self, Option<NullBuffer>), OperatorError> {
        let column = as_type(column, &kind.data_type())?;
        let values = match kind {
            ValueKind::Int => Self::Int(column.as_primitive::<Int64Type>().values().clone()),
            ValueKind::UInt => Self::UInt(column.as_primitive::<UInt64Type>().values().clone()),
            ValueKind::Float => Self::Float(column.as_primitive::<Float64Type>().values().clone()),
            ValueKind::Text => Self::Text(column.as_string::<i32>().clone()),
        };
        Ok((values, column.logical_nulls()))
    }
}

/// Which rows of a batch an aggregate takes, and into which slot each goes.
pub(super) struct Selection<'a> {
    pub(super) slots: &'a [u32],
    /// All rows without it.
    pub(super) rows: Option<BooleanBuffer>,
}

impl Selection<'_> {
    /// Calls `each` with the row and slot of every row that is taken, in order.
    #[inline]
    pub(super) fn for_each(&self, mut each: impl FnMut(usize, usize)) {
        match &self.rows {
            None => {
                for (row, slot) in self.slots.iter().enumerate() {
                    each(row, *slot as usize);
                }
            }
            Some(rows) => {
                for row in rows.set_indices() {
                    each(row, self.slots[row] as usize);
                }
            }
        }
    }
}
