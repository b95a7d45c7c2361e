//! Functions of numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;

use super::functions::Function;
use super::value::Value;

/// Computes abs, floor, ceil and round of int64, uint64 or float64.
pub(super) fn call(
    function: Function,
    arguments: &[Value],
    rows: usize,
) -> Result<Value, ArrowError> {
    let Some(number) = arguments.first() else {
        return Err(ArrowError::InvalidArgumentError("no arguments".to_string()));
    };
    let array = match number.array.data_type() {
        DataType::Float64 => {
            if let Some(digits) = arguments.get(1) {
                return Ok(round_to(number, digits, rows));
            }
            let floats = number.array.as_primitive::<Float64Type>();
            let computed: Float64Array = match function {
                Function::Abs => floats.unary(f64::abs),
                Function::Floor => floats.unary(f64::floor),
                Function::Ceil => floats.unary(f64::ceil),
                _ => floats.unary(f64::round),
            };
            Arc::new(computed) as ArrayRef
        }
        DataType::Int64 if function == Function::Abs => {
            let overflow = || ArrowError::ArithmeticOverflow("abs".to_string());
            let whole = number.array.as_primitive::<Int64Type>();
            Arc::new(whole.try_unary::<_, Int64Type, _>(|x| x.checked_abs().ok_or_else(overflow))?)
        }
        // An integer is its own floor, and so on.
        _ => Arc::clone(&number.array),
    };
    Ok(Value { array, ..*number })
}

fn round_to(number: &Value, digits: &Value, rows: usize) -> Value {
    let scalar = number.scalar && digits.scalar;
    let floats = number.array.as_primitive::<Float64Type>();
    let places = digits.array.as_primitive::<Int64Type>();
    let round = |row| {
        let (x, places_at) = (number.index(row), digits.index(row));
        let there = floats.is_valid(x) && places.is_valid(places_at);
        there.then(|| round_at(floats.value(x), places.value(places_at)))
    };
    let length = if scalar { 1 } else { rows };
    let rounded: Float64Array = (0..length).map(round).collect();
    Value {
        array: Arc::new(rounded),
        scalar,
    }
}

fn round_at(x: f64, digits: i64) -> f64 {
    // Beyond these no float64 has such a digit, or has any digit left.
    let digits = digits.clamp(-400, 400) as i32;
    let scaled = x * 10_f64.powi(digits);
    match scaled.is_finite() {
        true if digits >= 0 => scaled.round() / 10_f64.powi(digits),
        true => scaled.round() * 10_f64.powi(-digits),
        false => x,
    }
}
