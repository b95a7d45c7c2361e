//! Rows of JSON as a batch of one of the wire's types.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow::datatypes::{DataType, Field, SchemaRef};
use serde_json::Value;

/// The rows, each an array of all columns with the event time first.
///
/// # Errors
/// Row, column and what is wrong there.
pub(crate) fn batch(schema: &SchemaRef, rows: &[Value]) -> Result<RecordBatch, String> {
    for (index, row) in rows.iter().enumerate() {
        let values = row.as_array().map(Vec::len);
        if values != Some(schema.fields().len()) {
            let names: Vec<_> = schema
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            return Err(format!(
                "row {index}: an array of [{}] is expected",
                names.join(", ")
            ));
        }
    }
    let fields = schema.fields().iter().enumerate();
    let columns = fields.map(|(column, field)| {
        let values = rows.iter().map(|row| &row[column]);
        array(field, values)
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| error.to_string())
}

fn array<'v>(field: &Field, values: impl Iterator<Item = &'v Value>) -> Result<ArrayRef, String> {
    let values = values.enumerate().map(|(row, value)| match value {
        Value::Null if !field.is_nullable() => {
            Err(format!("row {row}: {} must not be null", field.name()))
        }
        value => Ok((row, value)),
    });
    let mut values = values.collect::<Result<Vec<_>, _>>()?.into_iter();
    let wrong = |row: usize, what: &str, value: &Value| {
        format!("row {row}: {} must be {what}, not {value}", field.name())
    };
    macro_rules! numbers {
        ($array:ty, $read:expr, $what:literal) => {{
            let numbers = values.by_ref().map(|(row, value)| match value {
                Value::Null => Ok(None),
                value => $read(value)
                    .map(Some)
                    .ok_or_else(|| wrong(row, $what, value)),
            });
            Arc::new(numbers.collect::<Result<$array, _>>()?)
        }};
    }
    Ok(match field.data_type() {
        DataType::Int64 => numbers!(Int64Array, Value::as_i64, "a whole number of 64 bits"),
        DataType::Int32 => numbers!(
            Int32Array,
            |value: &Value| value.as_i64().and_then(|number| i32::try_from(number).ok()),
            "a whole number of 32 bits"
        ),
        DataType::UInt32 => numbers!(
            UInt32Array,
            |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()),
            "a whole number from 0 to 4294967295"
        ),
        DataType::UInt64 => numbers!(
            UInt64Array,
            Value::as_u64,
            "a whole number from 0 to 18446744073709551615"
        ),
        DataType::Utf8 => {
            let texts = values.map(|(row, value)| match value {
                Value::Null => Ok(None),
                Value::String(text) => Ok(Some(text)),
                value => Err(wrong(row, "a string", value)),
            });
            Arc::new(texts.collect::<Result<StringArray, _>>()?)
        }
        _ => {
            let bytes = values.map(|(row, value)| match value {
                Value::Null => Ok(None),
                value => {
                    let bytes = value.as_str().and_then(unhex);
                    bytes
                        .map(Some)
                        .ok_or_else(|| wrong(row, "pairs of hex digits", value))
                }
            });
            Arc::new(bytes.collect::<Result<BinaryArray, _>>()?)
        }
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|value| value as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::WireType;
    use super::super::value::value;
    use super::*;

    fn rows(wire_type: WireType, rows: &Value) -> Result<RecordBatch, String> {
        batch(&wire_type.schema().unwrap(), rows.as_array().unwrap())
    }

    #[test]
    fn rows_of_every_type_come_back_as_they_were() {
        let cases = [
            (WireType::Int64, json!([[1000, 1], [null, i64::MIN]])),
            (WireType::Int32, json!([[i64::MAX, i32::MIN]])),
            (WireType::Uint32, json!([[0, u32::MAX]])),
            (WireType::Uint64, json!([[-1, u64::MAX]])),
            (WireType::String, json!([[1, "a\u{0}b"], [2, ""]])),
            (WireType::Int64Keyed, json!([[1, -2, 3]])),
            (WireType::StringKeyed, json!([[null, "k", 3]])),
            (WireType::Binary, json!([[1, "00ff"], [2, ""]])),
            (WireType::Int64, json!([])),
        ];
        for (wire_type, expected) in cases {
            let batch = rows(wire_type, &expected).unwrap();
            let shown = (0..batch.num_rows()).map(|row| {
                let values = batch
                    .columns()
                    .iter()
                    .map(|column| value(column, row).unwrap());
                Value::Array(values.collect())
            });
            assert_eq!(Value::Array(shown.collect()), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_row_and_column() {
        let cases = [
            (
                WireType::Int64,
                json!([[1, 2], [1]]),
                "row 1: an array of [event_time, value]",
            ),
            (
                WireType::Int64,
                json!([[1, null]]),
                "row 0: value must not be null",
            ),
            (
                WireType::Int64,
                json!([[1, 1.5]]),
                "row 0: value must be a whole number",
            ),
            (
                WireType::Int32,
                json!([[1, 2_147_483_648_u32]]),
                "whole number of 32 bits",
            ),
            (
                WireType::Uint64,
                json!([[1, -1]]),
                "row 0: value must be a whole number from 0",
            ),
            (
                WireType::Binary,
                json!([[1, "abc"]]),
                "row 0: value_bytes must be pairs of hex",
            ),
            (WireType::Binary, json!([[1, "+f"]]), "pairs of hex"),
            (
                WireType::StringKeyed,
                json!([["x", "k", 1]]),
                "row 0: event_time must be a whole",
            ),
        ];
        for (wire_type, given, expected) in cases {
            let said = rows(wire_type, &given).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}
