//! The columns of a JSON file, as its rows tell.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::json::reader::infer_json_schema;

use crate::connect::text::input::{TextCompression, TextInput};
use crate::connect::text::lines::{Chunk, LineReader};
use crate::connect::text::reader::bad_row;
use crate::connect::{ConnectError, ListedFile, OnError};

/// Infers the columns from the first `rows_max` rows. Rows that are no JSON object are the
/// reader's to report or to skip, so that both do the same.
pub(crate) fn inferred_schema(
    files: &[ListedFile],
    rows_max: usize,
    on_error: OnError,
    compression: TextCompression,
) -> Result<Schema, ConnectError> {
    let mut text = Vec::new();
    let mut rows = 0;
    let mut chunk = Chunk::default();
    for listed in files {
        let input = TextInput::of_file(&listed.path, listed.open()?, compression)
            .map_err(|error| ConnectError::file(&listed.path, error))?;
        let mut lines = LineReader::new(input, None);
        while rows < rows_max {
            lines
                .read(&mut chunk, rows_max - rows)
                .map_err(|error| ConnectError::file(&listed.path, error))?;
            if chunk.lines().is_empty() {
                break;
            }
            for line in chunk.lines() {
                let object: Result<serde_json::Map<String, serde_json::Value>, _> =
                    serde_json::from_slice(chunk.text(line));
                match (object, on_error) {
                    (Ok(_), _) => {
                        text.extend_from_slice(chunk.text(line));
                        text.push(b'\n');
                        rows += 1;
                    }
                    (Err(_), OnError::Skip) => {}
                    (Err(error), OnError::Fail) => {
                        let (number, reason) = (line.number, error.to_string());
                        return Err(bad_row(&listed.path, number, reason));
                    }
                }
            }
        }
    }
    if rows == 0 {
        let reason = "there is no row from which to infer the columns: give them";
        return Err(ConnectError::option("schema", reason));
    }
    let inferred = infer_json_schema(&text[..], None).map_err(|error| {
        let reason = format!("cannot be inferred from the first {rows} rows: {error}; give it");
        ConnectError::option("schema", reason)
    })?;
    Ok(Schema::new(in_name_order(inferred.0.fields())))
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
