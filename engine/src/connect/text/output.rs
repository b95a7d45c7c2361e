//! Writes text to a file, compressed or not.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{Field, Schema, SchemaRef};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::connect::files::pending::PendingFile;
use crate::connect::{ConnectError, TextCompression};
use crate::limits::IPC_BODY_BYTES_MAX;

use super::types::{first_of_each_type, fixed_bytes};

/// Bytes that every value of a column may take, whatever is in it.
const VALUE_BYTES_MAX: usize = IPC_BODY_BYTES_MAX;

/// A text file that gets its name when it is complete.
pub(crate) struct TextOutput {
    path: PathBuf,
    encoder: Encoder,
    /// Bytes of the file that have been counted.
    counted_bytes: u64,
}

enum Encoder {
    Plain(PendingFile),
    Gzip(GzEncoder<PendingFile>),
    Zstd(zstd::Encoder<'static, PendingFile>),
}

impl TextOutput {
    /// Starts to write what is to be `path`.
    pub(crate) fn create(path: &Path, compression: TextCompression) -> Result<Self, ConnectError> {
        let file = PendingFile::create(path)?;
        let encoder = match compression.of(path) {
            TextCompression::Auto | TextCompression::None => Encoder::Plain(file),
            TextCompression::Gzip => Encoder::Gzip(GzEncoder::new(file, Compression::default())),
            TextCompression::Zstd => {
                let encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL);
                Encoder::Zstd(encoder.map_err(|error| cannot_write(path, &error))?)
            }
        };
        Ok(Self {
            path: path.to_owned(),
            encoder,
            counted_bytes: 0,
        })
    }

    /// The file that it is to be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text`.
    pub(crate) fn write(&mut self, text: &[u8]) -> Result<(), ConnectError> {
        let written = match &mut self.encoder {
            Encoder::Plain(file) => file.write_all(text),
            Encoder::Gzip(encoder) => encoder.write_all(text),
            Encoder::Zstd(encoder) => encoder.write_all(text),
        };
        written.map_err(|error| cannot_write(&self.path, &error))
    }

    /// Bytes that went to the file since the last call.
    pub(crate) fn take_bytes(&mut self) -> u64 {
        let bytes = match &self.encoder {
            Encoder::Plain(file) => file.written_bytes(),
            Encoder::Gzip(encoder) => encoder.get_ref().written_bytes(),
            Encoder::Zstd(encoder) => encoder.get_ref().written_bytes(),
        };
        bytes - std::mem::replace(&mut self.counted_bytes, bytes)
    }

    /// Ends the text, makes the file durable and gives it its name. Returns how many bytes
    /// went to the file since they were last taken.
    pub(crate) fn commit(self) -> Result<u64, ConnectError> {
        let file = match self.encoder {
            Encoder::Plain(file) => Ok(file),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        };
        let file = file.map_err(|error| cannot_write(&self.path, &error))?;
        let bytes = file.written_bytes() - self.counted_bytes;
        file.commit()?;
        Ok(bytes)
    }
}

/// Makes sure that batches of `schema` can be written as `form`, by writing a row of nulls of each
/// column with `write`.
pub(crate) fn require_writable(
    schema: &SchemaRef,
    form: &str,
    write: impl Fn(&RecordBatch) -> Result<(), String>,
) -> Result<(), ConnectError> {
    for field in first_of_each_type(schema) {
        let (name, data_type) = (field.name(), field.data_type());
        if fixed_bytes(data_type) > VALUE_BYTES_MAX {
            let reason = format!(
                "the column `{name}` cannot be written as {form}: every value takes more than \
                 {VALUE_BYTES_MAX} bytes"
            );
            return Err(ConnectError::option("schema", reason));
        }
        let nullable = Schema::new(vec![Field::new(name, data_type.clone(), true)]);
        let null = new_null_array(data_type, 1);
        let row = RecordBatch::try_new(Arc::new(nullable), vec![null]);
        let written = row
            .map_err(|error| error.to_string())
            .and_then(|row| write(&row));
        if let Err(reason) = written {
            let reason = format!("the column `{name}` cannot be written as {form}: {reason}");
            return Err(ConnectError::option("schema", reason));
        }
    }
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> ConnectError {
    ConnectError::file(path, format_args!("cannot be written: {error}"))
}
