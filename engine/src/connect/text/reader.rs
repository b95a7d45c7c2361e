//! Reads a file of lines, of whichever format.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use serde::Deserialize;

use crate::connect::{
    ConnectError, Counters, EventTimeLayout, Position, SplitReader, TextCompression,
};
use crate::limits::BATCH_ROWS;

use super::bad_rows::BadRows;
use super::counts::LineCounts;
use super::input::TextInput;
use super::lines::{Chunk, LineReader};
use super::rows::{BadLine, TextRows, decode};

/// What a row does that cannot be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It fails the job, with its file and line.
    #[default]
    Fail,
    /// It is left out and counted ([`Counters::skipped_rows`]).
    Skip,
}

/// Reads lines as rows, batch by batch.
pub(crate) struct TextReader {
    lines: LineReader<TextInput>,
    chunk: Chunk,
    rows: Box<dyn TextRows>,
    layout: EventTimeLayout,
    on_error: OnError,
    bad_rows: Option<BadRows>,
    origin: Origin,
    /// Rows left out that have not been counted.
    skipped_rows: u64,
}

/// Where the lines come from, for messages.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The file, or what live input is called.
    path: PathBuf,
    compression: TextCompression,
    counts: LineCounts,
    /// The lines before those that are read, which are only counted when one is to be named.
    lines_before: OnceCell<u64>,
}

impl Origin {
    /// The file `path`, which is compressed like that, or what live input is called.
    pub(crate) fn new(path: &Path, compression: TextCompression, counts: LineCounts) -> Self {
        Self {
            path: path.to_owned(),
            compression,
            counts,
            lines_before: OnceCell::new(),
        }
    }

    /// The lines before the byte `until`, where the first of those begins that are read.
    fn lines_before(&self, until: u64) -> Result<u64, ConnectError> {
        if let Some(lines) = self.lines_before.get() {
            return Ok(*lines);
        }
        let lines = match until {
            0 => 0,
            until => self.counts.before(&self.path, self.compression, until)?,
        };
        Ok(*self.lines_before.get_or_init(|| lines))
    }
}

impl TextReader {
    /// Reads what is left of `lines`, which come from `origin`.
    pub(crate) fn new(
        lines: LineReader<TextInput>,
        rows: Box<dyn TextRows>,
        layout: EventTimeLayout,
        on_error: OnError,
        origin: Origin,
    ) -> Self {
        Self {
            lines,
            chunk: Chunk::default(),
            rows,
            layout,
            on_error,
            bad_rows: None,
            origin,
            skipped_rows: 0,
        }
    }

    /// Also writes the rows that are left out to `bad_rows`.
    pub(crate) fn with_bad_rows(
        mut self,
        bad_rows: Option<&BadRows>,
    ) -> Result<Self, ConnectError> {
        if let Some(bad_rows) = bad_rows {
            bad_rows.start()?;
        }
        self.bad_rows = bad_rows.cloned();
        Ok(self)
    }

    /// All that is in the chunk as one batch, without the rows that cannot be understood.
    fn decode(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        let (origin, until) = (&self.origin, self.lines.numbered_from());
        let number_of = |line: u64| Ok(origin.lines_before(until)? + line);
        let on_bad = |line: BadLine| {
            // More rows than one are not left out for a reason that none of them is.
            if self.on_error == OnError::Fail || line.apart > 0 {
                return Err(bad_row(&origin.path, number_of(line.number)?, line.reason));
            }
            self.skipped_rows += 1;
            let Some(bad_rows) = &self.bad_rows else {
                return Ok(());
            };
            let text = self.chunk.text_of(line.number);
            bad_rows.add(&origin.path, number_of(line.number)?, &line.reason, text)
        };
        let Some(batch) = decode(&mut *self.rows, &self.chunk, on_bad)? else {
            return Ok(None);
        };
        self.layout.apply(&batch).map(Some).map_err(|reason| {
            let first = self.chunk.lines().first().map_or(0, |line| line.number);
            match number_of(first) {
                Ok(number) => bad_row(&origin.path, number, reason),
                Err(error) => error,
            }
        })
    }
}

impl SplitReader for TextReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        let more = self
            .lines
            .read_some(&mut self.chunk, BATCH_ROWS)
            .map_err(|error| ConnectError::file(&self.origin.path, error))?;
        if !more {
            return Ok(None);
        }
        let batch = match self.chunk.lines() {
            [] => None,
            _ => self.decode()?,
        };
        let without_rows = || RecordBatch::new_empty(self.layout.schema().clone());
        Ok(Some(batch.unwrap_or_else(without_rows)))
    }

    fn position(&self) -> Position {
        Position::Bytes(self.lines.offset())
    }

    fn take_counters(&mut self) -> Counters {
        Counters {
            bytes: self.lines.input().take_bytes(),
            skipped_rows: std::mem::take(&mut self.skipped_rows),
            ..Counters::default()
        }
    }
}

/// The error that a row makes.
pub(crate) fn bad_row(path: &Path, line: u64, reason: String) -> ConnectError {
    let path = path.to_owned();
    ConnectError::Row { path, line, reason }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::connect::text::lines::Line;

    /// Rows of nothing: lines that begin with `b` are bad.
    struct Nothing(arrow::datatypes::SchemaRef);

    impl TextRows for Nothing {
        fn try_decode(
            &mut self,
            chunk: &Chunk,
            lines: &[&Line],
        ) -> Result<Option<RecordBatch>, String> {
            if lines.iter().any(|line| chunk.text(line).starts_with(b"b")) {
                return Err("bad".to_owned());
            }
            let column = Arc::new(Int64Array::new_null(lines.len()));
            let batch = RecordBatch::try_new(self.0.clone(), vec![column]);
            Ok(Some(batch.unwrap()))
        }
    }

    /// Reads what of `path` is behind its first line.
    fn reader(path: &Path, on_error: OnError, bad_rows: Option<&BadRows>) -> TextReader {
        let compression = TextCompression::None;
        let file = std::fs::File::open(path).unwrap();
        let (input, at) = TextInput::of_file_from(path, file, compression, 1).unwrap();
        let lines = LineReader::starting(input, None, at, 2);
        let schema = Schema::new(vec![Field::new("event_time", DataType::Int64, true)]);
        let layout = EventTimeLayout::new(&schema, None).unwrap();
        let rows = Box::new(Nothing(Arc::new(schema)));
        let origin = Origin::new(path, compression, LineCounts::default());
        let reader = TextReader::new(lines, rows, layout, on_error, origin);
        reader.with_bad_rows(bad_rows).unwrap()
    }

    #[test]
    fn the_lines_before_a_piece_are_counted_once_and_only_where_one_is_to_be_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let bad = dir.path().join("bad");
        let bad_rows = BadRows::new(Some(&bad), dir.path(), OnError::Skip, &[]).unwrap();
        for bad_rows in [None, bad_rows.as_ref()] {
            let mut file = std::fs::File::create(&path).unwrap();
            writeln!(file, "x").unwrap();
            for _ in 0..3 {
                file.write_all("good\n".repeat(BATCH_ROWS - 1).as_bytes())
                    .unwrap();
                writeln!(file, "bad").unwrap();
            }
            let mut reader = reader(&path, OnError::Skip, bad_rows);
            let mut rows = 0;
            for part in 0..3 {
                // Where lines are counted, they are counted with the first that is bad.
                if part == usize::from(bad_rows.is_some()) {
                    std::fs::remove_file(&path).unwrap();
                }
                rows += reader.next().unwrap().unwrap().num_rows();
            }
            assert_eq!(rows, 3 * (BATCH_ROWS - 1));
            assert_eq!(reader.take_counters().skipped_rows, 3);
        }
        let kept = std::fs::read_to_string(&bad).unwrap();
        let numbers = kept.lines().map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            row["line"].as_u64().unwrap()
        });
        let expected = [1, 2, 3].map(|part| 1 + part * BATCH_ROWS as u64);
        assert_eq!(numbers.collect::<Vec<_>>(), expected);
    }
}
