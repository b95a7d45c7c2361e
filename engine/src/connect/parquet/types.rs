//! The types that a Parquet file has no place for, found before anything is written.

use arrow::datatypes::{DataType, IntervalUnit, Schema};

use crate::connect::ConnectError;

/// Makes sure that the columns of `schema` can be written: the library
/// refuses some types only when a batch comes, and some by a panic.
///
/// # Errors
/// [`ConnectError::Option`], which names the first column that cannot be written.
pub(super) fn require_fit(schema: &Schema) -> Result<(), ConnectError> {
    for (position, field) in schema.fields().iter().enumerate() {
        if let Some((unfit, instead)) = unfit(field.data_type()) {
            let name = field.name();
            let reason = format!(
                "cannot be written as Parquet: column {position} `{name}` has or holds the type \
                 {unfit}, for which Parquet has no place; {instead}, or write Arrow files"
            );
            return Err(ConnectError::option("schema", reason));
        }
    }
    Ok(())
}

/// The type itself or one inside of it that cannot be written, and what to do.
fn unfit(data_type: &DataType) -> Option<(&DataType, &'static str)> {
    match data_type {
        DataType::Union(..) => Some((data_type, "leave it out before the sink")),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => {
            (*scale < 0).then_some((data_type, "cast it to a scale of 0 or more before the sink"))
        }
        DataType::Dictionary(_, values) => {
            // Of these the library writes none, or nothing that it could read again.
            let is_unfit = matches!(
                **values,
                DataType::Utf8View
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_)
                    | DataType::Decimal128(..)
                    | DataType::Decimal256(..)
            );
            is_unfit.then_some((data_type, "cast it to its values before the sink"))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => Some((
            data_type,
            "cast it to another interval or a duration before the sink",
        )),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => unfit(field.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|field| unfit(field.data_type())),
        _ => None,
    }
}
