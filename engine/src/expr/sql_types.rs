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

/// The SQL name of a type that a cast can give.
pub(super) fn sql_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INT",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INT UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 => "VARCHAR",
        DataType::Date32 => "DATE",
        DataType::Timestamp(..) => "TIMESTAMP",
        DataType::Decimal128(precision, scale) => return format!("DECIMAL({precision}, {scale})"),
        other => return other.to_string(),
    };
    name.to_string()
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

#[cfg(test)]
mod tests {
    use arrow::array::{RecordBatch, RecordBatchOptions};
    use arrow::datatypes::Schema;

    use super::super::Expr;

    #[test]
    fn every_type_of_the_page_is_castable_and_printed_by_its_name() {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let none = std::sync::Arc::new(Schema::empty());
        let batch = RecordBatch::try_new_with_options(none, vec![], &options).unwrap();
        for name in [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "TINYINT UNSIGNED",
            "SMALLINT UNSIGNED",
            "INT UNSIGNED",
            "BIGINT UNSIGNED",
            "REAL",
            "DOUBLE",
            "DECIMAL(10, 2)",
            "VARCHAR",
            "DATE",
            "TIMESTAMP",
        ] {
            let expr = Expr::parse(&format!("CAST(NULL AS {name})")).unwrap();
            assert_eq!(expr.to_string(), format!("CAST(NULL AS {name})"));
            let bound = expr.bind(&batch.schema()).unwrap();
            assert_eq!(
                bound.evaluate(&batch).unwrap().data_type(),
                bound.data_type(),
                "{name}"
            );
        }
    }

    #[test]
    fn other_spellings_name_the_same_types() {
        let pairs = [
            ("BOOL", "BOOLEAN"),
            ("INT2", "SMALLINT"),
            ("INTEGER", "INT"),
            ("INT8", "BIGINT"),
            ("INTEGER UNSIGNED", "INT UNSIGNED"),
            ("FLOAT4", "REAL"),
            ("FLOAT", "DOUBLE"),
            ("DOUBLE PRECISION", "DOUBLE"),
            ("TEXT", "VARCHAR"),
            ("NUMERIC(4, 1)", "DECIMAL(4, 1)"),
            ("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP"),
        ];
        for (spelling, name) in pairs {
            let expr = Expr::parse(&format!("a::{spelling}")).unwrap();
            assert_eq!(expr.to_string(), format!("CAST(a AS {name})"));
        }
    }

    #[test]
    fn what_could_not_be_kept_is_refused() {
        for name in [
            "VARCHAR(3)",
            "FLOAT(3)",
            "DECIMAL",
            "DECIMAL(39, 0)",
            "TIMESTAMPTZ",
            "JSON",
        ] {
            assert!(
                Expr::parse(&format!("CAST(a AS {name})")).is_err(),
                "{name}"
            );
        }
    }
}
