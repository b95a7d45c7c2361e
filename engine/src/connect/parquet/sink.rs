//! Writes Parquet files.

use std::io;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::Deserialize;

use crate::connect::connector::SinkForm;
use crate::connect::files::output::{FileSink, OutputFormat};
use crate::connect::files::pending::PendingFile;
use crate::connect::side::writer::BatchWriter;
use crate::connect::{ConnectError, SinkConnector};

use super::types::require_fit;

/// Options of the connector `parquet`, a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParquetSinkOptions {
    /// The file to write. Its folder must exist; a file of that name is replaced when the
    /// stream has ended. With several subtasks each writes a file of its own,
    /// `name-<index>.ext`. Required.
    pub path: PathBuf,
    /// How pages are compressed: `"zstd"`, `"snappy"` or `"none"`. Default `"zstd"`.
    #[serde(default)]
    pub compression: ParquetCompression,
    /// Rows of a row group. Each subtask holds one row group in memory, encoded. Default
    /// 131072.
    #[serde(default = "row_group_rows")]
    pub row_group_rows: usize,
}

/// How the pages of a Parquet file are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParquetCompression {
    /// Zstandard at its default level.
    #[default]
    Zstd,
    /// Snappy: less effort, larger files.
    Snappy,
    /// Not at all.
    None,
}

/// A sink of Parquet files.
#[derive(Clone, Debug)]
pub struct ParquetSink(FileSink<ParquetOutput>);

impl ParquetSink {
    /// A sink that writes to `options.path`, which begins at `base` if it is relative.
    ///
    /// # Errors
    /// [`ConnectError::File`] when the folder does not exist, [`ConnectError::Option`] when an
    /// option is out of its range.
    pub fn new(options: ParquetSinkOptions, base: &Path) -> Result<Self, ConnectError> {
        if options.row_group_rows == 0 {
            return Err(ConnectError::option("row_group_rows", "must be at least 1"));
        }
        let compression = match options.compression {
            ParquetCompression::Zstd => Compression::ZSTD(ZstdLevel::default()),
            ParquetCompression::Snappy => Compression::SNAPPY,
            ParquetCompression::None => Compression::UNCOMPRESSED,
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_row_count(Some(options.row_group_rows))
            .build();
        FileSink::new(&options.path, base, ParquetOutput(properties)).map(Self)
    }
}

impl SinkForm for ParquetSink {
    fn form(&self) -> &dyn SinkConnector {
        &self.0
    }
}

/// How row groups are written.
#[derive(Clone, Debug)]
struct ParquetOutput(WriterProperties);

impl OutputFormat for ParquetOutput {
    const CONNECTOR: &'static str = "parquet";

    fn validate(&self, schema: &SchemaRef) -> Result<(), ConnectError> {
        require_fit(schema)?;
        ArrowWriter::try_new(io::sink(), schema.clone(), Some(self.0.clone()))
            .map(|_| ())
            .map_err(|error| {
                let reason = format!("cannot be written as Parquet: {error}");
                ConnectError::option("schema", reason)
            })
    }

    fn start(&self, path: &Path, schema: &SchemaRef) -> Result<Box<dyn BatchWriter>, ConnectError> {
        let file = PendingFile::create(path)?;
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(self.0.clone()))
            .map_err(|error| cannot(path, &error))?;
        Ok(Box::new(ParquetFile {
            path: path.to_owned(),
            writer,
            counted_bytes: 0,
        }))
    }
}

struct ParquetFile {
    path: PathBuf,
    writer: ArrowWriter<PendingFile>,
    counted_bytes: u64,
}

impl BatchWriter for ParquetFile {
    fn write(
        &mut self,
        batch: &RecordBatch,
        _is_gone: &dyn Fn() -> bool,
    ) -> Result<u64, ConnectError> {
        self.writer
            .write(batch)
            .map_err(|error| cannot(&self.path, &error))?;
        let written_bytes = self.writer.inner().written_bytes();
        let new_bytes = written_bytes - self.counted_bytes;
        self.counted_bytes = written_bytes;
        Ok(new_bytes)
    }

    fn finish(self: Box<Self>) -> Result<u64, ConnectError> {
        let file = self
            .writer
            .into_inner()
            .map_err(|error| cannot(&self.path, &error))?;
        let new_bytes = file.written_bytes() - self.counted_bytes;
        file.commit()?;
        Ok(new_bytes)
    }
}

fn cannot(path: &Path, error: &ParquetError) -> ConnectError {
    ConnectError::file(path, format_args!("cannot be written: {error}"))
}

const fn row_group_rows() -> usize {
    128 << 10
}
