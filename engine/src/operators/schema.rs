//! What columnar operators demand of a schema, and the schemas of their results.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::SpecError;
use super::aggregate::{Accumulators, KeyInterner};
use super::window::Window;
use crate::batch::EVENT_TIME_COLUMN;
use crate::error::OperatorError;

/// Column 0 is the event time.
pub(super) fn require_event_time(schema: &Schema) -> Result<(), SpecError> {
    let found = match schema.fields().first() {
        Some(field)
            if field.name() == EVENT_TIME_COLUMN && *field.data_type() == DataType::Int64 =>
        {
            return Ok(());
        }
        Some(field) => format!("`{}` of type {}", field.name(), field.data_type()),
        None => "missing".to_owned(),
    };
    Err(SpecError::EventTime { found })
}

/// A batch has the columns that the operator was made for, by position and type; names and
/// metadata may differ.
pub(super) fn require_same_types(
    expected: &SchemaRef,
    found: &SchemaRef,
) -> Result<(), OperatorError> {
    if Arc::ptr_eq(expected, found) {
        return Ok(());
    }
    let types = |schema: &Schema| {
        let fields = schema.fields().iter();
        fields
            .map(|field| field.data_type().clone())
            .collect::<Vec<_>>()
    };
    if expected.fields().len() == found.fields().len()
        && expected
            .fields()
            .iter()
            .zip(found.fields())
            .all(|(expected, found)| expected.data_type() == found.data_type())
    {
        return Ok(());
    }
    Err(OperatorError::new(format!(
        "a batch has columns of types {:?} where the plan says {:?}: correct what builds it",
        types(found),
        types(expected)
    )))
}

/// Rows that are kept by their number in a batch have one of 32 bits.
pub(super) fn require_numbered_rows(rows: usize) -> Result<(), OperatorError> {
    if u32::try_from(rows).is_ok() {
        return Ok(());
    }
    Err(OperatorError::new(format!(
        "a batch has {rows} rows, and this operator takes {} at most: make it several",
        u32::MAX
    )))
}

/// A column of integers that an operator adds.
pub(super) fn int64_field(name: &str, nullable: bool) -> FieldRef {
    Field::new(name, DataType::Int64, nullable).into()
}

/// The columns with which results of windows begin: the event time (the last of the window),
/// `window_start` and `window_end`.
pub(super) fn window_fields() -> [FieldRef; 3] {
    [
        int64_field(EVENT_TIME_COLUMN, true),
        int64_field("window_start", false),
        int64_field("window_end", false),
    ]
}

/// What stands in these columns.
pub(super) fn window_columns(windows: &[Window]) -> [ArrayRef; 3] {
    [Window::last, Window::start, Window::end].map(|of| -> ArrayRef {
        let values = windows.iter().map(|window| of(*window));
        Arc::new(Int64Array::from_iter_values(values))
    })
}

/// The schema of aggregates over `input` by key: `first`, the key columns, the aggregates.
pub(super) fn results(
    input: &SchemaRef,
    first: [FieldRef; 3],
    keys: &KeyInterner,
    aggregates: &Accumulators,
) -> SchemaRef {
    let mut fields = first.to_vec();
    fields.extend(keys.fields().iter().cloned());
    fields.extend(aggregates.fields());
    let metadata = input.metadata().clone();
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// The same columns by other names.
///
/// # Panics
/// When there are not as many names as columns.
pub(super) fn renamed(schema: &SchemaRef, names: &[String]) -> SchemaRef {
    assert_eq!(schema.fields().len(), names.len(), "each column has a name");
    let fields = schema.fields().iter().zip(names);
    let fields = fields.map(|(field, name)| match field.name() == name {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_name(name)),
    });
    let fields: Vec<FieldRef> = fields.collect();
    let metadata = schema.metadata().clone();
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_more_rows_than_have_numbers_is_an_error_and_not_other_rows() {
        let most = u32::MAX as usize;
        assert!(require_numbered_rows(most).is_ok());
        let error = require_numbered_rows(most + 1).expect_err("one too many");
        assert!(error.to_string().contains("4294967296 rows"), "{error}");
    }
}
