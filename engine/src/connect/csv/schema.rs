//! The columns of CSV files, as their header and their first rows tell.

use arrow::datatypes::{DataType, Field, Schema};

use crate::connect::text::format::{end_line, read_header};
use crate::connect::text::input::{TextCompression, TextInput};
use crate::connect::text::lines::{Chunk, LineReader};
use crate::connect::text::reader::bad_row;
use crate::connect::text::times::event_time_as_time;
use crate::connect::{ConnectError, ListedFile, OnError};

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
    /// The columns of `files`, from the first rows of the first file that has any. Rows that
    /// are none are the reader's to report or to skip, so that both do the same.
    pub(crate) fn infer(&self, files: &[ListedFile]) -> Result<Schema, ConnectError> {
        for listed in files {
            if let Some(schema) = self.infer_file(listed)? {
                return Ok(event_time_as_time(
                    settled(&schema),
                    self.event_time,
                    self.has_time_format,
                ));
            }
        }
        let reason = "there is no row from which to infer the columns: give them";
        Err(ConnectError::option("schema", reason))
    }

    fn infer_file(&self, listed: &ListedFile) -> Result<Option<Schema>, ConnectError> {
        let unreadable = |error| ConnectError::file(&listed.path, error);
        let input = TextInput::of_file(&listed.path, listed.open()?, self.compression);
        let input = input.map_err(unreadable)?;
        let mut lines = LineReader::new(input, self.dialect.quoting());
        let header = match self.dialect.has_header {
            true => read_header(&mut lines).map_err(unreadable)?,
            false => Vec::new(),
        };
        let (mut text, mut rows) = (header.clone(), 0);
        let mut chunk = Chunk::default();
        while rows < self.rows_max {
            lines
                .read(&mut chunk, self.rows_max - rows)
                .map_err(unreadable)?;
            if chunk.lines().is_empty() {
                break;
            }
            for line in chunk.lines() {
                // Its own columns are asked for, to find out whether it is a row at all.
                let alone = [&header[..], chunk.text(line)].concat();
                match (self.dialect.infer(&alone), self.on_error) {
                    (Ok(_), _) => {
                        text.extend_from_slice(chunk.text(line));
                        end_line(&mut text);
                        rows += 1;
                    }
                    (Err(_), OnError::Skip) => {}
                    (Err(reason), OnError::Fail) => {
                        let number = line.number;
                        return Err(bad_row(&listed.path, number, reason));
                    }
                }
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let schema = self.dialect.infer(&text);
        schema
            .map(Some)
            .map_err(|reason| ConnectError::option("schema", reason))
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
