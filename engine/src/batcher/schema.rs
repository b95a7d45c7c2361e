//! Whether a batch has the schema that a batcher expects, and where it differs.

use arrow::datatypes::{DataType, Field, Fields, Schema};

use super::error::BatchError;

/// Checks that two schemas are equal but for metadata: number and order of the columns, their
/// names, types and nullability.
///
/// # Errors
///
/// [`BatchError::Schema`] names the first column that differs: the ends of the edge disagree,
/// so correct one of them.
pub fn check_schema(found: &Schema, expected: &Schema) -> Result<(), BatchError> {
    let columns = expected.fields().iter().map(|field| Column {
        name: field.name(),
        data_type: field.data_type(),
        nullable: field.is_nullable(),
    });
    check_columns(found, columns)
}

/// What one column of an expected schema must be.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) name: &'a str,
    pub(super) data_type: &'a DataType,
    pub(super) nullable: bool,
}

impl Column<'_> {
    fn matches(&self, field: &Field) -> bool {
        self.name == field.name()
            && self.nullable == field.is_nullable()
            && same_type(self.data_type, field.data_type())
    }

    fn describe(&self) -> String {
        let nulls = if self.nullable {
            "nullable"
        } else {
            "not null"
        };
        format!("`{}` {} {nulls}", self.name, self.data_type)
    }
}

/// As [`check_schema`], for columns that are known without a schema at hand.
pub(super) fn check_columns<'a>(
    found: &Schema,
    expected: impl IntoIterator<Item = Column<'a>>,
) -> Result<(), BatchError> {
    let mut fields = found.fields().iter();
    let mut column = 0;
    for wanted in expected {
        match fields.next() {
            Some(field) if wanted.matches(field) => column += 1,
            other => {
                let found = other.map_or_else(|| "missing".into(), |field| describe(field));
                return Err(BatchError::Schema {
                    column,
                    expected: wanted.describe(),
                    found,
                });
            }
        }
    }
    match fields.next() {
        None => Ok(()),
        Some(extra) => Err(BatchError::Schema {
            column,
            expected: "the end of the columns".into(),
            found: describe(extra),
        }),
    }
}

/// A field as the errors name it.
fn describe(field: &Field) -> String {
    let column = Column {
        name: field.name(),
        data_type: field.data_type(),
        nullable: field.is_nullable(),
    };
    column.describe()
}

/// Equality that looks into nested types, because their fields carry metadata as well.
fn same_type(a: &DataType, b: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    match (a, b) {
        (List(a), List(b)) | (LargeList(a), LargeList(b)) => same_field(a, b),
        (FixedSizeList(a, m), FixedSizeList(b, n)) => m == n && same_field(a, b),
        (Map(a, m), Map(b, n)) => m == n && same_field(a, b),
        (Struct(a), Struct(b)) => same_fields(a, b),
        _ => a == b,
    }
}

fn same_fields(a: &Fields, b: &Fields) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_field(a, b))
}

fn same_field(a: &Field, b: &Field) -> bool {
    a.name() == b.name()
        && a.is_nullable() == b.is_nullable()
        && same_type(a.data_type(), b.data_type())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    fn field(name: &str, data_type: DataType, nullable: bool) -> Field {
        Field::new(name, data_type, nullable)
    }

    fn expected() -> Schema {
        Schema::new(vec![
            field("event_time", DataType::Int64, true),
            field("value", DataType::Int64, false),
        ])
    }

    fn difference(fields: Vec<Field>) -> (usize, String, String) {
        match check_schema(&Schema::new(fields), &expected()) {
            Err(BatchError::Schema {
                column,
                expected,
                found,
            }) => (column, expected, found),
            other => panic!("a schema error was expected, not {other:?}"),
        }
    }

    #[test]
    fn the_first_column_that_differs_is_named() {
        let time = field("event_time", DataType::Int64, true);
        let value = field("value", DataType::Int64, false);
        let (column, wanted, found) = difference(vec![value.clone(), time.clone()]);
        assert_eq!(
            (column, wanted.as_str()),
            (0, "`event_time` Int64 nullable")
        );
        assert_eq!(found, "`value` Int64 not null");

        for (other, found) in [
            (field("v", DataType::Int64, false), "`v` Int64 not null"),
            (
                field("value", DataType::Int64, true),
                "`value` Int64 nullable",
            ),
            (
                field("value", DataType::Int32, false),
                "`value` Int32 not null",
            ),
        ] {
            let difference = difference(vec![time.clone(), other]);
            assert_eq!((difference.0, difference.2.as_str()), (1, found));
        }

        let (column, _, found) = difference(vec![time.clone()]);
        assert_eq!((column, found.as_str()), (1, "missing"));
        let (column, _, found) = difference(vec![time, value.clone(), value]);
        assert_eq!((column, found.as_str()), (2, "`value` Int64 not null"));
    }

    #[test]
    fn metadata_is_ignored_at_every_depth() {
        let metadata = HashMap::from([("origin".to_string(), "t1".to_string())]);
        let item = field("item", DataType::Int64, true);
        let list = |item: Field| {
            let list = field("l", DataType::List(Arc::new(item)), false);
            field("s", DataType::Struct(vec![list].into()), false)
        };
        let plain = Schema::new(vec![list(item.clone())]);
        let marked = list(item.with_metadata(metadata.clone())).with_metadata(metadata.clone());
        let marked = Schema::new_with_metadata(vec![marked], metadata);
        assert!(check_schema(&marked, &plain).is_ok());

        let other = Schema::new(vec![list(field("element", DataType::Int64, true))]);
        assert!(check_schema(&other, &plain).is_err());
    }
}
