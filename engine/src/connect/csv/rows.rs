//! Turns rows of delimited values into batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::Decoder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::connect::csv::dialect::Dialect;
use crate::connect::text::lines::{Chunk, Line};
use crate::connect::text::rows::TextRows;
use crate::connect::text::times::TimeColumns;

/// Decodes rows of one file.
#[derive(Debug)]
pub(crate) struct CsvRows {
    dialect: Dialect,
    /// All columns of the file.
    file_schema: SchemaRef,
    /// Those that are wanted, by their place in the file.
    columns: Vec<usize>,
    times: TimeColumns,
    /// A decoder that is ready, and how many rows it has room for.
    decoder: Option<(usize, Decoder)>,
}

impl CsvRows {
    /// Rows of a file whose header has `names`; without one its columns are those that are
    /// wanted, in their order.
    ///
    /// # Errors
    /// A sentence, when a wanted column is not there, or there twice.
    pub(crate) fn new(
        dialect: Dialect,
        names: Option<&[String]>,
        times: TimeColumns,
    ) -> Result<Self, String> {
        let wanted = times.read_schema().clone();
        let Some(names) = names else {
            return Ok(Self {
                dialect,
                columns: (0..wanted.fields().len()).collect(),
                file_schema: wanted,
                times,
                decoder: None,
            });
        };
        let mut places: HashMap<&str, usize> = HashMap::with_capacity(names.len());
        let mut fields: Vec<Field> = Vec::with_capacity(names.len());
        for (place, name) in names.iter().enumerate() {
            if places.insert(name, place).is_some() && wanted.index_of(name).is_ok() {
                return Err(format!("the header names the column `{name}` twice"));
            }
            fields.push(Field::new(name, DataType::Utf8, true));
        }
        let mut columns = Vec::with_capacity(wanted.fields().len());
        for field in wanted.fields() {
            let Some(&place) = places.get(field.name().as_str()) else {
                let (name, known) = (field.name(), names.join("`, `"));
                return Err(format!(
                    "the header has no column `{name}`; its columns are `{known}`"
                ));
            };
            fields[place] = field.as_ref().clone();
            columns.push(place);
        }
        Ok(Self {
            dialect,
            file_schema: Arc::new(Schema::new(fields)),
            columns,
            times,
            decoder: None,
        })
    }

    fn build_decoder(&self, room: usize) -> (usize, Decoder) {
        let decoder = self.dialect.decoder(&self.file_schema, &self.columns, room);
        (room, decoder)
    }
}

impl TextRows for CsvRows {
    fn try_decode(
        &mut self,
        chunk: &Chunk,
        lines: &[&Line],
    ) -> Result<Option<RecordBatch>, String> {
        // A decoder that failed holds half a row, so it is only put back if it did not.
        let (room, mut decoder) = match self.decoder.take() {
            Some(ready) if ready.0 > lines.len() => ready,
            _ => self.build_decoder(lines.len() + 1),
        };
        for line in lines {
            if line.is_cut {
                return Err("the row is too long to be one: is a quote left open?".to_owned());
            }
            decode_row(&mut decoder, chunk.text(line))?;
        }
        let batch = decoder.flush().map_err(|error| without_line(&error))?;
        self.decoder = Some((room, decoder));
        batch.map(|batch| self.times.convert(batch)).transpose()
    }
}

/// Makes sure that `text` is one row, of the columns of `schema`.
pub(super) fn require_row(dialect: &Dialect, schema: &Schema, text: &[u8]) -> Result<(), String> {
    let texts = schema.fields().iter();
    let texts = texts.map(|field| Field::new(field.name(), DataType::Utf8, true));
    let texts = Arc::new(Schema::new(texts.collect::<Vec<_>>()));
    let columns: Vec<usize> = (0..texts.fields().len()).collect();
    decode_row(&mut dialect.decoder(&texts, &columns, 2), text)
}

/// A row of nothing, of the one column of `schema`.
pub(super) fn read_null(schema: SchemaRef) -> Result<Option<RecordBatch>, ArrowError> {
    let mut decoder = ReaderBuilder::new(schema).build_decoder();
    // Nothing at all would be a blank line.
    decoder.decode(b"\"\"\n")?;
    decoder.flush()
}

fn decode_row(decoder: &mut Decoder, text: &[u8]) -> Result<(), String> {
    let left = decoder.capacity();
    decode_all(decoder, text)?;
    if !text.ends_with(b"\n") {
        decode_all(decoder, b"\n")?;
    }
    if decoder.capacity() + 1 != left {
        return Err("the row ends within quotes".to_owned());
    }
    Ok(())
}

fn decode_all(decoder: &mut Decoder, mut text: &[u8]) -> Result<(), String> {
    while !text.is_empty() {
        let taken = decoder.decode(text).map_err(|error| without_line(&error))?;
        if taken == 0 {
            return Err("the row is more than one".to_owned());
        }
        text = &text[taken..];
    }
    Ok(())
}

/// What the decoder says, but for the line, which it counts from where it began.
fn without_line(error: &ArrowError) -> String {
    let text = error.to_string();
    for words in [" for line ", " at line "] {
        if let Some((before, after)) = text.split_once(words) {
            let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            return format!("{before}{after}");
        }
    }
    text
}
