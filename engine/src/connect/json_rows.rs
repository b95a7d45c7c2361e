//! Turns lines of JSON into batches, and finds the lines that cannot be.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;

use super::lines::{Chunk, Line};

/// A line that is not a row, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLine {
    pub(super) number: u64,
    pub(super) reason: String,
}

/// Decodes lines of JSON, one object a line, into batches of one schema.
#[derive(Debug)]
pub(super) struct JsonRows {
    schema: SchemaRef,
    coerce: bool,
    /// A decoder that is ready, and how many rows it has room for.
    decoder: Option<(usize, Decoder)>,
}

impl JsonRows {
    /// Rows of `schema`. With `coerce` a text column also takes numbers and booleans.
    pub(super) const fn new(schema: SchemaRef, coerce: bool) -> Self {
        Self {
            schema,
            coerce,
            decoder: None,
        }
    }

    /// All lines of `chunk` as one batch. If there are bad lines among them, each is given to
    /// `on_bad`, in order, which says whether to go on without it.
    ///
    /// The lines are decoded together. Only if that fails are they searched, by halves, for
    /// those that are bad: an error of the decoder does not say which line it is about.
    pub(super) fn decode<E>(
        &mut self,
        chunk: &Chunk,
        mut on_bad: impl FnMut(BadLine) -> Result<(), E>,
    ) -> Result<Option<RecordBatch>, E> {
        let lines: Vec<&Line> = chunk.lines().iter().collect();
        if let Ok(batch) = self.try_decode(chunk, &lines) {
            return Ok(batch);
        }
        let mut good = Vec::with_capacity(lines.len());
        self.search(chunk, &lines, &mut good, &mut on_bad)?;
        // Lines that can be decoded apart can be decoded together.
        match self.try_decode(chunk, &good) {
            Ok(batch) => Ok(batch),
            Err(reason) => {
                let number = good.first().map_or(0, |line| line.number);
                on_bad(BadLine { number, reason })?;
                Ok(None)
            }
        }
    }

    /// Puts the lines that can be decoded into `good`.
    fn search<'a, E>(
        &mut self,
        chunk: &Chunk,
        lines: &[&'a Line],
        good: &mut Vec<&'a Line>,
        on_bad: &mut impl FnMut(BadLine) -> Result<(), E>,
    ) -> Result<(), E> {
        match (self.try_decode(chunk, lines), lines) {
            (Ok(_), _) => good.extend_from_slice(lines),
            (Err(reason), [line]) => {
                let number = line.number;
                on_bad(BadLine { number, reason })?;
            }
            (Err(_), _) => {
                let (left, right) = lines.split_at(lines.len() / 2);
                self.search(chunk, left, good, on_bad)?;
                self.search(chunk, right, good, on_bad)?;
            }
        }
        Ok(())
    }

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
            decoder
                .decode(chunk.text(line))
                .map_err(|error| error.to_string())?;
            if decoder.has_partial_record() {
                return Err("the line ends within a JSON object".to_owned());
            }
            if decoder.len() != row + 1 {
                return Err("the line is not exactly one JSON object".to_owned());
            }
        }
        let batch = decoder.flush().map_err(|error| error.to_string())?;
        self.decoder = Some((room, decoder));
        Ok(batch)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};

    use super::super::lines::LineReader;
    use super::*;

    fn decode(text: &str) -> (usize, Vec<BadLine>) {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("name", DataType::Utf8, true),
        ]);
        let mut chunk = Chunk::default();
        LineReader::new(text.as_bytes())
            .read(&mut chunk, 1000)
            .unwrap();
        let mut bad = Vec::new();
        let batch = JsonRows::new(Arc::new(schema), false)
            .decode(&chunk, |line| {
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
        LineReader::new(&text[..]).read(&mut chunk, 10).unwrap();
        let schema = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("name", DataType::Utf8, true),
        ]));
        let mut bad = Vec::new();
        let batch = JsonRows::new(schema, false)
            .decode(&chunk, |line| {
                bad.push(line.number);
                Ok::<_, ()>(())
            })
            .unwrap();
        assert_eq!((batch.unwrap().num_rows(), bad), (1, vec![1]));
    }
}
