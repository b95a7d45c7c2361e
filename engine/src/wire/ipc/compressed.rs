//! Expands the buffers of a compressed batch.
//!
//! The library would allocate what a buffer claims, and expand what is more than that. Here
//! the claims of a batch are added up first, and every buffer yields exactly its claim.

use std::io::Read;

use arrow::buffer::{Buffer, MutableBuffer};
use arrow::ipc::{
    BodyCompressionMethod, CompressionType, DictionaryBatchBuilder, FieldNode, MessageBuilder,
    MessageHeader, RecordBatch, RecordBatchBuilder,
};
use flatbuffers::FlatBufferBuilder;
use lz4_flex::frame::FrameDecoder;
use zstd::bulk::Decompressor;

use crate::limits::IPC_BODY_BYTES_MAX;

use super::IpcMessage;
use super::batch::range_in;
use super::error::{IpcError, bounded};

/// Before each compressed buffer: how many bytes it expands to.
const CLAIM_BYTES: usize = 8;

/// The claim of a buffer that is stored as it is.
const AS_IT_IS: i64 = -1;

/// Buffers in a body begin at multiples of this, so that no type needs a copy.
const ALIGNMENT: usize = 64;

/// A message that says the same without compression: its metadata and its body.
pub(super) struct Expanded {
    pub(super) metadata: Vec<u8>,
    pub(super) body: Buffer,
}

/// Expands the batch of `message`, if it is compressed.
pub(super) fn expand(
    message: &IpcMessage<'_>,
    batch: RecordBatch<'_>,
    body: &[u8],
) -> Result<Option<Expanded>, IpcError> {
    let Some(compression) = batch.compression() else {
        return Ok(None);
    };
    if compression.method() != BodyCompressionMethod::BUFFER {
        return Err(IpcError::malformed("a compression that is not by buffer"));
    }
    let codec = Codec::of(compression.codec())?;
    let places = places(batch, body)?;
    let total = places.last().map_or(0, |place| place.end());
    let mut expanded = MutableBuffer::from_len_zeroed(total);
    for place in &places {
        let target = &mut expanded.as_slice_mut()[place.start..place.end()];
        match place.claim {
            Claim::Stored => target.copy_from_slice(place.source),
            Claim::Compressed => codec.expand(place.source, target)?,
        }
    }
    Ok(Some(Expanded {
        metadata: rebuilt(message, batch, &places, total),
        body: expanded.into(),
    }))
}

#[derive(Clone, Copy)]
enum Claim {
    Stored,
    Compressed,
}

/// A buffer, where it comes from and where it goes.
struct Place<'a> {
    source: &'a [u8],
    claim: Claim,
    start: usize,
    bytes: usize,
}

impl Place<'_> {
    const fn end(&self) -> usize {
        self.start + self.bytes
    }
}

fn places<'a>(batch: RecordBatch<'_>, body: &'a [u8]) -> Result<Vec<Place<'a>>, IpcError> {
    let what = "bytes that the buffers of a batch expand to";
    let mut places: Vec<Place<'a>> = Vec::new();
    let (mut next, mut total) = (0_usize, 0_i64);
    for buffer in batch.buffers().into_iter().flatten() {
        let source = &body[range_in(buffer, body).map_err(IpcError::malformed)?];
        let (claim, bytes, source) = match source.split_first_chunk::<CLAIM_BYTES>() {
            None if source.is_empty() => (Claim::Stored, 0, source),
            None => return Err(IpcError::malformed("a compressed buffer without a length")),
            Some((claim, source)) => match i64::from_le_bytes(*claim) {
                AS_IT_IS => (Claim::Stored, source.len() as i64, source),
                0 => (Claim::Stored, 0, &source[..0]),
                bytes => (Claim::Compressed, bytes, source),
            },
        };
        let bytes = bounded(what, bytes, IPC_BODY_BYTES_MAX)?;
        total = total.saturating_add(bytes as i64);
        bounded(what, total, IPC_BODY_BYTES_MAX)?;
        let start = next;
        places.push(Place {
            source,
            claim,
            start,
            bytes,
        });
        next = (start + bytes).next_multiple_of(ALIGNMENT);
    }
    Ok(places)
}

enum Codec {
    Lz4,
    Zstd,
}

impl Codec {
    fn of(codec: CompressionType) -> Result<Self, IpcError> {
        match codec {
            CompressionType::LZ4_FRAME => Ok(Self::Lz4),
            CompressionType::ZSTD => Ok(Self::Zstd),
            other => {
                let reason = format_args!("there is no compression {other:?}");
                Err(IpcError::malformed(reason))
            }
        }
    }

    /// Expands `source` into all of `target`, and makes sure that there is not more.
    fn expand(&self, source: &[u8], target: &mut [u8]) -> Result<(), IpcError> {
        let claimed = target.len();
        let wrong = |reason: &dyn std::fmt::Display| {
            IpcError::malformed(format_args!(
                "a compressed buffer does not expand to the {claimed} bytes that it claims: {reason}"
            ))
        };
        let yielded = match self {
            Self::Lz4 => {
                let mut decoder = FrameDecoder::new(source);
                // Not past the claim, but for one byte that must not be there.
                let read = decoder.read_exact(target);
                read.and_then(|()| decoder.read(&mut [0]))
                    .map(|more| claimed + more)
            }
            Self::Zstd => Decompressor::new()
                .and_then(|mut decoder| decoder.decompress_to_buffer(source, target)),
        };
        match yielded {
            Ok(yielded) if yielded == claimed => Ok(()),
            Ok(yielded) => Err(wrong(&format_args!("it has {yielded} or more"))),
            Err(error) => Err(wrong(&error)),
        }
    }
}

/// The metadata of `message` with its buffers at their `places`, and without compression.
fn rebuilt(
    message: &IpcMessage<'_>,
    batch: RecordBatch<'_>,
    places: &[Place<'_>],
    total: usize,
) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let nodes: Vec<FieldNode> = batch.nodes().into_iter().flatten().copied().collect();
    let buffers: Vec<arrow::ipc::Buffer> = places
        .iter()
        .map(|place| arrow::ipc::Buffer::new(place.start as i64, place.bytes as i64))
        .collect();
    let counts: Vec<i64> = batch.variadicBufferCounts().into_iter().flatten().collect();
    let nodes = builder.create_vector(&nodes);
    let buffers = builder.create_vector(&buffers);
    let counts = builder.create_vector(&counts);
    let mut plain = RecordBatchBuilder::new(&mut builder);
    plain.add_length(batch.length());
    plain.add_nodes(nodes);
    plain.add_buffers(buffers);
    plain.add_variadicBufferCounts(counts);
    let plain = plain.finish();
    let message = message.message();
    let header = match message.header_as_dictionary_batch() {
        Some(dictionary) => {
            let mut builder = DictionaryBatchBuilder::new(&mut builder);
            builder.add_id(dictionary.id());
            builder.add_data(plain);
            builder.add_isDelta(dictionary.isDelta());
            (
                MessageHeader::DictionaryBatch,
                builder.finish().as_union_value(),
            )
        }
        None => (MessageHeader::RecordBatch, plain.as_union_value()),
    };
    let mut root = MessageBuilder::new(&mut builder);
    root.add_version(message.version());
    root.add_header_type(header.0);
    root.add_header(header.1);
    root.add_bodyLength(total as i64);
    let root = root.finish();
    builder.finish(root, None);
    builder.finished_data().to_vec()
}
