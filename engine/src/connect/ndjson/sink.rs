//! Writes newline-delimited JSON, to a file or to standard output.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use serde::Deserialize;

use crate::connect::connector::SinkForm;
use crate::connect::files::output::{FileSink, OutputFormat};
use crate::connect::side::writer::BatchWriter;
use crate::connect::text::output::{TextOutput, require_writable};
use crate::connect::{ConnectError, SinkConnector, TextCompression};

use super::times::require_times;

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
pub struct NdjsonSink(FileSink<NdjsonOutput>);

impl NdjsonSink {
    /// A sink that writes to `options.path`, which begins at `base` if it is relative.
    ///
    /// # Errors
    /// [`ConnectError::File`] when the folder does not exist.
    pub fn new(options: NdjsonSinkOptions, base: &Path) -> Result<Self, ConnectError> {
        let output = NdjsonOutput {
            explicit_nulls: options.explicit_nulls,
            compression: options.compression,
        };
        FileSink::new(&options.path, base, output).map(Self)
    }
}

impl SinkForm for NdjsonSink {
    fn form(&self) -> &dyn SinkConnector {
        &self.0
    }
}

/// How objects are written.
#[derive(Clone, Copy, Debug)]
struct NdjsonOutput {
    explicit_nulls: bool,
    compression: TextCompression,
}

impl OutputFormat for NdjsonOutput {
    const CONNECTOR: &'static str = "ndjson";

    fn validate(&self, schema: &SchemaRef) -> Result<(), ConnectError> {
        require_json(schema)
    }

    fn start(
        &self,
        path: &Path,
        _schema: &SchemaRef,
    ) -> Result<Box<dyn BatchWriter>, ConnectError> {
        Ok(Box::new(NdjsonFile {
            output: TextOutput::create(path, self.compression)?,
            lines: JsonLines::new(self.explicit_nulls),
        }))
    }
}

/// Turns batches into lines of JSON.
#[derive(Debug)]
pub(crate) struct JsonLines {
    explicit_nulls: bool,
    text: Vec<u8>,
}

impl JsonLines {
    pub(crate) const fn new(explicit_nulls: bool) -> Self {
        Self {
            explicit_nulls,
            text: Vec::new(),
        }
    }

    /// The rows of `batch`, one a line; a sentence where a value cannot be written.
    pub(crate) fn encode(&mut self, batch: &RecordBatch) -> Result<&[u8], String> {
        self.text.clear();
        require_times(batch)?;
        let mut writer = WriterBuilder::new()
            .with_explicit_nulls(self.explicit_nulls)
            .build::<_, LineDelimited>(&mut self.text);
        writer.write(batch).map_err(|error| error.to_string())?;
        Ok(&self.text)
    }
}

/// Makes sure that batches of `schema` can be written as JSON.
pub(crate) fn require_json(schema: &SchemaRef) -> Result<(), ConnectError> {
    require_writable(schema, "JSON", |row| {
        JsonLines::new(true).encode(row).map(|_| ())
    })
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
