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

use crate::operator::{Sink, Subtask};
use crate::partition::Parallelism;

use super::connector::paths_of_subtasks;
use super::parquet_types::require_fit;
use super::pending_file::{PendingFile, require_folder};
use super::writer::{AHEAD_BYTES_MAX, BatchWriter, WriterSink};
use super::{ConnectError, ConnectorStats, SinkConnector, path_of_subtask};

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
pub struct ParquetSink {
    path: PathBuf,
    properties: WriterProperties,
    stats: ConnectorStats,
}

impl ParquetSink {
    /// A sink that writes to `options.path`, which begins at `base` if it is relative.
    ///
    /// # Errors
    /// [`ConnectError::File`] when the folder does not exist, [`ConnectError::Option`] when an
    /// option is out of its range.
    pub fn new(options: ParquetSinkOptions, base: &Path) -> Result<Self, ConnectError> {
        let path = base.join(options.path);
        require_folder(&path)?;
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
        Ok(Self {
            path,
            properties,
            stats: ConnectorStats::default(),
        })
    }
}

impl SinkConnector for ParquetSink {
    fn validate(&self, schema: &SchemaRef, _parallelism: u32) -> Result<(), ConnectError> {
        require_fit(&self.path, schema)?;
        let properties = Some(self.properties.clone());
        ArrowWriter::try_new(io::sink(), schema.clone(), properties)
            .map(|_| ())
            .map_err(|error| cannot(&self.path, &error))
    }

    fn paths_written(&self, parallelism: Parallelism) -> Vec<PathBuf> {
        paths_of_subtasks(&self.path, parallelism)
    }

    fn describe(&self) -> String {
        format!("parquet: {}", self.path.display())
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask, schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>> {
        let path = path_of_subtask(&self.path, subtask);
        let target = path.display().to_string();
        let (schema, properties) = (schema.clone(), self.properties.clone());
        let start = move || -> Result<Box<dyn BatchWriter>, ConnectError> {
            let file = PendingFile::create(&path)?;
            let writer = ArrowWriter::try_new(file, schema, Some(properties))
                .map_err(|error| cannot(&path, &error))?;
            Ok(Box::new(ParquetFile {
                path,
                writer,
                counted_bytes: 0,
            }))
        };
        Box::new(WriterSink::new(target, Box::new(start), self.stats.clone()))
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
