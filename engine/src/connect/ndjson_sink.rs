//! Writes newline-delimited JSON, to a file or to standard output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use serde::Deserialize;

use crate::operator::{Sink, Subtask};
use crate::partition::Parallelism;

use super::connector::paths_of_subtasks;
use super::json_times::require_times;
use super::pending_file::require_folder;
use super::text_output::TextOutput;
use super::writer::{AHEAD_BYTES_MAX, BatchWriter, WriterSink};
use super::{ConnectError, ConnectorStats, SinkConnector, TextCompression, path_of_subtask};

/// Options of the connector `ndjson`, a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NdjsonSinkOptions {
    /// The file to write. Its folder must exist; a file of that name is replaced when the
    /// stream has ended. With several subtasks each writes a file of its own,
    /// `name-<index>.ext`. Required.
    pub path: PathBuf,
    /// Whether a null is written as `null`; otherwise its field is left out. Default false.
    #[serde(default)]
    pub explicit_nulls: bool,
    /// How the file is compressed. Default `"auto"`: as its name says.
    #[serde(default)]
    pub compression: TextCompression,
}

/// A sink of newline-delimited JSON files.
///
/// The event time is written as the number it is, timestamps as text (RFC 3339 without a
/// zone), decimals as numbers with all their digits; NaN and the infinities as `null`, for
/// JSON has no word for them.
#[derive(Clone, Debug)]
pub struct NdjsonSink {
    path: PathBuf,
    explicit_nulls: bool,
    compression: TextCompression,
    stats: ConnectorStats,
}

impl NdjsonSink {
    /// A sink that writes to `options.path`, which begins at `base` if it is relative.
    ///
    /// # Errors
    /// [`ConnectError::File`] when the folder does not exist.
    pub fn new(options: NdjsonSinkOptions, base: &Path) -> Result<Self, ConnectError> {
        let path = base.join(options.path);
        require_folder(&path)?;
        Ok(Self {
            path,
            explicit_nulls: options.explicit_nulls,
            compression: options.compression,
            stats: ConnectorStats::default(),
        })
    }
}

impl SinkConnector for NdjsonSink {
    fn validate(&self, schema: &SchemaRef, _parallelism: u32) -> Result<(), ConnectError> {
        require_json(schema)
    }

    fn paths_written(&self, parallelism: Parallelism) -> Vec<PathBuf> {
        paths_of_subtasks(&self.path, parallelism)
    }

    fn describe(&self) -> String {
        format!("ndjson: {}", self.path.display())
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask, _schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>> {
        let path = path_of_subtask(&self.path, subtask);
        let (explicit_nulls, compression) = (self.explicit_nulls, self.compression);
        let target = path.display().to_string();
        let start = move || -> Result<Box<dyn BatchWriter>, ConnectError> {
            Ok(Box::new(NdjsonFile {
                output: TextOutput::create(&path, compression)?,
                lines: JsonLines::new(explicit_nulls),
            }))
        };
        Box::new(WriterSink::new(target, Box::new(start), self.stats.clone()))
    }
}

/// Turns batches into lines of JSON.
#[derive(Debug)]
pub(super) struct JsonLines {
    explicit_nulls: bool,
    text: Vec<u8>,
}

impl JsonLines {
    pub(super) const fn new(explicit_nulls: bool) -> Self {
        Self {
            explicit_nulls,
            text: Vec::new(),
        }
    }

    /// The rows of `batch`, one a line; a sentence where a value cannot be written.
    pub(super) fn encode(&mut self, batch: &RecordBatch) -> Result<&[u8], String> {
        self.text.clear();
        require_times(batch)?;
        let mut writer = WriterBuilder::new()
            .with_explicit_nulls(self.explicit_nulls)
            .build::<_, LineDelimited>(&mut self.text);
        writer.write(batch).map_err(|error| error.to_string())?;
        Ok(&self.text)
    }
}

/// Makes sure that batches of `schema` can be written as JSON, by writing a row of nulls.
pub(super) fn require_json(schema: &SchemaRef) -> Result<(), ConnectError> {
    let refused = |reason| Err(ConnectError::option("schema", reason));
    for field in schema.fields() {
        let nullable = Field::new(field.name(), field.data_type().clone(), true);
        let null: ArrayRef = new_null_array(field.data_type(), 1);
        let row = RecordBatch::try_new(Arc::new(Schema::new(vec![nullable])), vec![null]);
        let written = row
            .map_err(|error| error.to_string())
            .and_then(|row| JsonLines::new(true).encode(&row).map(|_| ()));
        if let Err(reason) = written {
            let name = field.name();
            return refused(format!(
                "the column `{name}` cannot be written as JSON: {reason}"
            ));
        }
    }
    Ok(())
}

struct NdjsonFile {
    output: TextOutput,
    lines: JsonLines,
}

impl BatchWriter for NdjsonFile {
    fn write(
        &mut self,
        batch: &RecordBatch,
        _is_gone: &dyn Fn() -> bool,
    ) -> Result<u64, ConnectError> {
        let text = self.lines.encode(batch);
        let text = text.map_err(|reason| ConnectError::file(self.output.path(), reason))?;
        self.output.write(text)?;
        Ok(self.output.take_bytes())
    }

    fn finish(self: Box<Self>) -> Result<u64, ConnectError> {
        self.output.commit()
    }
}
