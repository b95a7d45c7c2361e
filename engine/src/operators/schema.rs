//! What columnar operators demand of a schema.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};

use super::SpecError;
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
