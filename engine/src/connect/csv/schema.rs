//! The columns of CSV files, as their header and their first rows tell.

use arrow::datatypes::{DataType, Field, Schema};

use crate::connect::text::sample::Sample;
use crate::connect::text::times::event_time_as_time;
use crate::connect::{ConnectError, ListedFile, OnError, TextCompression};

use super::dialect::Dialect;

/// What the columns are inferred with.
pub(crate) struct Inference<'a> {
    pub(crate) dialect: &'a Dialect,
    pub(crate) rows_max: usize,
    pub(crate) on_error: OnError,
    pub(crate) compression: TextCompression,
    pub(crate) event_time: Option<&'a str>,
    /// Whether the form of times is given, so that a number may be one.
    pub(crate) has_time_format: bool,
}

impl Inference<'_> {
    /// The columns of `files`, from the first rows of the first file that has any.
    pub(crate) fn infer(&self, files: &[ListedFile]) -> Result<Schema, ConnectError> {
        let (dialect, marks) = (self.dialect, Some(self.dialect.marks));
        let mut sample = Sample::new(self.rows_max, self.on_error, self.compression);
        // A line's own columns are asked for, to find out whether it is a row at all.
        let is_row = |text: &[u8]| dialect.infer(text).map(|_| ());
        for listed in files {
            sample.add(listed, marks, dialect.has_header, is_row)?;
            if sample.rows() > 0 {
                break;
            }
        }
        sample.require_rows()?;
        let schema = dialect.infer(sample.text());
        let schema = schema.map_err(|reason| ConnectError::option("schema", reason))?;
        let schema = settled(&schema);
        Ok(event_time_as_time(
            schema,
            self.event_time,
            self.has_time_format,
        ))
    }
}

/// The columns, all nullable; one that was always null is text.
fn settled(schema: &Schema) -> Schema {
    let settled = |field: &std::sync::Arc<Field>| {
        let data_type = match field.data_type() {
            DataType::Null => DataType::Utf8,
            other => other.clone(),
        };
        Field::new(field.name(), data_type, true)
    };
    Schema::new(schema.fields().iter().map(settled).collect::<Vec<_>>())
}
