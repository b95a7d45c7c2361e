//! Which type operands of different types meet in.

use arrow::datatypes::DataType;

use super::error::{ExprError, Position};

/// What is known of an operand when types are chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand<'a> {
    pub(super) data_type: &'a DataType,
    /// Literals give way: they take the type of the columns they meet.
    pub(super) literal: Option<LiteralKind>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LiteralKind {
    Integer(i128),
    Float,
    Text,
    Other,
}

/// The one type in which all operands can be compared or chosen among.
///
/// Null alone stays null. Columns are unified first; then literals adapt.
pub(super) fn common_type(at: Position, operands: &[Operand<'_>]) -> Result<DataType, ExprError> {
    let mut target: Option<DataType> = None;
    let (literals, columns): (Vec<&Operand<'_>>, Vec<_>) = operands
        .iter()
        .partition(|operand| operand.literal.is_some());
    for operand in columns {
        target = Some(match target {
            None => operand.data_type.clone(),
            Some(target) => merge(&target, operand.data_type)
                .ok_or_else(|| unlike(at, &target, operand.data_type))?,
        });
    }
    for operand in literals {
        target = Some(match target {
            None => operand.data_type.clone(),
            Some(target) => {
                adapt(&target, operand).ok_or_else(|| unlike(at, &target, operand.data_type))?
            }
        });
    }
    Ok(target.unwrap_or(DataType::Null))
}

/// The type arithmetic on these numbers is done in: int64, uint64 or float64.
///
/// One width for all keeps small columns from overflowing in a sum that fits.
pub(super) fn arithmetic_type(
    at: Position,
    operands: &[Operand<'_>],
) -> Result<DataType, ExprError> {
    if let Some(other) = operands
        .iter()
        .find(|operand| !is_arithmetic(operand.data_type))
    {
        let message = format!(
            "arithmetic needs numbers and this is {}; cast it, e.g. to BIGINT or DOUBLE",
            other.data_type
        );
        return Err(ExprError::mistyped(at, message));
    }
    if operands
        .iter()
        .any(|operand| operand.data_type.is_floating())
    {
        return Ok(DataType::Float64);
    }
    let wide = |operand: &Operand<'_>| *operand.data_type == DataType::UInt64;
    if !operands.iter().any(wide) {
        return Ok(DataType::Int64);
    }
    let fits = |operand: &Operand<'_>| match operand.literal {
        Some(LiteralKind::Integer(value)) => value >= 0,
        _ => !operand.data_type.is_signed_integer(),
    };
    match operands.iter().find(|operand| !fits(operand)) {
        None => Ok(DataType::UInt64),
        Some(other) => Err(unlike(at, &DataType::UInt64, other.data_type)),
    }
}

/// Whether values of this type have an order.
pub(super) fn is_comparable(data_type: &DataType) -> bool {
    data_type.is_numeric()
        || data_type.is_temporal()
        || is_text(data_type)
        || matches!(data_type, DataType::Boolean | DataType::Null)
        || matches!(
            data_type,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView
        )
}

/// Whether this type holds strings.
pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// Whether a cast between these types can fail on some value.
pub(super) fn cast_can_fail(from: &DataType, to: &DataType) -> bool {
    let widens = match (from, to) {
        (DataType::Null, _) => true,
        (DataType::Boolean, to) => to.is_integer() || to.is_floating() || *to == DataType::Utf8,
        (from, to) if from.is_integer() && to.is_integer() => merge(from, to).as_ref() == Some(to),
        (from, to) if from.is_integer() || from.is_floating() => {
            to.is_floating() || matches!(to, DataType::Utf8 | DataType::Boolean)
        }
        (from, to) => from == to,
    };
    !widens
}

fn is_arithmetic(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || *data_type == DataType::Null
}

fn merge(left: &DataType, right: &DataType) -> Option<DataType> {
    if left == right || *right == DataType::Null {
        return Some(left.clone());
    }
    if *left == DataType::Null {
        return Some(right.clone());
    }
    if left.is_integer() && right.is_integer() {
        let (wider, narrower) = if bits(left) >= bits(right) {
            (left, right)
        } else {
            (right, left)
        };
        if left.is_signed_integer() == right.is_signed_integer() {
            return Some(wider.clone());
        }
        let unsigned_64 = [wider, narrower].contains(&&DataType::UInt64);
        return (!unsigned_64).then_some(DataType::Int64);
    }
    let number = |data_type: &DataType| data_type.is_integer() || data_type.is_floating();
    if number(left) && number(right) {
        return Some(DataType::Float64);
    }
    (is_text(left) && is_text(right)).then_some(DataType::Utf8)
}

fn adapt(target: &DataType, operand: &Operand<'_>) -> Option<DataType> {
    let keeps = match operand.literal {
        Some(LiteralKind::Integer(value)) => {
            target.is_floating()
                || integer_range(target).is_some_and(|range| range.contains(&value))
        }
        Some(LiteralKind::Float) => target.is_floating(),
        Some(LiteralKind::Text) => {
            is_text(target) || matches!(target, DataType::Timestamp(..) | DataType::Date32)
        }
        _ => false,
    };
    if keeps {
        Some(target.clone())
    } else {
        merge(target, operand.data_type)
    }
}

fn integer_range(data_type: &DataType) -> Option<std::ops::RangeInclusive<i128>> {
    Some(match data_type {
        DataType::Int8 => i8::MIN.into()..=i8::MAX.into(),
        DataType::Int16 => i16::MIN.into()..=i16::MAX.into(),
        DataType::Int32 => i32::MIN.into()..=i32::MAX.into(),
        DataType::Int64 => i64::MIN.into()..=i64::MAX.into(),
        DataType::UInt8 => 0..=u8::MAX.into(),
        DataType::UInt16 => 0..=u16::MAX.into(),
        DataType::UInt32 => 0..=u32::MAX.into(),
        DataType::UInt64 => 0..=u64::MAX.into(),
        _ => return None,
    })
}

fn bits(data_type: &DataType) -> usize {
    data_type.primitive_width().unwrap_or(0)
}

fn unlike(at: Position, left: &DataType, right: &DataType) -> ExprError {
    let message =
        format!("{left} and {right} don't meet in one type; cast one of them to the other");
    ExprError::mistyped(at, message)
}
