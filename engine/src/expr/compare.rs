//! Comparison of two values of one type.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::error::ArrowError;

use super::ast::CompareOp;
use super::value::Value;

/// Compares row by row; the result has length 1 if both sides are scalars.
pub(super) fn compare(
    op: CompareOp,
    left: &Value,
    right: &Value,
) -> Result<BooleanArray, ArrowError> {
    let (left, right) = (&ordered(left), &ordered(right));
    match op {
        CompareOp::Equal => cmp::eq(left, right),
        CompareOp::NotEqual => cmp::neq(left, right),
        CompareOp::Less => cmp::lt(left, right),
        CompareOp::LessOrEqual => cmp::lt_eq(left, right),
        CompareOp::Greater => cmp::gt(left, right),
        CompareOp::GreaterOrEqual => cmp::gt_eq(left, right),
        CompareOp::Distinct => cmp::distinct(left, right),
        CompareOp::NotDistinct => cmp::not_distinct(left, right),
    }
}

/// Floats with one zero and one NaN.
///
/// Arrow orders floats by their bits, in which -0.0 is less than 0.0 and the
/// NaN that x86 makes of 0.0 / 0.0 is less than everything.
fn ordered(value: &Value) -> Value {
    let array: ArrayRef = match value.array.data_type() {
        DataType::Float32 => {
            let floats = value.array.as_primitive::<Float32Type>();
            let one = |x: f32| if x.is_nan() { f32::NAN } else { x + 0.0 };
            Arc::new(floats.unary::<_, Float32Type>(one))
        }
        DataType::Float64 => {
            let floats = value.array.as_primitive::<Float64Type>();
            let one = |x: f64| if x.is_nan() { f64::NAN } else { x + 0.0 };
            Arc::new(floats.unary::<_, Float64Type>(one))
        }
        _ => return value.clone(),
    };
    Value {
        array,
        scalar: value.scalar,
    }
}
