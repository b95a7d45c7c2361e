//! The metadata of batches of plain columns: the same bytes each time, but for its numbers.
//!
//! A column is plain where it has one node and a number of buffers that follows from its type.
//! For a schema of such columns the library writes metadata of one shape, so it need not be
//! built anew for each batch, nor be verified as a flatbuffer anew by who reads it: bytes that
//! are equal to these, but for the numbers, are as sound as these are.

use std::ops::Range;

use arrow::ipc::{
    Buffer, FieldNode, Message, MessageBuilder, MessageHeader, MetadataVersion, RecordBatch,
    RecordBatchBuilder, root_as_message,
};
use flatbuffers::FlatBufferBuilder;

use super::PREFIX_BYTES;
use super::message::{CONTINUATION, LENGTH_BYTES};
use crate::limits::IPC_METADATA_BYTES_MAX;

/// Bytes of a number.
const NUMBER_BYTES: usize = 8;

/// Bytes of a node (values, nulls) and of a buffer (offset, length).
const PAIR_BYTES: usize = 2 * NUMBER_BYTES;

/// Metadata of one shape, with its prefix and its padding.
#[derive(Clone, Debug)]
pub(in crate::wire) struct Template {
    bytes: Vec<u8>,
    rows_at: usize,
    body_bytes_at: usize,
    nodes_at: usize,
    buffers_at: usize,
    /// What is no number, in order.
    fixed: Vec<Range<usize>>,
}

impl Template {
    /// The metadata of batches with so many nodes and buffers, padded to `alignment`; none where
    /// it would be longer than metadata may be.
    pub(in crate::wire) fn new(nodes: usize, buffers: usize, alignment: usize) -> Option<Self> {
        let metadata = metadata(nodes, buffers);
        let padded = (PREFIX_BYTES + metadata.len()).next_multiple_of(alignment);
        if padded - PREFIX_BYTES > IPC_METADATA_BYTES_MAX {
            return None;
        }
        let length = i32::try_from(padded - PREFIX_BYTES).ok()?;
        let mut bytes = Vec::with_capacity(padded);
        bytes.extend_from_slice(&CONTINUATION);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&metadata);
        bytes.resize(padded, 0);

        let message = root_as_message(&metadata).ok()?;
        let batch = message.header_as_record_batch()?;
        let place = |part: &[u8]| PREFIX_BYTES + part.as_ptr().addr() - metadata.as_ptr().addr();
        let field = |table: flatbuffers::Table<'_>, slot| {
            PREFIX_BYTES + table.loc() + usize::from(table.vtable().get(slot))
        };
        let mut template = Self {
            bytes,
            rows_at: field(batch._tab, RecordBatch::VT_LENGTH),
            body_bytes_at: field(message._tab, Message::VT_BODYLENGTH),
            nodes_at: place(batch.nodes()?.bytes()),
            buffers_at: place(batch.buffers()?.bytes()),
            fixed: Vec::new(),
        };
        template.fixed = template.all_but_numbers(nodes, buffers);
        Some(template)
    }

    /// Its length, with the prefix: the body follows.
    pub(in crate::wire) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a copy, to set numbers in.
    pub(in crate::wire) fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }

    pub(in crate::wire) fn set_rows(&self, message: &mut [u8], rows: usize) {
        set_number(message, self.rows_at, rows);
    }

    pub(in crate::wire) fn set_body_bytes(&self, message: &mut [u8], bytes: usize) {
        set_number(message, self.body_bytes_at, bytes);
    }

    pub(in crate::wire) fn set_node(&self, message: &mut [u8], node: usize, pair: [usize; 2]) {
        set_pair(message, self.nodes_at + node * PAIR_BYTES, pair);
    }

    pub(in crate::wire) fn set_buffer(&self, message: &mut [u8], buffer: usize, pair: [usize; 2]) {
        set_pair(message, self.buffers_at + buffer * PAIR_BYTES, pair);
    }

    /// Whether `bytes` begin with metadata of this shape.
    pub(super) fn fits(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.bytes.len()
            && self
                .fixed
                .iter()
                .all(|range| bytes[range.clone()] == self.bytes[range.clone()])
    }

    /// The rows of a message that [fits](Self::fits); none where that is not a count. So are the
    /// other numbers.
    pub(super) fn rows(&self, message: &[u8]) -> Option<usize> {
        number(message, self.rows_at)
    }

    pub(super) fn body_bytes(&self, message: &[u8]) -> Option<usize> {
        number(message, self.body_bytes_at)
    }

    /// Values and nulls of a node.
    pub(super) fn node(&self, message: &[u8], node: usize) -> Option<[usize; 2]> {
        pair(message, self.nodes_at + node * PAIR_BYTES)
    }

    /// Offset and length of a buffer.
    pub(super) fn buffer(&self, message: &[u8], buffer: usize) -> Option<[usize; 2]> {
        pair(message, self.buffers_at + buffer * PAIR_BYTES)
    }

    fn all_but_numbers(&self, nodes: usize, buffers: usize) -> Vec<Range<usize>> {
        let mut numbers = [
            self.rows_at..self.rows_at + NUMBER_BYTES,
            self.body_bytes_at..self.body_bytes_at + NUMBER_BYTES,
            self.nodes_at..self.nodes_at + nodes * PAIR_BYTES,
            self.buffers_at..self.buffers_at + buffers * PAIR_BYTES,
        ];
        numbers.sort_by_key(|range| range.start);
        let mut at = 0;
        let mut fixed = Vec::with_capacity(numbers.len() + 1);
        for range in numbers {
            assert!(at <= range.start, "numbers lie apart");
            fixed.push(at..range.start);
            at = range.end;
        }
        fixed.push(at..self.bytes.len());
        fixed.retain(|range| !range.is_empty());
        fixed
    }
}

/// A message as the library writes it. Its numbers are not the default ones, which would be
/// left out.
fn metadata(nodes: usize, buffers: usize) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let buffers = builder.create_vector(&vec![Buffer::new(1, 1); buffers]);
    let nodes = builder.create_vector(&vec![FieldNode::new(1, 1); nodes]);
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_length(1);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    let batch = batch.finish().as_union_value();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::RecordBatch);
    message.add_bodyLength(1);
    message.add_header(batch);
    let message = message.finish();
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

fn set_number(message: &mut [u8], at: usize, number: usize) {
    message[at..at + NUMBER_BYTES].copy_from_slice(&(number as u64).to_le_bytes());
}

fn set_pair(message: &mut [u8], at: usize, [first, second]: [usize; 2]) {
    set_number(message, at, first);
    set_number(message, at + NUMBER_BYTES, second);
}

fn number(message: &[u8], at: usize) -> Option<usize> {
    let bytes = message.get(at..)?.first_chunk()?;
    usize::try_from(i64::from_le_bytes(*bytes)).ok()
}

fn pair(message: &[u8], at: usize) -> Option<[usize; 2]> {
    Some([number(message, at)?, number(message, at + NUMBER_BYTES)?])
}

const _: () = assert!(PREFIX_BYTES == 2 * LENGTH_BYTES);
const _: () = assert!(size_of::<Buffer>() == PAIR_BYTES && size_of::<FieldNode>() == PAIR_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_what_a_message_says() {
        for (nodes, buffers, alignment) in [(1, 2, 8), (2, 4, 64), (7, 19, 64)] {
            let template = Template::new(nodes, buffers, alignment).unwrap();
            let mut message = template.bytes.clone();
            assert_eq!(message.len() % alignment, 0);
            template.set_rows(&mut message, 1000);
            template.set_body_bytes(&mut message, 123_456);
            for node in 0..nodes {
                template.set_node(&mut message, node, [1000, node]);
            }
            for buffer in 0..buffers {
                template.set_buffer(&mut message, buffer, [buffer * 64, buffer + 1]);
            }
            let read = root_as_message(&message[PREFIX_BYTES..]).unwrap();
            assert_eq!(read.bodyLength(), 123_456);
            let batch = read.header_as_record_batch().unwrap();
            assert_eq!(batch.length(), 1000);
            let nodes = batch.nodes().unwrap();
            let buffers = batch.buffers().unwrap();
            for (index, node) in nodes.iter().enumerate() {
                let expected = [node.length() as usize, node.null_count() as usize];
                assert_eq!(template.node(&message, index), Some(expected));
                assert_eq!(expected, [1000, index]);
            }
            for (index, buffer) in buffers.iter().enumerate() {
                let expected = [buffer.offset() as usize, buffer.length() as usize];
                assert_eq!(template.buffer(&message, index), Some(expected));
                assert_eq!(expected, [index * 64, index + 1]);
            }
            assert!(template.fits(&message));
        }
    }

    #[test]
    fn any_other_byte_that_differs_is_another_shape() {
        let template = Template::new(2, 4, 64).unwrap();
        let message = template.bytes.clone();
        let numbers = 2 * NUMBER_BYTES + 6 * PAIR_BYTES;
        let mut differ = 0;
        for at in 0..message.len() {
            let mut other = message.clone();
            other[at] ^= 0x40;
            differ += usize::from(!template.fits(&other));
        }
        assert_eq!(differ, message.len() - numbers);
        assert!(!template.fits(&message[..message.len() - 1]));
    }

    #[test]
    fn a_negative_number_is_no_count() {
        let template = Template::new(1, 2, 8).unwrap();
        let mut message = template.bytes.clone();
        message[template.rows_at + NUMBER_BYTES - 1] = 0x80;
        assert_eq!(template.rows(&message), None);
    }
}
