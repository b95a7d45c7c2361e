//! Writes CSV files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::csv::WriterBuilder;
use arrow::datatypes::{Field, Schema, SchemaRef};
use serde::Deserialize;

use crate::operator::{Sink, Subtask};
use crate::partition::Parallelism;

use super::connector::paths_of_subtasks;
use super::csv_dialect::mark;
use super::pending_file::require_folder;
use super::text_output::TextOutput;
use super::writer::{AHEAD_BYTES_MAX, BatchWriter, WriterSink};
use super::{ConnectError, ConnectorStats, SinkConnector, TextCompression, path_of_subtask};

/// Options of the connector `csv`, a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsvSinkOptions {
    /// The file to write. Its folder must exist; a file of that name is replaced when the
    /// stream has ended. With several subtasks each writes a file of its own,
    /// `name-<index>.ext`. Required.
    pub path: PathBuf,
    /// Whether the first row names the columns. Default true.
    #[serde(default = "yes")]
    pub header: bool,
    /// What is between two values: one ASCII character. Default `","`.
    #[serde(default = "comma")]
    pub delimiter: String,
    /// What is around a value that needs it: one ASCII character. Default `"\""`.
    #[serde(default = "double_quote")]
    pub quote: String,
    /// What is written for null. Default: nothing.
    #[serde(default)]
    pub null_value: String,
    /// How the file is compressed. Default `"auto"`: as its name says.
    #[serde(default)]
    pub compression: TextCompression,
}

/// A sink of CSV files.
///
/// The event time is written as the number it is, timestamps as text (RFC 3339).
#[derive(Clone, Debug)]
pub struct CsvSink {
    path: PathBuf,
    form: CsvForm,
    compression: TextCompression,
    stats: ConnectorStats,
}

impl CsvSink {
    /// A sink that writes to `options.path`, which begins at `base` if it is relative.
    ///
    /// # Errors
    /// [`ConnectError::File`] when the folder does not exist, [`ConnectError::Option`] for a
    /// delimiter or quote that is none.
    pub fn new(options: CsvSinkOptions, base: &Path) -> Result<Self, ConnectError> {
        let path = base.join(options.path);
        require_folder(&path)?;
        let form = CsvForm {
            header: options.header,
            delimiter: mark("delimiter", &options.delimiter)?,
            quote: mark("quote", &options.quote)?,
            null_value: options.null_value,
        };
        if form.delimiter == form.quote {
            return Err(ConnectError::option("quote", "is the delimiter too"));
        }
        Ok(Self {
            path,
            form,
            compression: options.compression,
            stats: ConnectorStats::default(),
        })
    }
}

impl SinkConnector for CsvSink {
    /// Writes a row of nulls of each column, to find out whether its type can be written.
    fn validate(&self, schema: &SchemaRef, _parallelism: u32) -> Result<(), ConnectError> {
        for field in schema.fields() {
            let (name, data_type) = (field.name(), field.data_type());
            let nullable = Schema::new(vec![Field::new(name, data_type.clone(), true)]);
            let null = new_null_array(data_type, 1);
            let row = RecordBatch::try_new(Arc::new(nullable), vec![null]);
            let written = row
                .map_err(|error| error.to_string())
                .and_then(|row| self.form.encode(&row, false, &mut Vec::new()));
            if let Err(reason) = written {
                let reason = format!("the column `{name}` cannot be written as CSV: {reason}");
                return Err(ConnectError::option("schema", reason));
            }
        }
        Ok(())
    }

    fn paths_written(&self, parallelism: Parallelism) -> Vec<PathBuf> {
        paths_of_subtasks(&self.path, parallelism)
    }

    fn describe(&self) -> String {
        format!("csv: {}", self.path.display())
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask, schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>> {
        let path = path_of_subtask(&self.path, subtask);
        let (form, compression, schema) = (self.form.clone(), self.compression, schema.clone());
        let target = path.display().to_string();
        let start = move || -> Result<Box<dyn BatchWriter>, ConnectError> {
            let output = TextOutput::create(&path, compression)?;
            let mut file = CsvFile {
                output,
                form,
                text: Vec::new(),
            };
            // A stream without rows is a file with a header.
            if file.form.header {
                file.write_rows(&RecordBatch::new_empty(schema), true)?;
            }
            Ok(Box::new(file))
        };
        Box::new(WriterSink::new(target, Box::new(start), self.stats.clone()))
    }
}

/// How values are written.
#[derive(Clone, Debug)]
struct CsvForm {
    header: bool,
    delimiter: u8,
    quote: u8,
    null_value: String,
}

impl CsvForm {
    fn encode(&self, batch: &RecordBatch, header: bool, text: &mut Vec<u8>) -> Result<(), String> {
        text.clear();
        let mut writer = WriterBuilder::new()
            .with_header(header)
            .with_delimiter(self.delimiter)
            .with_quote(self.quote)
            .with_null(self.null_value.clone())
            .build(text);
        writer.write(batch).map_err(|error| error.to_string())
    }
}

struct CsvFile {
    output: TextOutput,
    form: CsvForm,
    text: Vec<u8>,
}

impl CsvFile {
    fn write_rows(&mut self, batch: &RecordBatch, header: bool) -> Result<(), ConnectError> {
        let encoded = self.form.encode(batch, header, &mut self.text);
        encoded.map_err(|reason| ConnectError::file(self.output.path(), reason))?;
        self.output.write(&self.text)
    }
}

impl BatchWriter for CsvFile {
    fn write(
        &mut self,
        batch: &RecordBatch,
        _is_gone: &dyn Fn() -> bool,
    ) -> Result<u64, ConnectError> {
        self.write_rows(batch, false)?;
        Ok(self.output.take_bytes())
    }

    fn finish(self: Box<Self>) -> Result<u64, ConnectError> {
        self.output.commit()
    }
}

const fn yes() -> bool {
    true
}

fn comma() -> String {
    ",".to_owned()
}

fn double_quote() -> String {
    "\"".to_owned()
}
