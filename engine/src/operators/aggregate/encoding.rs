//! The key of a row as bytes, and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use arrow::row::{RowConverter, SortField};

use crate::error::OperatorError;

/// The length that stands for a null text.
const NULL_TEXT: u32 = u32::MAX;

/// Writes the key columns of a row as bytes that are equal exactly when the keys are.
pub(super) enum KeyEncoding {
    /// Integers and texts: a tag and 8 bytes, or a length and the text.
    Plain(Vec<PlainKind>),
    /// Any other types.
    Rows(Box<RowConverter>),
}

/// What a key column is brought to before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlainKind {
    Int64,
    Text,
}

impl PlainKind {
    /// The plain form of a type, if it has one.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                Some(Self::Int64)
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::Boolean => {
                Some(Self::Int64)
            }
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Some(Self::Int64),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Self::Text),
            _ => None,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Int64 => DataType::Int64,
            Self::Text => DataType::Utf8,
        }
    }
}

impl KeyEncoding {
    /// The encoding of keys of these fields; none when a type cannot be a key.
    pub(super) fn new(fields: &[FieldRef]) -> Option<Self> {
        let plain: Option<Vec<_>> = fields
            .iter()
            .map(|field| PlainKind::of(field.data_type()))
            .collect();
        if let Some(kinds) = plain {
            return Some(Self::Plain(kinds));
        }
        let fields = fields
            .iter()
            .map(|field| SortField::new(field.data_type().clone()))
            .collect();
        let converter = RowConverter::new(fields).ok()?;
        Some(Self::Rows(Box::new(converter)))
    }

    /// Calls `each` with the key of every row of `columns`, in order.
    pub(super) fn encode(
        &self,
        columns: &[ArrayRef],
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), OperatorError> {
        match self {
            Self::Plain(kinds) => {
                let columns = kinds
                    .iter()
                    .zip(columns)
                    .map(|(kind, column)| PlainColumn::new(*kind, column))
                    .collect::<Result<Vec<_>, _>>()?;
                let rows = columns.first().map_or(0, PlainColumn::len);
                let mut bytes = Vec::new();
                for row in 0..rows {
                    bytes.clear();
                    columns
                        .iter()
                        .for_each(|column| column.write(row, &mut bytes));
                    each(&bytes);
                }
            }
            Self::Rows(converter) => {
                let rows = converter.convert_columns(columns)?;
                rows.iter().for_each(|row| each(row.as_ref()));
            }
        }
        Ok(())
    }

    /// The key columns of `keys`, with the types of `fields`.
    pub(super) fn decode<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]>,
        fields: &[FieldRef],
    ) -> Result<Vec<ArrayRef>, OperatorError> {
        let columns = match self {
            Self::Plain(kinds) => {
                let mut builders: Vec<_> =
                    kinds.iter().map(|kind| PlainBuilder::new(*kind)).collect();
                for mut key in keys {
                    builders
                        .iter_mut()
                        .for_each(|builder| builder.read(&mut key));
                }
                builders.into_iter().map(PlainBuilder::finish).collect()
            }
            Self::Rows(converter) => {
                let parser = converter.parser();
                converter.convert_rows(keys.map(|key| parser.parse(key)))?
            }
        };
        with_types(columns, fields)
    }
}

/// `column` with the type `data_type`.
pub(super) fn as_type(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, OperatorError> {
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    Ok(cast(column, data_type)?)
}

/// `columns` with the types of `fields`.
pub(super) fn with_types(
    columns: Vec<ArrayRef>,
    fields: &[FieldRef],
) -> Result<Vec<ArrayRef>, OperatorError> {
    columns
        .into_iter()
        .zip(fields)
        .map(|(column, field)| as_type(&column, field.data_type()))
        .collect()
}

enum PlainColumn {
    Int64(Int64Array),
    Text(StringArray),
}

impl PlainColumn {
    fn new(kind: PlainKind, column: &ArrayRef) -> Result<Self, OperatorError> {
        let column = as_type(column, &kind.data_type())?;
        Ok(match kind {
            PlainKind::Int64 => Self::Int64(column.as_primitive::<Int64Type>().clone()),
            PlainKind::Text => Self::Text(column.as_string::<i32>().clone()),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Int64(column) => column.len(),
            Self::Text(column) => column.len(),
        }
    }

    fn write(&self, row: usize, bytes: &mut Vec<u8>) {
        match self {
            Self::Int64(column) if column.is_null(row) => bytes.push(0),
            Self::Int64(column) => {
                bytes.push(1);
                bytes.extend_from_slice(&column.value(row).to_le_bytes());
            }
            Self::Text(column) if column.is_null(row) => {
                bytes.extend_from_slice(&NULL_TEXT.to_le_bytes());
            }
            Self::Text(column) => {
                let text = column.value(row).as_bytes();
                bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
                bytes.extend_from_slice(text);
            }
        }
    }
}

enum PlainBuilder {
    Int64(Vec<Option<i64>>),
    Text(StringBuilder),
}

impl PlainBuilder {
    fn new(kind: PlainKind) -> Self {
        match kind {
            PlainKind::Int64 => Self::Int64(Vec::new()),
            PlainKind::Text => Self::Text(StringBuilder::new()),
        }
    }

    /// Reads what [`PlainColumn::write`] wrote, and leaves the rest in `bytes`.
    fn read(&mut self, bytes: &mut &[u8]) {
        match self {
            Self::Int64(values) => match take(bytes, 1) {
                [0] => values.push(None),
                _ => {
                    let value = take(bytes, 8).try_into().expect("8 bytes");
                    values.push(Some(i64::from_le_bytes(value)));
                }
            },
            Self::Text(values) => {
                let length = take(bytes, 4).try_into().expect("4 bytes");
                match u32::from_le_bytes(length) {
                    NULL_TEXT => values.append_null(),
                    length => {
                        let text = std::str::from_utf8(take(bytes, length as usize));
                        values.append_value(text.expect("written from text"));
                    }
                }
            }
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Int64(values) => Arc::new(Int64Array::from(values)),
            Self::Text(mut values) => Arc::new(values.finish()),
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

/// The columns of `batch` at `positions`.
pub(super) fn columns_at(batch: &RecordBatch, positions: &[usize]) -> Vec<ArrayRef> {
    positions
        .iter()
        .map(|position| Arc::clone(batch.column(*position)))
        .collect()
}
