//! The columns of a batch over the memory of its region.

use std::sync::Arc;

use arrow::array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray,
    GenericByteArray, GenericByteViewArray, GenericListArray, MapArray, NullArray, OffsetSizeTrait,
    PrimitiveArray, StructArray, downcast_primitive,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    BinaryType, ByteArrayType, DataType, Field, FieldRef, Fields, LargeBinaryType, LargeUtf8Type,
    Schema, Utf8Type,
};

use super::decode::{RegionError, refused};
use super::descriptor::{Descriptor, Node};
use super::padded;

/// Takes nodes and buffers in the order in which they were laid out.
pub(super) struct Columns<'a> {
    descriptor: &'a Descriptor,
    region: &'a Buffer,
    /// Whether nothing may alias the region.
    copies: bool,
    /// Where the next buffer begins.
    at: usize,
    nodes: usize,
    buffers: usize,
    views: usize,
    copied_bytes: u64,
}

/// Whether the bytes of a buffer decide what is safe: they could be changed after they were
/// checked, so they are copied before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Plain,
    Checked,
}

impl<'a> Columns<'a> {
    pub(super) fn new(
        descriptor: &'a Descriptor,
        region: &'a Buffer,
        start: usize,
        copies: bool,
    ) -> Self {
        Self {
            descriptor,
            region,
            copies,
            at: start,
            nodes: 0,
            buffers: 0,
            views: 0,
            copied_bytes: 0,
        }
    }

    pub(super) fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// All columns of a batch of so many rows.
    pub(super) fn read(
        &mut self,
        schema: &Schema,
        rows: usize,
    ) -> Result<Vec<ArrayRef>, RegionError> {
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let column = self.column(field)?;
            if column.len() != rows {
                let reason = format_args!("{} rows in a batch of {rows}", column.len());
                return Err(of_field(field, reason));
            }
            columns.push(column);
        }
        if self.buffers != self.descriptor.buffers() {
            return Err(RegionError::malformed("buffers of no column"));
        }
        if self.at != self.region.len() {
            return Err(RegionError::malformed(format_args!(
                "{} bytes, where the buffers end at {}",
                self.region.len(),
                self.at
            )));
        }
        Ok(columns)
    }

    fn column(&mut self, field: &Field) -> Result<ArrayRef, RegionError> {
        let node = self.descriptor.node(self.nodes)?;
        self.nodes += 1;
        if *field.data_type() == DataType::Null {
            return match node.nulls == node.length {
                true => Ok(Arc::new(NullArray::new(node.length))),
                false => Err(of_field(field, "values that are not null")),
            };
        }
        let nulls = self.validity(field, node)?;
        self.contents(field, node.length, nulls)
    }

    fn contents(
        &mut self,
        field: &Field,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, RegionError> {
        macro_rules! primitive {
            ($type:ty) => {
                self.primitive::<$type>(field, length, nulls)
            };
        }
        let data_type = field.data_type();
        downcast_primitive! {
            data_type => (primitive),
            DataType::Boolean => {
                let values = self.bits(field, length)?;
                Ok(Arc::new(BooleanArray::new(values, nulls)))
            }
            DataType::FixedSizeBinary(width) => {
                let bytes = usize::try_from(*width).unwrap_or(0).saturating_mul(length);
                let values = self.exactly(field, bytes, Holds::Plain)?;
                array(FixedSizeBinaryArray::try_new(*width, values, nulls))
            }
            DataType::Utf8 => self.byte_array::<Utf8Type>(field, length, nulls, Holds::Checked),
            DataType::LargeUtf8 => {
                self.byte_array::<LargeUtf8Type>(field, length, nulls, Holds::Checked)
            }
            DataType::Binary => self.byte_array::<BinaryType>(field, length, nulls, Holds::Plain),
            DataType::LargeBinary => {
                self.byte_array::<LargeBinaryType>(field, length, nulls, Holds::Plain)
            }
            DataType::Utf8View => {
                self.byte_views::<StringViewType>(field, length, nulls, Holds::Checked)
            }
            DataType::BinaryView => {
                self.byte_views::<BinaryViewType>(field, length, nulls, Holds::Plain)
            }
            DataType::List(item) => self.list::<i32>(field, item, length, nulls),
            DataType::LargeList(item) => self.list::<i64>(field, item, length, nulls),
            DataType::FixedSizeList(item, size) => {
                let due = usize::try_from(*size).unwrap_or(0).saturating_mul(length);
                let items = self.items(item, due)?;
                let item = Arc::clone(item);
                array(FixedSizeListArray::try_new(item, *size, items, nulls))
            }
            DataType::Map(entries, ordered) => {
                self.map(field, entries, *ordered, length, nulls)
            }
            DataType::Struct(fields) => {
                self.record(fields, length, nulls).map(|record| Arc::new(record) as ArrayRef)
            }
            // Only schemas with a shape come here, and those have no other type.
            _ => Err(of_field(field, "a type that has no flat form")),
        }
    }

    fn primitive<T: ArrowPrimitiveType>(
        &mut self,
        field: &Field,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, RegionError> {
        let bytes = length.saturating_mul(size_of::<T::Native>());
        let values = self.exactly(field, bytes, Holds::Plain)?;
        let values = ScalarBuffer::<T::Native>::new(values, 0, length);
        let values = PrimitiveArray::<T>::try_new(values, nulls).map_err(refused)?;
        Ok(match *field.data_type() == T::DATA_TYPE {
            true => Arc::new(values),
            false => Arc::new(values.with_data_type(field.data_type().clone())),
        })
    }

    fn byte_array<T: ByteArrayType>(
        &mut self,
        field: &Field,
        length: usize,
        nulls: Option<NullBuffer>,
        holds: Holds,
    ) -> Result<ArrayRef, RegionError> {
        let (offsets, used) = self.offsets::<T::Offset>(field, length)?;
        let values = self.exactly(field, used, holds)?;
        array(GenericByteArray::<T>::try_new(offsets, values, nulls))
    }

    fn byte_views<T: ByteViewType + ?Sized>(
        &mut self,
        field: &Field,
        length: usize,
        nulls: Option<NullBuffer>,
        holds: Holds,
    ) -> Result<ArrayRef, RegionError> {
        let views = self.exactly(field, length.saturating_mul(16), Holds::Checked)?;
        let views = ScalarBuffer::<u128>::new(views, 0, length);
        let count = self.descriptor.view_buffers(self.views)?;
        self.views += 1;
        if count > self.descriptor.buffers() {
            return Err(of_field(
                field,
                "more buffers behind its views than there are",
            ));
        }
        let buffers = (0..count).map(|_| self.buffer(field, holds));
        let buffers: Vec<Buffer> = buffers.collect::<Result<_, _>>()?;
        array(GenericByteViewArray::<T>::try_new(views, buffers, nulls))
    }

    fn list<O: OffsetSizeTrait>(
        &mut self,
        field: &Field,
        item: &FieldRef,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, RegionError> {
        let (offsets, used) = self.offsets::<O>(field, length)?;
        let items = self.items(item, used)?;
        let item = Arc::clone(item);
        array(GenericListArray::<O>::try_new(item, offsets, items, nulls))
    }

    fn map(
        &mut self,
        field: &Field,
        entries: &FieldRef,
        ordered: bool,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, RegionError> {
        let (offsets, used) = self.offsets::<i32>(field, length)?;
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(of_field(entries, "entries that are no structures"));
        };
        let node = self.descriptor.node(self.nodes)?;
        self.nodes += 1;
        if node.length != used {
            let reason = format_args!("{} entries, not {used}", node.length);
            return Err(of_field(entries, reason));
        }
        let entry_nulls = self.validity(entries, node)?;
        let record = self.record(fields, used, entry_nulls)?;
        let entries = Arc::clone(entries);
        array(MapArray::try_new(entries, offsets, record, nulls, ordered))
    }

    fn record(
        &mut self,
        fields: &Fields,
        length: usize,
        nulls: Option<NullBuffer>,
    ) -> Result<StructArray, RegionError> {
        let columns = fields.iter().map(|field| self.items(field, length));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
        StructArray::try_new_with_length(fields.clone(), columns, nulls, length).map_err(refused)
    }

    /// A column within another one, of which so many values are due.
    fn items(&mut self, field: &Field, due: usize) -> Result<ArrayRef, RegionError> {
        let items = self.column(field)?;
        match items.len() == due {
            true => Ok(items),
            false => Err(of_field(
                field,
                format_args!("{} items, not {due}", items.len()),
            )),
        }
    }

    /// Offsets that were copied and checked, and where the last of them points.
    fn offsets<O: OffsetSizeTrait>(
        &mut self,
        field: &Field,
        length: usize,
    ) -> Result<(OffsetBuffer<O>, usize), RegionError> {
        if length == 0 {
            self.nothing(field)?;
            return Ok((OffsetBuffer::new_empty(), 0));
        }
        let bytes = (length + 1).saturating_mul(size_of::<O>());
        let offsets = self.exactly(field, bytes, Holds::Checked)?;
        let offsets = ScalarBuffer::<O>::new(offsets, 0, length + 1);
        let is_sorted = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        if offsets[0] != O::zero() || !is_sorted {
            return Err(of_field(field, "offsets that don't rise from 0"));
        }
        let used = offsets[length].as_usize();
        Ok((OffsetBuffer::new(offsets), used))
    }

    /// A bitmap that says as many nulls as the node does, or none.
    fn validity(&mut self, field: &Field, node: Node) -> Result<Option<NullBuffer>, RegionError> {
        if node.nulls == 0 {
            self.nothing(field)?;
            return Ok(None);
        }
        let nulls = NullBuffer::new(self.bits(field, node.length)?);
        match nulls.null_count() == node.nulls {
            true => Ok(Some(nulls)),
            false => {
                let (found, said) = (nulls.null_count(), node.nulls);
                let reason = format_args!("{found} nulls, where the batch says {said}");
                Err(of_field(field, reason))
            }
        }
    }

    /// Bits are always copied: kernels count them before they make room for what they find.
    fn bits(&mut self, field: &Field, length: usize) -> Result<BooleanBuffer, RegionError> {
        let bits = self.exactly(field, length.div_ceil(8), Holds::Checked)?;
        Ok(BooleanBuffer::new(bits, 0, length))
    }

    /// The next buffer, which has to be of this length.
    fn exactly(&mut self, field: &Field, due: usize, holds: Holds) -> Result<Buffer, RegionError> {
        let length = self.due_length(field, due)?;
        self.take(field, length, holds)
    }

    /// The next buffer, which has to be empty: even an empty one would be allocated.
    fn nothing(&mut self, field: &Field) -> Result<(), RegionError> {
        self.due_length(field, 0)?;
        self.buffers += 1;
        Ok(())
    }

    /// The next buffer.
    fn buffer(&mut self, field: &Field, holds: Holds) -> Result<Buffer, RegionError> {
        let length = self.next_length(field)?;
        self.take(field, length, holds)
    }

    fn due_length(&self, field: &Field, due: usize) -> Result<usize, RegionError> {
        match self.next_length(field)? {
            length if length == due => Ok(length),
            length => {
                let reason = format_args!("a buffer of {length} bytes, not {due}");
                Err(of_field(field, reason))
            }
        }
    }

    fn next_length(&self, field: &Field) -> Result<usize, RegionError> {
        match self.buffers < self.descriptor.buffers() {
            true => self.descriptor.buffer(self.buffers),
            false => Err(of_field(field, "the batch has too few buffers for it")),
        }
    }

    fn take(&mut self, field: &Field, length: usize, holds: Holds) -> Result<Buffer, RegionError> {
        self.buffers += 1;
        let end = self.at + length;
        if end > self.region.len() {
            let reason = format_args!("a buffer that ends at {end} of {}", self.region.len());
            return Err(of_field(field, reason));
        }
        let start = self.at;
        self.at = padded(end);
        if length == 0 {
            return Ok(Buffer::default());
        }
        if holds == Holds::Checked || self.copies {
            self.copied_bytes += length as u64;
            return Ok(Buffer::from(&self.region[start..end]));
        }
        Ok(self.region.slice_with_length(start, length))
    }
}

fn array<A: arrow::array::Array + 'static>(
    made: Result<A, arrow::error::ArrowError>,
) -> Result<ArrayRef, RegionError> {
    made.map(|array| Arc::new(array) as ArrayRef)
        .map_err(refused)
}

fn of_field(field: &Field, reason: impl std::fmt::Display) -> RegionError {
    let (name, data_type) = (field.name(), field.data_type());
    RegionError::malformed(format_args!("the column `{name}` ({data_type}): {reason}"))
}
