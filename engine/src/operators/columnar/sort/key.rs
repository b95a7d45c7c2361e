//! What rows are ordered by.

use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, SortField};

use crate::operators::SpecError;

/// A column to order by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The position of the column.
    pub column: usize,
    /// Whether the greatest comes first.
    pub descending: bool,
    /// Whether rows without a value come first, whatever the direction.
    pub nulls_first: bool,
}

impl SortKey {
    /// By `column`, the least first and nulls last.
    pub const fn ascending(column: usize) -> Self {
        Self {
            column,
            descending: false,
            nulls_first: false,
        }
    }

    /// By `column`, the greatest first and nulls last.
    pub const fn descending(column: usize) -> Self {
        Self {
            column,
            descending: true,
            nulls_first: false,
        }
    }
}

/// Brings rows of `schema` into a form in which their order, by `keys`, is that of their bytes.
pub(in crate::operators::columnar) fn order_converter(
    schema: &Schema,
    keys: &[SortKey],
) -> Result<RowConverter, SpecError> {
    let columns = schema.fields();
    let mut fields = Vec::new();
    for key in keys {
        let field = columns.get(key.column);
        let field = field.ok_or_else(|| SpecError::NoColumn {
            what: "the order".to_owned(),
            column: key.column,
            columns: columns.len(),
        })?;
        let options = SortOptions {
            descending: key.descending,
            nulls_first: key.nulls_first,
        };
        let by = SortField::new_with_options(field.data_type().clone(), options);
        if !RowConverter::supports_fields(std::slice::from_ref(&by)) {
            return Err(SpecError::ColumnType {
                what: "the order".to_owned(),
                column: key.column,
                data_type: field.data_type().clone(),
            });
        }
        fields.push(by);
    }
    RowConverter::new(fields).map_err(|error| SpecError::Key {
        message: error.to_string(),
    })
}
