//! SQL type names as Arrow types.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};
use sqlparser::ast as sql;
use sqlparser::ast::{ExactNumberInfo, TimezoneInfo};

/// The Arrow type a cast to this SQL type gives, or none if there is none.
///
/// INT8 is the 8-byte integer of PostgreSQL. Lengths of strings are refused
/// rather than ignored, because nothing would enforce them.
pub(super) fn arrow_type(name: &sql::DataType) -> Option<DataType> {
    use sql::DataType as Sql;
    Some(match name {
        Sql::Bool | Sql::Boolean => DataType::Boolean,
        Sql::TinyInt(None) => DataType::Int8,
        Sql::SmallInt(None) | Sql::Int2(None) | Sql::Int16 => DataType::Int16,
        Sql::Int(None) | Sql::Integer(None) | Sql::Int4(None) | Sql::Int32 => DataType::Int32,
        Sql::BigInt(None) | Sql::Int8(None) | Sql::Int64 => DataType::Int64,
        Sql::TinyIntUnsigned(None) | Sql::UTinyInt | Sql::UInt8 => DataType::UInt8,
        Sql::SmallIntUnsigned(None) | Sql::USmallInt | Sql::UInt16 => DataType::UInt16,
        Sql::IntUnsigned(None) | Sql::IntegerUnsigned(None) | Sql::UInt32 => DataType::UInt32,
        Sql::BigIntUnsigned(None) | Sql::UBigInt | Sql::UInt64 => DataType::UInt64,
        Sql::Real | Sql::Float4 | Sql::Float32 => DataType::Float32,
        Sql::Float(ExactNumberInfo::None)
        | Sql::Double(ExactNumberInfo::None)
        | Sql::DoublePrecision
        | Sql::Float8
        | Sql::Float64 => DataType::Float64,
        Sql::Varchar(None) | Sql::Text | Sql::String(None) => DataType::Utf8,
        Sql::Date => DataType::Date32,
        Sql::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Timestamp(TimeUnit::Millisecond, None)
        }
        Sql::Decimal(info) | Sql::Numeric(info) => return decimal(*info),
        _ => return None,
    })
}

fn decimal(info: ExactNumberInfo) -> Option<DataType> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return None,
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let precision = u8::try_from(precision).ok()?;
    let scale = i8::try_from(scale).ok()?;
    let valid = (1..=DECIMAL128_MAX_PRECISION).contains(&precision)
        && scale >= 0
        && scale.unsigned_abs() <= precision;
    valid.then_some(DataType::Decimal128(precision, scale))
}
