//! Reads newline-delimited JSON files, split by file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::limits::BATCH_ROWS;
use crate::operator::{Source, Subtask};

use super::connector::describe_files;
use super::json_rows::{BadLine, JsonRows};
use super::json_schema::{ColumnOption, given_schema, inferred_schema};
use super::lines::{Chunk, LineReader};
use super::reader::AHEAD_BYTES_MAX;
use super::{
    ConnectError, ConnectorStats, Counters, EventTimeLayout, ListedFile, Paths, SourceConnector,
    Split, SplitFormat, SplitInput, SplitReader, SplitSource, WatermarkOptions, assigned,
    list_files,
};

/// Bytes that are read from a file at a time.
const READ_BYTES: usize = 256 << 10;

/// Options of the connector `ndjson`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NdjsonSourceOptions {
    /// The files: a path or a pattern (`*`, `?`, `[a-z]`, `**`), or a list of them. Required.
    pub path: Paths,
    /// The columns and their types. Fields of a row that are not among them are left out.
    /// Default: inferred from the first rows: all columns nullable, in the order of their
    /// names; a column that is of several types, or null in all these rows, is text.
    #[serde(default)]
    pub schema: Option<Vec<ColumnOption>>,
    /// Rows from which the schema is inferred, over the files in order. Default 1000.
    #[serde(default = "infer_rows")]
    pub infer_rows: usize,
    /// What a row does that cannot be understood. Default `"fail"`.
    #[serde(default)]
    pub on_error: OnError,
    /// The column that holds the event time: int64 milliseconds since the Unix epoch, or a
    /// timestamp. It becomes column 0, `event_time`. Default: the column `event_time` if
    /// there is one; otherwise no row has an event time.
    #[serde(default)]
    pub event_time: Option<String>,
    /// How watermarks are made. Default: none before the end.
    #[serde(default)]
    pub watermark: Option<WatermarkOptions>,
}

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

/// A source of newline-delimited JSON files.
pub struct NdjsonSource {
    format: Arc<NdjsonFormat>,
    files: Arc<[ListedFile]>,
    watermark: Option<WatermarkOptions>,
    stats: ConnectorStats,
}

impl NdjsonSource {
    /// Lists the files (relative paths begin at `base`) and, where no schema is given, reads
    /// as many rows as it takes to infer one.
    ///
    /// # Errors
    /// When a path matches nothing, a file cannot be read, a schema cannot be understood or
    /// inferred, or there is no such column for the event time.
    pub fn new(options: NdjsonSourceOptions, base: &Path) -> Result<Self, ConnectError> {
        let files = list_files(base, options.path.as_slice())?;
        let schema = match &options.schema {
            Some(columns) => given_schema(columns)?,
            None => inferred_schema(&files, options.infer_rows, options.on_error)?,
        };
        let layout = EventTimeLayout::new(&schema, options.event_time.as_deref())?;
        Ok(Self {
            format: Arc::new(NdjsonFormat {
                schema: Arc::new(schema),
                is_inferred: options.schema.is_none(),
                layout,
                on_error: options.on_error,
            }),
            files: files.into(),
            watermark: options.watermark,
            stats: ConnectorStats::default(),
        })
    }
}

impl SourceConnector for NdjsonSource {
    fn schema(&self) -> SchemaRef {
        self.format.layout.schema().clone()
    }

    fn has_event_time(&self) -> bool {
        self.format.layout.has_event_time()
    }

    fn parallelism_max(&self) -> Option<usize> {
        Some(self.files.len())
    }

    fn describe(&self) -> String {
        describe_files("ndjson", &self.files)
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let splits: Vec<Split> = (0..self.files.len()).map(Split::whole).collect();
        let input = SplitInput {
            format: self.format.clone(),
            files: self.files.clone(),
            splits: assigned(&splits, subtask.index, subtask.parallelism.subtasks()),
            stats: self.stats.clone(),
        };
        Box::new(SplitSource::new(input, self.watermark.clone()))
    }
}

struct NdjsonFormat {
    /// The schema of the files.
    schema: SchemaRef,
    /// Whether the schema was inferred.
    is_inferred: bool,
    layout: EventTimeLayout,
    on_error: OnError,
}

impl SplitFormat for NdjsonFormat {
    fn open(
        &self,
        _split: &Split,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        Ok(Box::new(NdjsonReader {
            lines: LineReader::new(BufReader::with_capacity(READ_BYTES, file)),
            chunk: Chunk::default(),
            rows: JsonRows::new(self.schema.clone(), self.is_inferred),
            layout: self.layout.clone(),
            on_error: self.on_error,
            listed: listed.clone(),
            skipped_rows: 0,
        }))
    }
}

struct NdjsonReader {
    lines: LineReader<BufReader<File>>,
    chunk: Chunk,
    rows: JsonRows,
    layout: EventTimeLayout,
    on_error: OnError,
    listed: ListedFile,
    /// Rows left out that have not been counted.
    skipped_rows: u64,
}

impl SplitReader for NdjsonReader {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        loop {
            self.lines
                .read(&mut self.chunk, BATCH_ROWS)
                .map_err(|error| ConnectError::file(&self.listed.path, error))?;
            let Some(first) = self.chunk.lines().first().map(|line| line.number) else {
                return Ok(None);
            };
            let on_bad = |line| match self.on_error {
                OnError::Fail => Err(bad_row(&self.listed.path, line)),
                OnError::Skip => {
                    self.skipped_rows += 1;
                    Ok(())
                }
            };
            if let Some(batch) = self.rows.decode(&self.chunk, on_bad)? {
                let applied = self.layout.apply(&batch);
                return applied.map(Some).map_err(|reason| {
                    let number = first;
                    bad_row(&self.listed.path, BadLine { number, reason })
                });
            }
        }
    }

    fn take_counters(&mut self) -> Counters {
        Counters {
            bytes: self.lines.take_bytes(),
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

const fn infer_rows() -> usize {
    1000
}
