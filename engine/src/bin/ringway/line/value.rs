//! One value of a column, as JSON.

use std::fmt::Write;

use arrow::array::{Array, AsArray, MapArray, StructArray};
use arrow::datatypes::{
    DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::downcast_dictionary_array;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Map, Number, Value};

/// The value at `row`: numbers and booleans as such, binary as lowercase hex, lists as arrays,
/// structures and maps as objects (as arrays of pairs where a name or key comes twice, or keys
/// are no texts). Decimals, NaN, the infinities, dates and times are strings,
/// as JSON has no form for them that keeps every value.
///
/// # Errors
/// When the value cannot be shown, such as a time out of the calendar's range.
pub(crate) fn value(array: &dyn Array, row: usize) -> Result<Value, ArrowError> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Float16 => float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => shortest(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => hex(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(row)),
        DataType::List(_) => list(&array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row))?,
        DataType::ListView(_) => list(&array.as_list_view::<i32>().value(row))?,
        DataType::LargeListView(_) => list(&array.as_list_view::<i64>().value(row))?,
        DataType::FixedSizeList(_, _) => list(&array.as_fixed_size_list().value(row))?,
        DataType::Struct(_) => structure(array.as_struct(), row)?,
        DataType::Map(_, _) => map(array.as_map(), row)?,
        DataType::Dictionary(_, _) => downcast_dictionary_array! {
            array => match array.key(row) {
                Some(key) => value(array.values().as_ref(), key)?,
                None => Value::Null,
            },
            _ => text(array, row)?,
        },
        _ => text(array, row)?,
    })
}

fn float(value: f64) -> Value {
    Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number)
}

/// The shortest decimal that is the same number in 32 bits: widened first, 0.1 would be
/// 0.10000000149011612.
fn shortest(value: f32) -> Value {
    let text = value.to_string();
    match text.parse() {
        Ok(wide) if value.is_finite() => float(wide),
        _ => Value::String(text),
    }
}

fn hex(bytes: &[u8]) -> Value {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Value::String(text)
}

fn list(items: &dyn Array) -> Result<Value, ArrowError> {
    let items = (0..items.len()).map(|row| value(items, row));
    Ok(Value::Array(items.collect::<Result<_, _>>()?))
}

fn structure(array: &StructArray, row: usize) -> Result<Value, ArrowError> {
    let fields = array.fields().iter().zip(array.columns());
    let entries = fields.map(|(field, column)| {
        let name = Value::String(field.name().clone());
        Ok((name, value(column.as_ref(), row)?))
    });
    Ok(entries_of(entries.collect::<Result<_, ArrowError>>()?))
}

fn map(array: &MapArray, row: usize) -> Result<Value, ArrowError> {
    let entries = array.value(row);
    let (keys, values) = (entries.column(0), entries.column(1));
    let mut pairs = Vec::with_capacity(entries.len());
    for entry in 0..entries.len() {
        pairs.push((value(keys.as_ref(), entry)?, value(values.as_ref(), entry)?));
    }
    Ok(entries_of(pairs))
}

/// An object where the keys are texts of which none comes twice, else an array of pairs.
fn entries_of(pairs: Vec<(Value, Value)>) -> Value {
    let mut object = Map::new();
    for (key, value) in &pairs {
        if let Value::String(key) = key {
            object.insert(key.clone(), value.clone());
        }
    }
    if object.len() == pairs.len() {
        return Value::Object(object);
    }
    let pairs = pairs.into_iter();
    Value::Array(
        pairs
            .map(|(key, value)| Value::Array(vec![key, value]))
            .collect(),
    )
}

/// As Arrow itself shows it: decimals, dates, times, durations, intervals, run-end encoded.
fn text(array: &dyn Array, row: usize) -> Result<Value, ArrowError> {
    if let Some(runs) = array
        .as_any()
        .downcast_ref::<arrow::array::RunArray<Int32Type>>()
    {
        return value(runs.values().as_ref(), runs.get_physical_index(row));
    }
    if let Some(runs) = array
        .as_any()
        .downcast_ref::<arrow::array::RunArray<Int16Type>>()
    {
        return value(runs.values().as_ref(), runs.get_physical_index(row));
    }
    if let Some(runs) = array
        .as_any()
        .downcast_ref::<arrow::array::RunArray<Int64Type>>()
    {
        return value(runs.values().as_ref(), runs.get_physical_index(row));
    }
    let options = FormatOptions::new().with_display_error(false);
    let formatter = ArrayFormatter::try_new(array, &options)?;
    Ok(Value::String(formatter.value(row).try_to_string()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, Float32Array,
        Float64Array, Int32Array, Int64Array, ListArray, StringArray, StructArray,
        TimestampMillisecondArray, UInt64Array,
    };
    use arrow::datatypes::Field;
    use serde_json::json;

    use super::*;

    fn shown(array: impl Array) -> Vec<Value> {
        (0..array.len())
            .map(|row| value(&array, row).unwrap())
            .collect()
    }

    #[test]
    fn whole_numbers_keep_every_digit() {
        assert_eq!(
            shown(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
            [json!(i64::MIN), Value::Null, json!(i64::MAX)]
        );
        assert_eq!(shown(UInt64Array::from(vec![u64::MAX])), [json!(u64::MAX)]);
    }

    #[test]
    fn what_json_has_no_number_for_is_a_string() {
        let floats = Float64Array::from(vec![1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!(
            shown(floats),
            [json!(1.5), json!("NaN"), json!("inf"), json!("-inf")]
        );
        assert_eq!(
            shown(Float32Array::from(vec![0.1, f32::NAN])),
            [json!(0.1), json!("NaN")]
        );
        let decimals = Decimal128Array::from(vec![12_345]).with_precision_and_scale(10, 2);
        assert_eq!(shown(decimals.unwrap()), [json!("123.45")]);
    }

    #[test]
    fn bytes_are_lowercase_hex() {
        let bytes = BinaryArray::from(vec![b"a\xff\x00".as_slice(), b""]);
        assert_eq!(shown(bytes), [json!("61ff00"), json!("")]);
    }

    #[test]
    fn nested_values_are_arrays_and_objects() {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(1), None]),
            None,
        ]);
        assert_eq!(shown(lists), [json!([1, null]), Value::Null]);
        let (name, live): (ArrayRef, ArrayRef) = (
            Arc::new(StringArray::from(vec!["a"])),
            Arc::new(BooleanArray::from(vec![true])),
        );
        let fields = [
            ("name", DataType::Utf8, name),
            ("live", DataType::Boolean, live),
        ]
        .map(|(name, of, array)| (Arc::new(Field::new(name, of, false)), array));
        assert_eq!(
            shown(StructArray::from(fields.to_vec())),
            [json!({"name": "a", "live": true})]
        );
    }

    #[test]
    fn what_has_a_name_twice_is_shown_as_pairs_and_loses_nothing() {
        let column = |value: &str| Arc::new(StringArray::from(vec![value])) as ArrayRef;
        let field = || Arc::new(Field::new("name", DataType::Utf8, false));
        let fields = vec![(field(), column("a")), (field(), column("b"))];
        let expected = json!([["name", "a"], ["name", "b"]]);
        assert_eq!(shown(StructArray::from(fields)), [expected]);
    }

    #[test]
    fn a_dictionary_shows_its_values() {
        let keys = Int32Array::from(vec![Some(1), None, Some(0)]);
        let values = Arc::new(StringArray::from(vec!["a", "b"]));
        let dictionary = DictionaryArray::new(keys, values);
        assert_eq!(shown(dictionary), [json!("b"), Value::Null, json!("a")]);
    }

    #[test]
    fn a_time_out_of_the_calendar_is_an_error_and_not_a_text() {
        let times = TimestampMillisecondArray::from(vec![0, i64::MAX]);
        assert_eq!(value(&times, 0).unwrap(), json!("1970-01-01T00:00:00"));
        assert!(value(&times, 1).is_err());
    }
}
