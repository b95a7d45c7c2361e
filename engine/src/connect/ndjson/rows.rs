//! Turns lines of JSON into batches, and finds the lines that cannot be.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;

use crate::connect::text::lines::{Chunk, Line};
use crate::connect::text::rows::TextRows;
use crate::connect::text::times::TimeColumns;

use super::nesting::require_levels;
use super::numbers::WholeNumbers;

/// Decodes lines of JSON, one object a line, into batches of one schema.
#[derive(Debug)]
pub(crate) struct JsonRows {
    schema: SchemaRef,
    coerce: bool,
    /// Where there are columns of whole numbers or timestamps.
    numbers: Option<WholeNumbers>,
    times: Option<TimeColumns>,
    /// A decoder that is ready, and how many rows it has room for.
    decoder: Option<(usize, Decoder)>,
}

impl JsonRows {
    /// Rows of `schema`. With `coerce` a text column also takes numbers and booleans.
    pub(crate) fn new(schema: SchemaRef, coerce: bool) -> Self {
        Self {
            numbers: WholeNumbers::new(&schema),
            schema,
            coerce,
            times: None,
            decoder: None,
        }
    }

    /// Rows whose times are in a form of their own. Numbers and booleans are text where text
    /// is wanted, for a time may be a number.
    pub(crate) fn with_times(times: TimeColumns) -> Self {
        let mut rows = Self::new(times.read_schema().clone(), true);
        rows.times = Some(times);
        rows
    }

    fn build_decoder(&self, room: usize) -> Result<(usize, Decoder), String> {
        let decoder = ReaderBuilder::new(self.schema.clone())
            .with_batch_size(room)
            .with_coerce_primitive(self.coerce)
            .build_decoder()
            .map_err(|error| error.to_string())?;
        Ok((room, decoder))
    }
}

impl TextRows for JsonRows {
    fn try_decode(
        &mut self,
        chunk: &Chunk,
        lines: &[&Line],
    ) -> Result<Option<RecordBatch>, String> {
        // A decoder that failed holds half a row, so it is only put back if it did not.
        let (room, mut decoder) = match self.decoder.take() {
            Some(ready) if ready.0 > lines.len() => ready,
            _ => self.build_decoder(lines.len() + 1)?,
        };
        for (row, line) in lines.iter().enumerate() {
            if line.is_cut {
                return Err("the line is too long to be a row".to_owned());
            }
            let text = chunk.text(line);
            require_levels(text)?;
            if let Some(numbers) = &self.numbers {
                numbers.check(text)?;
            }
            decoder.decode(text).map_err(|error| error.to_string())?;
            if decoder.has_partial_record() {
                return Err("the line ends within a JSON object".to_owned());
            }
            if decoder.len() != row + 1 {
                return Err("the line is not exactly one JSON object".to_owned());
            }
        }
        let batch = decoder.flush().map_err(|error| error.to_string())?;
        self.decoder = Some((room, decoder));
        match (batch, &self.times) {
            (Some(batch), Some(times)) => times.convert(batch).map(Some),
            (batch, _) => Ok(batch),
        }
    }
}

/// A row of nothing.
pub(super) fn read_null(schema: SchemaRef) -> Result<Option<RecordBatch>, ArrowError> {
    let mut decoder = ReaderBuilder::new(schema).build_decoder()?;
    decoder.decode(b"{}\n")?;
    decoder.flush()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::connect::text::lines::LineReader;
    use crate::connect::text::rows::{BadLine, decode as decode_chunk};

    fn decode(text: &str) -> (usize, Vec<BadLine>) {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("name", DataType::Utf8, true),
        ]);
        let mut chunk = Chunk::default();
        LineReader::new(text.as_bytes(), None)
            .read(&mut chunk, 1000)
            .unwrap();
        let mut bad = Vec::new();
        let mut rows = JsonRows::new(Arc::new(schema), false);
        let batch = decode_chunk(&mut rows, &chunk, |line| {
            bad.push(line);
            Ok::<_, ()>(())
        })
        .unwrap();
        (batch.map_or(0, |batch| batch.num_rows()), bad)
    }

    #[test]
    fn rows_with_every_kind_of_mistake_are_found_by_their_line() {
        let text = concat!(
            "{\"id\":1}\n",
            "{\"id\":2\n",
            "\n",
            "{\"id\":\"x\"}\n",
            "{\"id\":5} {\"id\":6}\n",
            "7\n",
            "{\"name\":\"no id\"}\n",
            "{\"id\":8,\"more\":[1,{}]}\n",
            "nonsense\n",
            "{\"id\":10}"
        );
        let (rows, bad) = decode(text);
        let numbers: Vec<_> = bad.iter().map(|line| line.number).collect();
        assert_eq!(rows, 3);
        assert_eq!(numbers, [2, 4, 5, 6, 7, 9]);
        assert!(bad.iter().all(|line| !line.reason.is_empty()), "{bad:?}");
    }

    #[test]
    fn a_row_over_two_lines_is_two_bad_lines() {
        let (rows, bad) = decode("{\"id\":\n1}\n{\"id\":2}\n");
        assert_eq!(rows, 1);
        assert_eq!(bad.len(), 2);
    }

    #[test]
    fn text_that_is_not_utf8_is_a_bad_line() {
        let mut text = b"{\"id\":1,\"name\":\"".to_vec();
        text.extend_from_slice(b"\xff\xfe\"}\n{\"id\":2}\n");
        let mut chunk = Chunk::default();
        LineReader::new(&text[..], None)
            .read(&mut chunk, 10)
            .unwrap();
        let schema = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("name", DataType::Utf8, true),
        ]));
        let mut bad = Vec::new();
        let batch = decode_chunk(&mut JsonRows::new(schema, false), &chunk, |line| {
            bad.push(line.number);
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!((batch.unwrap().num_rows(), bad), (1, vec![1]));
    }
}
