//! Reads a file of lines, of whichever format.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use serde::Deserialize;

use crate::connect::{
    ConnectError, Counters, EventTimeLayout, Position, SplitReader, TextCompression,
};
use crate::limits::BATCH_ROWS;

use super::bad_rows::BadRows;
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
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The file, or what live input is called.
    pub(crate) path: PathBuf,
    /// How the file is compressed.
    pub(crate) compression: TextCompression,
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
        let lines_before = LazyCount {
            origin: &self.origin,
            until: self.lines.numbered_from(),
            lines: OnceCell::new(),
        };
        let on_bad = |line: BadLine| {
            let number = lines_before.read()? + line.number;
            if self.on_error == OnError::Fail {
                return Err(bad_row(&self.origin.path, number, line.reason));
            }
            self.skipped_rows += 1;
            let Some(bad_rows) = &self.bad_rows else {
                return Ok(());
            };
            let text = self.chunk.text_of(line.number);
            bad_rows.add(&self.origin.path, number, &line.reason, text)
        };
        let Some(batch) = decode(&mut *self.rows, &self.chunk, on_bad)? else {
            return Ok(None);
        };
        self.layout.apply(&batch).map(Some).map_err(|reason| {
            let first = self.chunk.lines().first().map_or(0, |line| line.number);
            match lines_before.read() {
                Ok(before) => bad_row(&self.origin.path, before + first, reason),
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

/// The lines before where a reader began, which are only counted when a line is to be named.
struct LazyCount<'a> {
    origin: &'a Origin,
    /// Up to which byte.
    until: u64,
    lines: OnceCell<u64>,
}

impl LazyCount<'_> {
    fn read(&self) -> Result<u64, ConnectError> {
        if self.until == 0 {
            return Ok(0);
        }
        if let Some(lines) = self.lines.get() {
            return Ok(*lines);
        }
        let Origin { path, compression } = self.origin;
        let count = File::open(path)
            .and_then(|file| TextInput::of_file(path, file, *compression))
            .and_then(|input| count_lines(input.take(self.until)));
        let lines = count.map_err(|error| ConnectError::file(path, error))?;
        Ok(*self.lines.get_or_init(|| lines))
    }
}

fn count_lines(mut text: impl Read) -> io::Result<u64> {
    let (mut part, mut lines) = (vec![0; 64 << 10], 0);
    loop {
        match text.read(&mut part) {
            Ok(0) => return Ok(lines),
            Ok(read) => lines += part[..read].iter().filter(|byte| **byte == b'\n').count() as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The error that a row makes.
pub(crate) fn bad_row(path: &Path, line: u64, reason: String) -> ConnectError {
    let path = path.to_owned();
    ConnectError::Row { path, line, reason }
}
