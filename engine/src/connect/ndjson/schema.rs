//! The columns of a JSON file, as its rows tell.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::json::reader::infer_json_schema;

use crate::connect::text::sample::Sample;
use crate::connect::{ConnectError, ListedFile, OnError, TextCompression};

use super::nesting::require_levels;

/// Infers the columns from the first `rows_max` rows.
pub(crate) fn inferred_schema(
    files: &[ListedFile],
    rows_max: usize,
    on_error: OnError,
    compression: TextCompression,
) -> Result<Schema, ConnectError> {
    let mut sample = Sample::new(rows_max, on_error, compression);
    for listed in files {
        sample.add(listed, None, false, require_object)?;
    }
    sample.require_rows()?;
    let inferred = infer_json_schema(sample.text(), None).map_err(|error| {
        let rows = sample.rows();
        let reason = format!("cannot be inferred from the first {rows} rows: {error}; give it");
        ConnectError::option("schema", reason)
    })?;
    Ok(Schema::new(in_name_order(inferred.0.fields())))
}

fn require_object(text: &[u8]) -> Result<(), String> {
    require_levels(text)?;
    let object: Result<serde_json::Map<String, serde_json::Value>, _> =
        serde_json::from_slice(text);
    object.map(|_| ()).map_err(|error| error.to_string())
}

/// Fields are inferred in no particular order; every run must have the same.
fn in_name_order(fields: &Fields) -> Vec<Field> {
    let mut ordered: Vec<Field> = fields.iter().map(|field| settled(field)).collect();
    ordered.sort_by(|a, b| a.name().cmp(b.name()));
    ordered
}

/// The field with what it contains in order; one that was always null is text.
fn settled(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Null => DataType::Utf8,
        DataType::Struct(fields) => DataType::Struct(in_name_order(fields).into()),
        DataType::List(item) => DataType::List(Arc::new(settled(item))),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}
