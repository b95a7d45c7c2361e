//! Writes Arrow IPC files and streams.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use serde::Deserialize;

use crate::connect::connector::SinkForm;
use crate::connect::files::output::{FileSink, OutputFormat};
use crate::connect::files::pending::PendingFile;
use crate::connect::side::writer::BatchWriter;
use crate::connect::{ConnectError, SinkConnector};
use crate::limits::BATCH_ROWS_MAX;
use crate::wire::compact::compacted;

use super::pieces::pieces;

/// Options of the connector `arrow`, a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrowSinkOptions {
    /// The file to write. Its folder must exist; a file of that name is replaced when the
    /// stream has ended. With several subtasks each writes a file of its own,
    /// `name-<index>.ext`. Required.
    pub path: PathBuf,
    /// Whether it is an IPC file, which can be entered anywhere, or an IPC stream. Default
    /// `"file"`.
    #[serde(default)]
    pub form: ArrowForm,
    /// How the buffers of a batch are compressed. Default `"none"`.
    #[serde(default)]
    pub compression: ArrowCompression,
}

/// The two forms of Arrow IPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrowForm {
    /// With a table of contents at its end.
    #[default]
    File,
    /// To be read from its start to its end.
    Stream,
}

/// How the buffers of an Arrow batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrowCompression {
    /// Not at all.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// zstd.
    Zstd,
}

/// A sink of Arrow IPC files or streams.
#[derive(Clone, Debug)]
pub struct ArrowSink(FileSink<ArrowOutput>);

impl ArrowSink {
    /// A sink that writes to `options.path`, which begins at `base` if it is relative.
    ///
    /// # Errors
    /// [`ConnectError::File`] when the folder does not exist.
    pub fn new(options: ArrowSinkOptions, base: &Path) -> Result<Self, ConnectError> {
        let output = ArrowOutput {
            form: options.form,
            compression: options.compression,
        };
        FileSink::new(&options.path, base, output).map(Self)
    }
}

impl SinkForm for ArrowSink {
    fn form(&self) -> &dyn SinkConnector {
        &self.0
    }
}

/// How batches are written.
#[derive(Clone, Copy, Debug)]
struct ArrowOutput {
    form: ArrowForm,
    compression: ArrowCompression,
}

impl OutputFormat for ArrowOutput {
    const CONNECTOR: &'static str = "arrow";

    fn start(&self, path: &Path, schema: &SchemaRef) -> Result<Box<dyn BatchWriter>, ConnectError> {
        let file = PendingFile::create(path)?;
        let encoder = Encoder::new(file, schema, self.form, self.compression);
        Ok(Box::new(ArrowFile {
            encoder: encoder.map_err(|error| ConnectError::file(path, error))?,
            path: path.to_owned(),
            counted_bytes: 0,
        }))
    }
}

impl ArrowCompression {
    /// How batches that are so compressed are written.
    pub(crate) fn write_options(self) -> Result<IpcWriteOptions, ArrowError> {
        IpcWriteOptions::default().try_with_compression(match self {
            Self::None => None,
            Self::Lz4 => Some(CompressionType::LZ4_FRAME),
            Self::Zstd => Some(CompressionType::ZSTD),
        })
    }
}

enum Encoder {
    File(FileWriter<PendingFile>),
    Stream(StreamWriter<PendingFile>),
}

impl Encoder {
    fn new(
        file: PendingFile,
        schema: &SchemaRef,
        form: ArrowForm,
        compression: ArrowCompression,
    ) -> Result<Self, ArrowError> {
        let options = compression.write_options()?;
        match form {
            ArrowForm::File => {
                FileWriter::try_new_with_options(file, schema, options).map(Self::File)
            }
            ArrowForm::Stream => {
                StreamWriter::try_new_with_options(file, schema, options).map(Self::Stream)
            }
        }
    }

    /// Writes `batch`, in pieces where it is too large to be read again.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        pieces(batch, BATCH_ROWS_MAX).try_for_each(|piece| self.write_piece(&piece))
    }

    fn write_piece(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let compact = compacted(batch)?;
        let batch = compact.as_ref().unwrap_or(batch);
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
        }
    }

    fn written_bytes(&self) -> u64 {
        match self {
            Self::File(writer) => writer.get_ref().written_bytes(),
            Self::Stream(writer) => writer.get_ref().written_bytes(),
        }
    }

    /// Writes the end.
    fn into_file(self) -> Result<PendingFile, ArrowError> {
        match self {
            Self::File(writer) => writer.into_inner(),
            Self::Stream(writer) => writer.into_inner(),
        }
    }
}

struct ArrowFile {
    encoder: Encoder,
    path: PathBuf,
    /// Bytes of the file that have been counted.
    counted_bytes: u64,
}

impl BatchWriter for ArrowFile {
    fn write(
        &mut self,
        batch: &RecordBatch,
        _is_gone: &dyn Fn() -> bool,
    ) -> Result<u64, ConnectError> {
        let written = self.encoder.write(batch);
        written.map_err(|error| cannot(&self.path, &error))?;
        let bytes = self.encoder.written_bytes();
        Ok(bytes - std::mem::replace(&mut self.counted_bytes, bytes))
    }

    fn finish(self: Box<Self>) -> Result<u64, ConnectError> {
        let file = self.encoder.into_file();
        let file = file.map_err(|error| cannot(&self.path, &error))?;
        let bytes = file.written_bytes() - self.counted_bytes;
        file.commit()?;
        Ok(bytes)
    }
}

fn cannot(path: &Path, error: &ArrowError) -> ConnectError {
    let reason = error.to_string();
    if reason.contains("Dictionary replacement") {
        let reason = "cannot be written: a column has other dictionaries in later batches, and an \
                      IPC file takes one for each column: write a stream (`form = \"stream\"`), or \
                      cast the column to its values";
        return ConnectError::file(path, reason);
    }
    ConnectError::file(path, format_args!("cannot be written: {reason}"))
}
