//! The bodies of frames as record batches, which go on using their memory.

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;

use super::ipc::{Decoded, IpcDecoder, IpcError, IpcMessage, Prefix};

/// Bodies and metadata are read where they lie if they begin at a multiple of this.
const METADATA_ALIGNMENT: usize = 8;

/// Decodes the frames of one connection, in their order.
#[derive(Debug, Default)]
pub struct BatchDecoder {
    decoder: IpcDecoder,
    /// The bytes that said the schema of the last stream: the next most likely begins with the
    /// same.
    last: Option<Buffer>,
}

impl BatchDecoder {
    /// A decoder for a connection that has just begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), where nothing is compressed.
    pub(in crate::wire) fn of_uncompressed() -> Self {
        Self {
            decoder: IpcDecoder::of_uncompressed(),
            last: None,
        }
    }

    /// Decodes the body of a schema frame: the schema of the batches that follow.
    ///
    /// # Errors
    /// [`IpcError`]: the stream has ended.
    pub fn decode_schema(&mut self, body: Bytes) -> Result<SchemaRef, IpcError> {
        self.decoder = self.decoder.of_another();
        let mut messages = Messages::new(body);
        let Some(message) = messages.next(&mut self.decoder)? else {
            return Err(IpcError::Malformed(
                "a schema frame without a schema".into(),
            ));
        };
        match message {
            Decoded::Schema(schema) if messages.is_over() => Ok(schema),
            Decoded::Schema(_) => Err(IpcError::Malformed(
                "a schema frame with more than a schema".into(),
            )),
            Decoded::Dictionary | Decoded::Batch(_) => Err(IpcError::Malformed(
                "a schema frame with something else".into(),
            )),
        }
    }

    /// Decodes the body of a batch frame and appends its batches.
    ///
    /// # Errors
    /// [`IpcError`]: the stream has ended. What was appended is good.
    pub fn decode_messages(
        &mut self,
        body: Bytes,
        batches: &mut Vec<RecordBatch>,
    ) -> Result<(), IpcError> {
        let mut messages = Messages::new(body);
        let mut seen = 0;
        while let Some(decoded) = messages.next(&mut self.decoder)? {
            seen += take(decoded, batches)?;
        }
        match (seen, messages.is_over()) {
            (0, _) => Err(IpcError::Malformed("a frame without a batch".into())),
            (_, false) => Err(IpcError::Malformed("a frame with an end within".into())),
            (_, true) => Ok(()),
        }
    }

    /// Decodes the body of a frame of version 1, a whole stream, and appends its batches. The
    /// end marker may be missing, and what follows it means nothing.
    ///
    /// # Errors
    /// As [`decode_messages`](Self::decode_messages).
    pub fn decode_stream(
        &mut self,
        body: Bytes,
        batches: &mut Vec<RecordBatch>,
    ) -> Result<(), IpcError> {
        let mut messages = Messages::new(body);
        self.decoder = match &self.last {
            Some(said) if messages.skip(said) => self.decoder.with_schema_of(),
            _ => self.decoder.of_another(),
        };
        let mut seen = 0;
        loop {
            let start = messages.at;
            let Some(decoded) = messages.next(&mut self.decoder)? else {
                break;
            };
            if let Decoded::Schema(_) = decoded {
                self.last = Some(messages.since(start));
                continue;
            }
            seen += take(decoded, batches)?;
        }
        match seen {
            0 => Err(IpcError::Malformed("a stream without a batch".into())),
            _ => Ok(()),
        }
    }
}

fn take(decoded: Decoded, batches: &mut Vec<RecordBatch>) -> Result<usize, IpcError> {
    match decoded {
        Decoded::Batch(batch) => {
            batches.push(batch);
            Ok(1)
        }
        Decoded::Dictionary => Ok(0),
        Decoded::Schema(_) => Err(IpcError::Malformed("a schema among batches".into())),
    }
}

/// The messages in a body, one after the other.
struct Messages {
    body: Buffer,
    at: usize,
}

impl Messages {
    fn new(body: Bytes) -> Self {
        Self {
            body: Buffer::from(body),
            at: 0,
        }
    }

    /// The next message; none at the end, or at the mark of the end.
    fn next(&mut self, decoder: &mut IpcDecoder) -> Result<Option<Decoded>, IpcError> {
        if self.is_over() {
            return Ok(None);
        }
        if let Some((batch, end)) = decoder.read_plain(&self.body, self.at) {
            self.at = end;
            return Ok(Some(Decoded::Batch(batch)));
        }
        let rest = &self.body.as_slice()[self.at..];
        let (prefix, prefix_bytes) = Prefix::split(rest)?;
        let Prefix::Metadata { bytes } = prefix else {
            return Ok(None);
        };
        let Some((metadata, rest)) = rest[prefix_bytes..].split_at_checked(bytes) else {
            return Err(truncated("the metadata of a message"));
        };
        let copy;
        let metadata = match metadata.as_ptr().addr().is_multiple_of(METADATA_ALIGNMENT) {
            true => metadata,
            false => {
                copy = metadata.to_vec();
                &copy
            }
        };
        let message = IpcMessage::open(metadata)?;
        if rest.len() < message.body_bytes() {
            return Err(truncated("the body of a message"));
        }
        let start = self.at + prefix_bytes + bytes;
        let body = self.body.slice_with_length(start, message.body_bytes());
        self.at = start + message.body_bytes();
        decoder.decode(&message, body).map(Some)
    }

    /// Goes past `said`, if the next bytes are these.
    fn skip(&mut self, said: &Buffer) -> bool {
        let is_next = self.body.as_slice()[self.at..].starts_with(said);
        if is_next {
            self.at += said.len();
        }
        is_next
    }

    /// A copy of the bytes from `start` up to here.
    fn since(&self, start: usize) -> Buffer {
        Buffer::from(&self.body.as_slice()[start..self.at])
    }

    fn is_over(&self) -> bool {
        self.at == self.body.len()
    }
}

fn truncated(within: &'static str) -> IpcError {
    IpcError::Truncated { within }
}
