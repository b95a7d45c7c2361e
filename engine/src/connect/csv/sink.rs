//! Writes CSV files.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::csv::WriterBuilder;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::connect::connector::SinkForm;
use crate::connect::files::output::{FileSink, OutputFormat};
use crate::connect::side::writer::BatchWriter;
use crate::connect::text::output::{TextOutput, require_writable};
use crate::connect::{ConnectError, SinkConnector, TextCompression, defaults};

use super::dialect::{self, marks};

/// Options of the connector `csv`, a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsvSinkOptions {
    /// The file to write. Its folder must exist; a file of that name is replaced when the
    /// stream has ended. With several subtasks each writes a file of its own,
    /// `name-<index>.ext`. Required.
    pub path: PathBuf,
    /// Whether the first row names the columns. Default true.
    #[serde(default = "defaults::yes")]
    pub header: bool,
    /// What is between two values: one ASCII character. Default `","`.
    #[serde(default = "dialect::comma")]
    pub delimiter: String,
    /// What is around a value that needs it: one ASCII character. Default `"\""`.
    #[serde(default = "dialect::double_quote")]
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
pub struct CsvSink(FileSink<CsvOutput>);

impl CsvSink {
    /// A sink that writes to `options.path`, which begins at `base` if it is relative.
    ///
    /// # Errors
    /// [`ConnectError::File`] when the folder does not exist, [`ConnectError::Option`] for a
    /// delimiter or quote that is none.
    pub fn new(options: CsvSinkOptions, base: &Path) -> Result<Self, ConnectError> {
        let (delimiter, quote) = marks(&options.delimiter, &options.quote)?;
        let output = CsvOutput {
            header: options.header,
            delimiter,
            quote,
            null_value: options.null_value,
            compression: options.compression,
        };
        FileSink::new(&options.path, base, output).map(Self)
    }
}

impl SinkForm for CsvSink {
    fn form(&self) -> &dyn SinkConnector {
        &self.0
    }
}

/// How values are written.
#[derive(Clone, Debug)]
struct CsvOutput {
    header: bool,
    delimiter: u8,
    quote: u8,
    null_value: String,
    compression: TextCompression,
}

impl OutputFormat for CsvOutput {
    const CONNECTOR: &'static str = "csv";

    fn validate(&self, schema: &SchemaRef) -> Result<(), ConnectError> {
        require_writable(schema, "CSV", |row| {
            self.encode(row, false, &mut Vec::new())
        })
    }

    fn start(&self, path: &Path, schema: &SchemaRef) -> Result<Box<dyn BatchWriter>, ConnectError> {
        let mut file = CsvFile {
            output: TextOutput::create(path, self.compression)?,
            form: self.clone(),
            text: Vec::new(),
        };
        // A stream without rows is a file with a header.
        if self.header {
            file.write_rows(&RecordBatch::new_empty(schema.clone()), true)?;
        }
        Ok(Box::new(file))
    }
}

impl CsvOutput {
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
    form: CsvOutput,
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
