//! The types that the columns of a text file can have, found out before any row is read.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::connect::ConnectError;
use crate::limits::NESTING_MAX;

/// Bytes that every value of a column may take, whatever is in it: a batch of rows that are all
/// null has thousands of them.
const FIXED_BYTES_MAX: usize = 64 << 10;

/// Why there can be no column of this type. What text can be read as it is another question.
pub(crate) fn refused_type(data_type: &DataType) -> Option<String> {
    match refusal(data_type, NESTING_MAX) {
        Some(reason) => Some(reason.to_owned()),
        None if fixed_bytes(data_type) > FIXED_BYTES_MAX => Some(format!(
            "every value takes more than {FIXED_BYTES_MAX} bytes"
        )),
        None => None,
    }
}

fn refusal(data_type: &DataType, levels: usize) -> Option<&'static str> {
    let Some(levels) = levels.checked_sub(1) else {
        return Some("it is nested too deeply");
    };
    match data_type {
        DataType::Dictionary(key, _) if !key.is_dictionary_key_type() => {
            Some("the keys of a dictionary are integers")
        }
        // More different values may be in a batch than there are such keys.
        DataType::Dictionary(key, _) if matches!(**key, DataType::Int8 | DataType::UInt8) => {
            Some("the keys of a dictionary have at least 16 bits")
        }
        DataType::Dictionary(_, values) => refusal(values, levels),
        DataType::RunEndEncoded(ends, _) if !ends.data_type().is_run_ends_type() => {
            Some("the ends of runs are signed integers of 16 bits or more")
        }
        DataType::RunEndEncoded(_, item)
        | DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => refusal(item.data_type(), levels),
        DataType::Struct(fields) => {
            let mut fields = fields.iter();
            fields.find_map(|field| refusal(field.data_type(), levels))
        }
        _ => None,
    }
}

/// Bytes that a value takes, even one that is null.
pub(crate) fn fixed_bytes(data_type: &DataType) -> usize {
    let width = |width: &i32| usize::try_from(*width).unwrap_or(usize::MAX);
    match data_type {
        DataType::FixedSizeBinary(bytes) => width(bytes),
        DataType::FixedSizeList(item, items) => {
            width(items).saturating_mul(fixed_bytes(item.data_type()).max(1))
        }
        DataType::Struct(fields) => fields.iter().fold(0, |bytes: usize, field| {
            bytes.saturating_add(fixed_bytes(field.data_type()))
        }),
        // That of one that is fixed, or of what refers to one that is not.
        other => other.primitive_width().unwrap_or(size_of::<u64>()),
    }
}

/// The first column of each type: there may be very many columns, of few types.
pub(crate) fn first_of_each_type(schema: &Schema) -> impl Iterator<Item = &FieldRef> {
    let mut seen = HashSet::new();
    let fields = schema.fields().iter();
    fields.filter(move |field| seen.insert(field.data_type()))
}

/// Makes sure that each column of `schema` can be read from `form`: `read` is to read a row of
/// which the only column is null. Otherwise no row could be understood, and with
/// `on_error = "skip"` nobody would be told.
pub(crate) fn require_readable(
    schema: &Schema,
    form: &str,
    read: impl Fn(SchemaRef) -> Result<Option<RecordBatch>, ArrowError>,
) -> Result<(), ConnectError> {
    for field in first_of_each_type(schema) {
        let (name, data_type) = (field.name(), field.data_type());
        let nullable = Field::new(name, data_type.clone(), true);
        if let Err(error) = read(Arc::new(Schema::new(vec![nullable]))) {
            let reason = format!(
                "the column `{name}` has the type {data_type}, which cannot be read from {form}: \
                 {error}"
            );
            return Err(ConnectError::option("schema", reason));
        }
    }
    Ok(())
}
