//! Reads an Arrow IPC stream from bytes that come one after the other.

use std::io::Read;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;

use super::message::{CONTINUATION, LENGTH_BYTES};
use super::{Decoded, IpcDecoder, IpcError, IpcMessage, Prefix};

/// Bytes that are allocated before any have been read; more only as they come.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// Reads the batches of an Arrow IPC stream. The input is to be buffered.
#[derive(Debug)]
pub struct IpcStreamReader<R> {
    input: R,
    decoder: IpcDecoder,
    schema: SchemaRef,
    is_over: bool,
}

impl<R: Read> IpcStreamReader<R> {
    /// Reads up to and with the schema.
    ///
    /// # Errors
    /// [`IpcError`] when the input does not begin with a schema that can be read.
    pub fn new(mut input: R) -> Result<Self, IpcError> {
        let mut decoder = IpcDecoder::new();
        match read_message(&mut input, &mut decoder)? {
            Some(Decoded::Schema(schema)) => Ok(Self {
                input,
                decoder,
                schema,
                is_over: false,
            }),
            _ => Err(IpcError::malformed("a stream that has no schema")),
        }
    }

    /// The schema of all batches.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch; none at the end, which is a marker, or the end of the input between two
    /// messages. After the marker nothing may follow.
    ///
    /// # Errors
    /// [`IpcError`] when what follows cannot be read; the batches before are good.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, IpcError> {
        while !self.is_over {
            match read_message(&mut self.input, &mut self.decoder) {
                Ok(Some(Decoded::Batch(batch))) => return Ok(Some(batch)),
                Ok(Some(Decoded::Dictionary | Decoded::Schema(_))) => {}
                Ok(None) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }
}

/// Reads and decodes one message; none at the end.
fn read_message(
    input: &mut impl Read,
    decoder: &mut IpcDecoder,
) -> Result<Option<Decoded>, IpcError> {
    let mut prefix = read_up_to(input, LENGTH_BYTES)?;
    if prefix.is_empty() {
        return Ok(None);
    }
    if prefix == CONTINUATION {
        prefix.extend(read_up_to(input, LENGTH_BYTES)?);
    }
    let (prefix, _) = Prefix::split(&prefix)?;
    let Prefix::Metadata { bytes } = prefix else {
        return match read_up_to(input, 1)?.is_empty() {
            true => Ok(None),
            false => Err(IpcError::malformed("bytes after the end of the stream")),
        };
    };
    let metadata = read_exactly(input, bytes, "the metadata of a message")?;
    let message = IpcMessage::open(&metadata)?;
    let body = read_exactly(input, message.body_bytes(), "the body of a message")?;
    decoder.decode(&message, Buffer::from_vec(body)).map(Some)
}

fn read_exactly(
    input: &mut impl Read,
    bytes: usize,
    within: &'static str,
) -> Result<Vec<u8>, IpcError> {
    let read = read_up_to(input, bytes)?;
    if read.len() == bytes {
        Ok(read)
    } else {
        Err(IpcError::Truncated { within })
    }
}

/// As many of the next `bytes` as there are.
fn read_up_to(input: &mut impl Read, bytes: usize) -> Result<Vec<u8>, IpcError> {
    let mut read = Vec::with_capacity(bytes.min(AHEAD_BYTES_MAX));
    input
        .take(bytes as u64)
        .read_to_end(&mut read)
        .map_err(|error| IpcError::Input(error.to_string()))?;
    Ok(read)
}
