//! The columns of a batch as nodes and buffers, in the order of Arrow IPC.

use std::sync::Arc;

use arrow::array::types::ByteViewType;
use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericByteArray, GenericByteViewArray,
    GenericListArray, MapArray, OffsetSizeTrait, RecordBatch, downcast_primitive_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{ByteArrayType, DataType};

use super::descriptor::{self, Node};
use super::encode::RegionOut;
use super::padded;

/// Views over more buffers than this are gathered into one: each costs a place in the
/// descriptor and the rest of a line.
const VIEW_BUFFERS_MAX: usize = 16;

/// One batch, taken apart. It holds on to the buffers until it is cleared.
#[derive(Debug, Default)]
pub(super) struct Layout {
    rows: usize,
    nodes: Vec<Node>,
    parts: Vec<Part>,
    views: Vec<usize>,
}

/// A buffer as it is to be written.
#[derive(Debug)]
enum Part {
    /// A bitmap that says nothing.
    Nothing,
    Bytes(Buffer),
    /// Bits that may begin within a byte.
    Bits(BooleanBuffer),
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Bytes(buffer) => buffer.len(),
            Self::Bits(bits) => bits.len().div_ceil(8),
        }
    }

    fn write(&self, out: &mut impl RegionOut) {
        match self {
            Self::Nothing => {}
            Self::Bytes(buffer) => out.put(buffer),
            Self::Bits(bits) if bits.offset() % 8 == 0 => {
                let first = bits.offset() / 8;
                out.put(&bits.values()[first..first + self.bytes()]);
            }
            Self::Bits(bits) => out.put(&bits.sliced()[..self.bytes()]),
        }
    }
}

impl Layout {
    /// Takes a batch apart, whose schema has a shape. Returns how many bytes its descriptor
    /// takes, and how many its buffers.
    pub(super) fn begin(&mut self, batch: &RecordBatch) -> (usize, usize) {
        self.clear();
        self.rows = batch.num_rows();
        for column in batch.columns() {
            self.column(column.as_ref());
        }
        let descriptor = descriptor::bytes(self.nodes.len(), self.parts.len(), self.views.len());
        let buffers = self.parts.iter().map(|part| padded(part.bytes()));
        (descriptor, buffers.sum::<usize>())
    }

    /// Appends the descriptor.
    pub(super) fn describe(&self, out: &mut Vec<u8>) {
        let lengths = self.parts.iter().map(Part::bytes);
        descriptor::write(out, self.rows, &self.nodes, lengths, &self.views);
    }

    /// Writes the buffers, each filled up to the next place where one may begin.
    pub(super) fn write(&self, out: &mut impl RegionOut) {
        for part in &self.parts {
            let bytes = part.bytes();
            if bytes > 0 {
                part.write(out);
                out.pad(padded(bytes) - bytes);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.parts.clear();
        self.views.clear();
    }

    fn column(&mut self, array: &dyn Array) {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        self.node(array, nulls);
        if *array.data_type() == DataType::Null {
            return;
        }
        self.parts.push(match nulls {
            Some(nulls) => Part::Bits(nulls.inner().clone()),
            None => Part::Nothing,
        });
        downcast_primitive_array!(
            array => self.bytes(array.values().inner().clone()),
            DataType::Boolean => self.parts.push(Part::Bits(array.as_boolean().values().clone())),
            DataType::FixedSizeBinary(_) => {
                self.bytes(array.as_fixed_size_binary().values().clone());
            }
            DataType::Utf8 => self.byte_array(array.as_string::<i32>()),
            DataType::LargeUtf8 => self.byte_array(array.as_string::<i64>()),
            DataType::Binary => self.byte_array(array.as_binary::<i32>()),
            DataType::LargeBinary => self.byte_array(array.as_binary::<i64>()),
            DataType::Utf8View => self.byte_views(array.as_string_view()),
            DataType::BinaryView => self.byte_views(array.as_binary_view()),
            DataType::List(_) => self.list(array.as_list::<i32>()),
            DataType::LargeList(_) => self.list(array.as_list::<i64>()),
            DataType::FixedSizeList(_, _) => self.fixed_size_list(array.as_fixed_size_list()),
            DataType::Map(_, _) => self.map(array.as_map()),
            DataType::Struct(_) => {
                for column in array.as_struct().columns() {
                    self.column(column.as_ref());
                }
            }
            // Invariant: only schemas that have a shape come here, and those have no other type.
            other => unreachable!("{other} has no flat form")
        );
    }

    fn node(&mut self, array: &dyn Array, nulls: Option<&NullBuffer>) {
        let nulls = match array.data_type() {
            DataType::Null => array.len(),
            _ => nulls.map_or(0, NullBuffer::null_count),
        };
        self.nodes.push(Node {
            length: array.len(),
            nulls,
        });
    }

    fn bytes(&mut self, buffer: Buffer) {
        self.parts.push(Part::Bytes(buffer));
    }

    fn byte_array<T: ByteArrayType>(&mut self, array: &GenericByteArray<T>) {
        let (first, last) = self.offsets(array.offsets(), array.len());
        let values = array.values().slice_with_length(first, last - first);
        self.bytes(values);
    }

    /// Writes offsets that begin with 0, and returns what they had before as first and last.
    fn offsets<O: OffsetSizeTrait>(
        &mut self,
        offsets: &OffsetBuffer<O>,
        length: usize,
    ) -> (usize, usize) {
        let (first, last) = (offsets[0], offsets[length]);
        let written = match length {
            0 => Buffer::default(),
            _ if first == O::zero() => offsets.inner().inner().clone(),
            _ => offsets
                .iter()
                .map(|offset| *offset - first)
                .collect::<Vec<O>>()
                .into(),
        };
        self.bytes(written);
        (first.as_usize(), last.as_usize())
    }

    fn byte_views<T: ByteViewType + ?Sized>(&mut self, array: &GenericByteViewArray<T>) {
        let behind: usize = array.data_buffers().iter().map(Buffer::len).sum();
        let is_wasteful = array.data_buffers().len() > VIEW_BUFFERS_MAX
            || behind > array.total_buffer_bytes_used().saturating_mul(2);
        let compact = is_wasteful.then(|| array.gc());
        let array = compact.as_ref().unwrap_or(array);
        self.bytes(array.views().inner().clone());
        let buffers = array.data_buffers();
        self.views.push(buffers.len());
        for buffer in buffers.iter() {
            self.bytes(buffer.clone());
        }
    }

    fn list<O: OffsetSizeTrait>(&mut self, list: &GenericListArray<O>) {
        let (first, last) = self.offsets(list.offsets(), list.len());
        self.part_of(list.values(), first, last - first);
    }

    fn map(&mut self, map: &MapArray) {
        let (first, last) = self.offsets(map.offsets(), map.len());
        self.column(&map.entries().slice(first, last - first));
    }

    fn fixed_size_list(&mut self, list: &FixedSizeListArray) {
        let size = list.value_length() as usize;
        let first = list.value_offset(0) as usize;
        self.part_of(list.values(), first, list.len() * size);
    }

    fn part_of(&mut self, values: &ArrayRef, first: usize, length: usize) {
        match first == 0 && length == values.len() {
            true => self.column(values.as_ref()),
            false => self.column(Arc::as_ref(&values.slice(first, length))),
        }
    }
}
