//! Reads a file of lines, of whichever format.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::limits::BATCH_ROWS;

use super::bad_rows::BadRows;
use super::lines::{Chunk, LineReader};
use super::text_input::TextInput;
use super::text_rows::{BadLine, TextRows, decode};
use super::{ConnectError, Counters, EventTimeLayout, SplitReader};

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

/// Knows how text is rows.
pub(super) trait TextFormat: Send + Sync {
    /// The schema of the rows: column 0 is the event time.
    fn schema(&self) -> SchemaRef;

    /// Reads `input`, which messages call `path`.
    fn reader(&self, input: TextInput, path: &Path) -> Result<Box<dyn SplitReader>, ConnectError>;
}

/// Reads lines as rows, batch by batch.
pub(super) struct TextReader {
    lines: LineReader<TextInput>,
    chunk: Chunk,
    rows: Box<dyn TextRows>,
    layout: EventTimeLayout,
    on_error: OnError,
    bad_rows: Option<BadRows>,
    /// Where the lines come from, for messages.
    path: PathBuf,
    /// Rows left out that have not been counted.
    skipped_rows: u64,
}

impl TextReader {
    /// Reads what is left of `lines`, which come from `path`.
    pub(super) fn new(
        lines: LineReader<TextInput>,
        rows: Box<dyn TextRows>,
        layout: EventTimeLayout,
        on_error: OnError,
        path: &Path,
    ) -> Self {
        Self {
            lines,
            chunk: Chunk::default(),
            rows,
            layout,
            on_error,
            bad_rows: None,
            path: path.to_owned(),
            skipped_rows: 0,
        }
    }

    /// Also writes the rows that are left out to `bad_rows`.
    pub(super) fn with_bad_rows(
        mut self,
        bad_rows: Option<&BadRows>,
    ) -> Result<Self, ConnectError> {
        if let Some(bad_rows) = bad_rows {
            bad_rows.start()?;
        }
        self.bad_rows = bad_rows.cloned();
        Ok(self)
    }
}

impl SplitReader for TextReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        let more = self
            .lines
            .read_some(&mut self.chunk, BATCH_ROWS)
            .map_err(|error| ConnectError::file(&self.path, error))?;
        let without_rows = || RecordBatch::new_empty(self.layout.schema().clone());
        let Some(first) = self.chunk.lines().first().map(|line| line.number) else {
            return Ok(more.then(without_rows));
        };
        let on_bad = |line: BadLine| match (self.on_error, &self.bad_rows) {
            (OnError::Fail, _) => Err(bad_row(&self.path, line)),
            (OnError::Skip, bad_rows) => {
                self.skipped_rows += 1;
                let Some(bad_rows) = bad_rows else {
                    return Ok(());
                };
                let text = self.chunk.text_of(line.number);
                bad_rows.add(&self.path, &line, text)
            }
        };
        let Some(batch) = decode(&mut *self.rows, &self.chunk, on_bad)? else {
            return Ok(Some(without_rows()));
        };
        let applied = self.layout.apply(&batch);
        applied.map(Some).map_err(|reason| {
            let number = first;
            bad_row(&self.path, BadLine { number, reason })
        })
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
pub(super) fn bad_row(path: &Path, line: BadLine) -> ConnectError {
    ConnectError::Row {
        path: path.to_owned(),
        line: line.number,
        reason: line.reason,
    }
}
