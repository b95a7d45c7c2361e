//! The columns of a text file, as they are given.

use arrow::datatypes::{DataType, Field, Schema};
use serde::Deserialize;

use crate::connect::{ConnectError, defaults};

use super::types::refused_type;

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
    #[serde(default = "defaults::yes")]
    pub nullable: bool,
}

/// The schema that the columns make.
pub(crate) fn given_schema(columns: &[ColumnOption]) -> Result<Schema, ConnectError> {
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
        if let Some(reason) = refused_type(&data_type) {
            let (name, data_type) = (&column.name, &column.data_type);
            let reason = format!("the column `{name}` has the type `{data_type}`: {reason}");
            return Err(ConnectError::option("schema", reason));
        }
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
