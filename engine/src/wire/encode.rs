//! Record batches as the bodies of frames, without copying their values.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow::ipc::{CompressionType, MetadataVersion};
use bytes::Bytes;

use super::compact::compacted;
use super::ipc::Prefix;
use super::plain::PlainWriter;
use super::region::RegionOut;

/// Buffers shorter than this are copied beside the header of their frame: a segment of a send
/// of its own costs about as much as copying so many bytes, and a send takes 64 of them.
const SHARED_BYTES_MIN: usize = 4096;

/// Ends an Arrow IPC stream.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// How a batch is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each batch is a whole Arrow IPC stream (version 1 of the wire).
    Stream,
    /// The schema goes ahead, once; a batch is its messages. Everything is padded to 64 bytes
    /// if `aligned`, else to 8.
    Messages {
        /// Whether the receiver asked for it.
        aligned: bool,
    },
}

/// How the buffers of batches are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all. The default: it pays only where the network is slower than compressing.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// ZSTD.
    Zstd,
}

/// Why a batch has no form on the wire. It can't be sent; nothing else is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the batch cannot be encoded as Arrow IPC: {0}")]
pub struct EncodeError(String);

/// The body of a frame, as the buffers to be gathered in this order.
#[derive(Clone, Debug, Default)]
pub struct Encoded {
    /// What stands before the first buffer.
    head: Vec<u8>,
    parts: Vec<Part>,
    /// What stands behind the last one.
    tail: &'static [u8],
    bytes: usize,
}

/// A buffer, and how many zeroes follow it.
#[derive(Clone, Debug)]
struct Part {
    buffer: Buffer,
    padding: usize,
}

/// A batch, and its schema where that has to go ahead.
#[derive(Clone, Debug)]
pub struct EncodedBatch {
    /// The body of a schema frame that goes before.
    pub schema: Option<Encoded>,
    /// The body of the batch.
    pub body: Encoded,
}

/// Encodes the batches of one connection, in their order.
pub struct BatchEncoder {
    form: Form,
    options: IpcWriteOptions,
    alignment: usize,
    is_compressing: bool,
    stream: Option<Stream>,
}

/// What goes on from one batch to the next of the same schema.
struct Stream {
    schema: SchemaRef,
    /// The last one that was found equal to it.
    equal: SchemaRef,
    encoder: StreamEncoder,
    /// Encodes its batches, if their columns are plain.
    plain: Option<PlainWriter>,
    /// The message with the schema, once it was encoded.
    schema_message: Option<Vec<u8>>,
    has_dictionaries: bool,
}

impl Encoded {
    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts it behind what is in `out`, or behind `segments`, and returns how many bytes were
    /// copied. Short buffers are copied to `out`; what stands there is moved to `segments`
    /// before a long one, which is shared.
    pub fn gather(self, out: &mut Vec<u8>, segments: &mut VecDeque<Bytes>) -> usize {
        let mut copied = self.head.len();
        out.extend_from_slice(&self.head);
        for Part { buffer, padding } in self.parts {
            if buffer.len() < SHARED_BYTES_MIN {
                copied += buffer.len();
                out.extend_from_slice(&buffer);
            } else {
                end_segment(out, segments);
                segments.push_back(Bytes::from_owner(Owned(buffer)));
            }
            out.resize(out.len() + padding, 0);
        }
        out.extend_from_slice(self.tail);
        copied + self.tail.len()
    }

    /// All of it in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes);
        all.extend_from_slice(&self.head);
        for Part { buffer, padding } in &self.parts {
            all.extend_from_slice(buffer);
            all.resize(all.len() + padding, 0);
        }
        all.extend_from_slice(self.tail);
        all
    }

    pub(super) fn with_capacity(parts: usize) -> Self {
        Self {
            head: Vec::new(),
            parts: Vec::with_capacity(parts),
            tail: &[],
            bytes: 0,
        }
    }

    /// What stands before the first buffer.
    pub(super) fn set_head(&mut self, head: Vec<u8>) {
        self.bytes = self.bytes - self.head.len() + head.len();
        self.head = head;
    }

    /// Appends a buffer, and so many zeroes.
    pub(super) fn push(&mut self, buffer: Buffer, padding: usize) {
        self.bytes += buffer.len() + padding;
        self.parts.push(Part { buffer, padding });
    }

    /// Copies all of it to a region.
    pub fn append_to(&self, out: &mut impl RegionOut) {
        out.put(&self.head);
        for Part { buffer, padding } in &self.parts {
            out.put(buffer);
            out.pad(*padding);
        }
        out.put(self.tail);
    }

    fn of(buffers: Vec<Buffer>) -> Self {
        let mut encoded = Self::with_capacity(buffers.len());
        for buffer in buffers {
            encoded.push(buffer, 0);
        }
        encoded
    }

    /// A stream of it, behind the message with its schema.
    fn within(mut self, schema: &[u8]) -> Self {
        let mut head = Vec::with_capacity(schema.len() + self.head.len());
        head.extend_from_slice(schema);
        head.append(&mut self.head);
        self.set_head(head);
        self.ended()
    }

    /// With the mark of a stream's end.
    fn ended(mut self) -> Self {
        self.tail = &END_OF_STREAM;
        self.bytes += END_OF_STREAM.len();
        self
    }

    /// Takes the first `bytes` off, which end where a buffer does.
    fn split_off_front(&mut self, bytes: usize) -> Self {
        debug_assert!(self.head.is_empty(), "it is as the library gave it");
        debug_assert!(self.tail.is_empty(), "no stream of its own");
        let mut front = 0;
        let mut count = 0;
        while front < bytes && count < self.parts.len() {
            front += self.parts[count].buffer.len();
            count += 1;
        }
        debug_assert_eq!(front, bytes, "a message ends where a buffer does");
        let rest = self.parts.split_off(count);
        let parts = std::mem::replace(&mut self.parts, rest);
        self.bytes -= front;
        Self {
            head: Vec::new(),
            parts,
            tail: &[],
            bytes: front,
        }
    }

    /// The length of the message that it begins with.
    fn first_message_bytes(&self) -> Option<usize> {
        match Prefix::split(&self.parts.first()?.buffer) {
            Ok((Prefix::Metadata { bytes }, prefix_bytes)) => Some(prefix_bytes + bytes),
            _ => None,
        }
    }
}

/// Moves what is in `out`, if anything, to `segments`.
fn end_segment(out: &mut Vec<u8>, segments: &mut VecDeque<Bytes>) {
    match out.len() {
        0 => {}
        // The memory of `out` is kept for the next: to let it grow anew costs more than this.
        1..SHARED_BYTES_MIN => {
            segments.push_back(Bytes::copy_from_slice(out));
            out.clear();
        }
        _ => segments.push_back(Bytes::from(std::mem::take(out))),
    }
}

/// An Arrow buffer as the owner of bytes.
pub(crate) struct Owned(pub(crate) Buffer);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl BatchEncoder {
    /// An encoder for a connection of this form.
    pub fn new(form: Form, compression: Compression) -> Self {
        let alignment = match form {
            Form::Messages { aligned: true } => 64_u8,
            Form::Messages { aligned: false } | Form::Stream => 8,
        };
        let compression = match compression {
            Compression::None => None,
            Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
            Compression::Zstd => Some(CompressionType::ZSTD),
        };
        let options = IpcWriteOptions::try_new(alignment.into(), false, MetadataVersion::V5)
            .and_then(|options| options.try_with_compression(compression))
            // Invariant: these alignments and this version are among those that it takes.
            .expect("options that the library supports");
        Self {
            form,
            options,
            alignment: usize::from(alignment),
            is_compressing: compression.is_some(),
            stream: None,
        }
    }

    /// Encodes a batch. What it gives is to be sent, in order: later batches build on it.
    ///
    /// # Errors
    /// [`EncodeError`]: the batch cannot be sent, the next one may.
    pub fn encode(&mut self, batch: &RecordBatch) -> Result<EncodedBatch, EncodeError> {
        if let Some(stream) = &mut self.stream
            && stream.is_of(batch.schema_ref())
            && let Some(body) = stream.encode_plain(batch, self.form)
        {
            return Ok(EncodedBatch { schema: None, body });
        }
        let compact = match batch.num_rows() {
            // What is behind a slice of nothing is not sent; of runs the library would send
            // one that has no value.
            0 if batch.num_columns() > 0 => Some(RecordBatch::new_empty(batch.schema())),
            _ => compacted(batch).map_err(refused)?,
        };
        let batch = compact.as_ref().unwrap_or(batch);
        let is_known = |stream: &mut Stream| stream.is_of(batch.schema_ref());
        if !self.stream.as_mut().is_some_and(is_known) {
            let plain = match self.is_compressing {
                true => None,
                false => PlainWriter::new(batch.schema_ref(), self.alignment),
            };
            self.stream = Some(Stream::new(batch.schema(), &self.options, plain)?);
        }
        let encoded = match (&mut self.stream, self.form) {
            (Some(stream), Form::Stream) => stream.encode_whole(batch, &self.options),
            (Some(stream), Form::Messages { .. }) => stream.encode(batch),
            (None, _) => unreachable!("it was made above"),
        };
        if encoded.is_err() {
            // What the library remembers as sent was not.
            self.forget();
        }
        encoded
    }

    /// What was encoded last is not sent after all: the next batch brings its schema and
    /// dictionaries again.
    pub fn forget(&mut self) {
        self.stream = None;
    }
}

impl Stream {
    fn new(
        schema: SchemaRef,
        options: &IpcWriteOptions,
        plain: Option<PlainWriter>,
    ) -> Result<Self, EncodeError> {
        let encoder = StreamEncoder::try_new_with_options(&schema, options.clone());
        Ok(Self {
            encoder: encoder.map_err(refused)?,
            plain,
            has_dictionaries: has_dictionaries(&schema),
            equal: Arc::clone(&schema),
            schema,
            schema_message: None,
        })
    }

    /// Whether batches of this schema go on with it.
    fn is_of(&mut self, schema: &SchemaRef) -> bool {
        if Arc::ptr_eq(&self.schema, schema) || Arc::ptr_eq(&self.equal, schema) {
            return true;
        }
        let is_equal = self.schema == *schema;
        if is_equal {
            self.equal = Arc::clone(schema);
        }
        is_equal
    }

    /// The body of a batch of plain columns, once its schema went ahead; none if it is to be
    /// encoded as any other.
    fn encode_plain(&self, batch: &RecordBatch, form: Form) -> Option<Encoded> {
        let schema = self.schema_message.as_ref()?;
        let plain = self.plain.as_ref()?;
        match form {
            Form::Stream => Some(plain.encode(schema, batch)?.ended()),
            Form::Messages { .. } => plain.encode(&[], batch),
        }
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<EncodedBatch, EncodeError> {
        let mut body = Encoded::of(self.encoder.encode(batch).map_err(refused)?);
        if self.schema_message.is_some() {
            return Ok(EncodedBatch { schema: None, body });
        }
        let bytes = body.first_message_bytes();
        let bytes = bytes.ok_or_else(|| EncodeError("the schema is too large".to_owned()))?;
        let schema = body.split_off_front(bytes);
        self.schema_message = Some(schema.to_vec());
        Ok(EncodedBatch {
            schema: Some(schema),
            body,
        })
    }

    /// A stream of one batch. Dictionaries are in it each time, so their encoder can't go on.
    fn encode_whole(
        &mut self,
        batch: &RecordBatch,
        options: &IpcWriteOptions,
    ) -> Result<EncodedBatch, EncodeError> {
        if self.has_dictionaries {
            *self = Self::new(Arc::clone(&self.schema), options, None)?;
        }
        let EncodedBatch { body, .. } = self.encode(batch)?;
        let schema = self.schema_message.as_deref().unwrap_or_default();
        Ok(EncodedBatch {
            schema: None,
            body: body.within(schema),
        })
    }
}

fn refused(error: ArrowError) -> EncodeError {
    EncodeError(error.to_string())
}

fn has_dictionaries(schema: &Schema) -> bool {
    let is_dictionary = |data_type: &DataType| matches!(data_type, DataType::Dictionary(_, _));
    let mut fields = schema.flattened_fields().into_iter();
    fields.any(|field| is_dictionary(field.data_type()))
}
