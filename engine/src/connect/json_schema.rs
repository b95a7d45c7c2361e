//! The columns of a JSON file: as they are given, or as its rows tell.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::json::reader::infer_json_schema;
use serde::Deserialize;

use super::lines::{Chunk, LineReader};
use super::text_input::{TextCompression, TextInput};
use super::text_reader::bad_row;
use super::text_rows::BadLine;
use super::{ConnectError, ListedFile, OnError};

/// One column of a text file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnOption {
    /// Its name. Required.
    pub name: String,
    /// Its type: `bool`, `int8` to `int64`, `uint8` to `uint64`, `float32`, `float64`,
    /// `utf8`, `date32`, `timestamp_s`, `timestamp_ms`, `timestamp_us`, `timestamp_ns`, or
    /// any type as Arrow writes it, such as `Decimal128(10, 2)`. Required.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Whether a row may do without it. Default true.
    #[serde(default = "yes")]
    pub nullable: bool,
}

/// The schema that the columns make.
pub(super) fn given_schema(columns: &[ColumnOption]) -> Result<Schema, ConnectError> {
    let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
    for column in columns {
        if fields.iter().any(|field| field.name() == &column.name) {
            let reason = format!("names the column `{}` twice", column.name);
            return Err(ConnectError::option("schema", reason));
        }
        let data_type = parse_type(&column.data_type).ok_or_else(|| {
            let reason = format!(
                "the column `{}` has the type `{}`, which is not one",
                column.name, column.data_type
            );
            ConnectError::option("schema", reason)
        })?;
        fields.push(Field::new(&column.name, data_type, column.nullable));
    }
    Ok(Schema::new(fields))
}

fn parse_type(name: &str) -> Option<DataType> {
    let arrow_name = match name {
        "bool" => "Boolean",
        "int8" => "Int8",
        "int16" => "Int16",
        "int32" => "Int32",
        "int64" => "Int64",
        "uint8" => "UInt8",
        "uint16" => "UInt16",
        "uint32" => "UInt32",
        "uint64" => "UInt64",
        "float32" => "Float32",
        "float64" => "Float64",
        "utf8" => "Utf8",
        "date32" => "Date32",
        "timestamp_s" => "Timestamp(s)",
        "timestamp_ms" => "Timestamp(ms)",
        "timestamp_us" => "Timestamp(µs)",
        "timestamp_ns" => "Timestamp(ns)",
        other => other,
    };
    arrow_name.parse().ok()
}

/// Infers the columns from the first `rows_max` rows. Rows that are no JSON object are the
/// reader's to report or to skip, so that both do the same.
pub(super) fn inferred_schema(
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
        let mut lines = LineReader::new(input);
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
                        return Err(bad_row(&listed.path, BadLine { number, reason }));
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

const fn yes() -> bool {
    true
}
