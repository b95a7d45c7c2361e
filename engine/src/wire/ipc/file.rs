//! Reads an Arrow IPC file: a stream between two marks, with a table of contents at the end.

use std::io::{Read, Seek, SeekFrom};

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::ipc::{Block, root_as_footer};

use crate::limits::IPC_METADATA_BYTES_MAX;

use super::error::bounded;
use super::{Decoded, IpcDecoder, IpcError, IpcMessage, PREFIX_BYTES, Prefix};

/// A file begins and ends with it.
const MAGIC: &[u8] = b"ARROW1";

/// At the end of a file: the length of the footer, and the mark.
const TRAILER_BYTES: usize = 4 + MAGIC.len();

/// Reads the batches of an Arrow IPC file, in the order of its footer.
#[derive(Debug)]
pub struct IpcFileReader<R> {
    input: R,
    input_bytes: u64,
    decoder: IpcDecoder,
    schema: SchemaRef,
    blocks: std::vec::IntoIter<Block>,
}

impl<R: Read + Seek> IpcFileReader<R> {
    /// Whether what begins with `start` is a file, and no stream.
    pub fn is_file(start: &[u8]) -> bool {
        start.starts_with(MAGIC)
    }

    /// Reads the footer, the schema and the dictionaries.
    ///
    /// # Errors
    /// [`IpcError`] when the footer or a dictionary cannot be read.
    pub fn new(mut input: R) -> Result<Self, IpcError> {
        let input_bytes = input.seek(SeekFrom::End(0)).map_err(unreadable)?;
        let footer = read_footer(&mut input, input_bytes)?;
        let footer = root_as_footer(&footer).map_err(IpcError::malformed)?;
        let Some(schema) = footer.schema() else {
            return Err(IpcError::malformed("a footer without a schema"));
        };
        let mut decoder = IpcDecoder::new();
        let schema = decoder.set_schema(schema)?;
        let mut reader = Self {
            input,
            input_bytes,
            decoder,
            schema,
            blocks: Vec::new().into_iter(),
        };
        for block in footer.dictionaries().into_iter().flatten() {
            if !matches!(reader.read_block(block)?, Decoded::Dictionary) {
                return Err(IpcError::malformed("a dictionary that is none"));
            }
        }
        let blocks: Vec<Block> = footer
            .recordBatches()
            .into_iter()
            .flatten()
            .copied()
            .collect();
        reader.blocks = blocks.into_iter();
        Ok(reader)
    }

    /// The schema of all batches.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many bytes of the file each batch takes that is left.
    pub fn batch_bytes(&self) -> Vec<u64> {
        let bytes = |block: &Block| {
            let metadata = u64::try_from(block.metaDataLength()).unwrap_or(0);
            metadata.saturating_add(u64::try_from(block.bodyLength()).unwrap_or(0))
        };
        self.blocks.as_slice().iter().map(bytes).collect()
    }

    /// Leaves out the next `batches` batches, without reading them.
    pub fn skip_batches(&mut self, batches: usize) {
        self.blocks.by_ref().take(batches).for_each(drop);
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// [`IpcError`] when it cannot be read; the batches before are good.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, IpcError> {
        let Some(block) = self.blocks.next() else {
            return Ok(None);
        };
        match self.read_block(&block) {
            Ok(Decoded::Batch(batch)) => Ok(Some(batch)),
            Ok(_) => {
                self.blocks = Vec::new().into_iter();
                Err(IpcError::malformed("a batch that is none"))
            }
            Err(error) => {
                self.blocks = Vec::new().into_iter();
                Err(error)
            }
        }
    }

    fn read_block(&mut self, block: &Block) -> Result<Decoded, IpcError> {
        let start = u64::try_from(block.offset());
        let start = start.map_err(|_| IpcError::malformed("a batch before the file"))?;
        let prefix = self.read_at(start, PREFIX_BYTES)?;
        let (prefix, prefix_bytes) = Prefix::split(&prefix)?;
        let Prefix::Metadata { bytes } = prefix else {
            return Err(IpcError::malformed("an end where the footer has a batch"));
        };
        let metadata = self.read_at(start.saturating_add(prefix_bytes as u64), bytes)?;
        let message = IpcMessage::open(&metadata)?;
        let body_start = start.saturating_add((prefix_bytes + bytes) as u64);
        let body = self.read_at(body_start, message.body_bytes())?;
        self.decoder.decode(&message, Buffer::from_vec(body))
    }

    /// `bytes` bytes at `start`. Nothing is allocated for what the file doesn't have.
    fn read_at(&mut self, start: u64, bytes: usize) -> Result<Vec<u8>, IpcError> {
        if start.saturating_add(bytes as u64) > self.input_bytes {
            let within = "a message that its footer points to";
            return Err(IpcError::Truncated { within });
        }
        read_at(&mut self.input, start, bytes)
    }
}

fn read_footer(input: &mut (impl Read + Seek), input_bytes: u64) -> Result<Vec<u8>, IpcError> {
    let truncated = || IpcError::Truncated {
        within: "the footer of a file",
    };
    let trailer_start = input_bytes.checked_sub(TRAILER_BYTES as u64);
    let trailer_start = trailer_start.ok_or_else(truncated)?;
    let trailer = read_at(input, trailer_start, TRAILER_BYTES)?;
    let Some((length, magic)) = trailer.split_first_chunk::<4>() else {
        return Err(truncated());
    };
    if magic != MAGIC {
        return Err(truncated());
    }
    let length = i64::from(i32::from_le_bytes(*length));
    let bytes = bounded(
        "bytes of the footer of a file",
        length,
        IPC_METADATA_BYTES_MAX,
    )?;
    let start = trailer_start.checked_sub(bytes as u64);
    read_at(input, start.ok_or_else(truncated)?, bytes)
}

fn read_at(input: &mut (impl Read + Seek), start: u64, bytes: usize) -> Result<Vec<u8>, IpcError> {
    let mut read = vec![0; bytes];
    input.seek(SeekFrom::Start(start)).map_err(unreadable)?;
    input.read_exact(&mut read).map_err(unreadable)?;
    Ok(read)
}

#[allow(clippy::needless_pass_by_value)]
fn unreadable(error: std::io::Error) -> IpcError {
    IpcError::Input(error.to_string())
}
