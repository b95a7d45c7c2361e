//! Batches of plain columns, read without the library's reader.
//!
//! What is read here is what the checks before the library and the library itself would let
//! through, and comes out the same. Whatever does not pass is left to them, who say why.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, GenericByteArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, downcast_primitive,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes as arrow_types;
use arrow::datatypes::{ArrowNativeType, ByteArrayType, DataType, Field, Schema, SchemaRef};

use super::template::Template;
use crate::limits::{BATCH_ROWS_MAX, IPC_BODY_BYTES_MAX};

/// Alignments of buffers that senders choose.
const ALIGNMENTS: [usize; 2] = [64, 8];

/// Buffers begin at a multiple of this in their body.
const BUFFER_ALIGNMENT: usize = 8;

/// How the values of a plain column lie in buffers, behind its validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Plain {
    /// One bit each.
    Bits,
    /// So many bytes each, at most eight.
    Fixed,
    /// Offsets, and what is between them.
    Bytes,
}

/// Reads batches of one schema.
#[derive(Debug)]
pub(super) struct PlainReader {
    schema: SchemaRef,
    columns: Vec<Plain>,
    templates: Vec<Template>,
}

impl Plain {
    /// How columns of this type are; none where the library is to look after them.
    pub(in crate::wire) fn of(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Boolean => Some(Self::Bits),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                Some(Self::Bytes)
            }
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                Some(Self::Fixed)
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Some(Self::Fixed)
            }
            DataType::Float32 | DataType::Float64 => Some(Self::Fixed),
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) => Some(Self::Fixed),
            DataType::Duration(_) => Some(Self::Fixed),
            _ => None,
        }
    }

    /// How the columns of a schema are, if all are plain and there are any.
    pub(in crate::wire) fn of_schema(schema: &Schema) -> Option<Vec<Self>> {
        let fields = schema.fields();
        let columns = fields.iter().map(|field| Self::of(field.data_type()));
        columns
            .collect::<Option<Vec<_>>>()
            .filter(|columns| !columns.is_empty())
    }

    /// Buffers of a column, its validity counted.
    pub(in crate::wire) const fn buffers(self) -> usize {
        match self {
            Self::Bits | Self::Fixed => 2,
            Self::Bytes => 3,
        }
    }
}

impl PlainReader {
    /// A reader for batches of `schema`, if its columns are plain.
    pub(super) fn new(schema: &SchemaRef) -> Option<Self> {
        let columns = Plain::of_schema(schema)?;
        let buffers = columns.iter().map(|column| column.buffers()).sum();
        let template = |alignment| Template::new(columns.len(), buffers, alignment);
        let templates = ALIGNMENTS
            .into_iter()
            .map(template)
            .collect::<Option<_>>()?;
        Some(Self {
            schema: Arc::clone(schema),
            columns,
            templates,
        })
    }

    /// The batch of the message that begins at `at` in `bytes`, and where that ends; none where
    /// it is to be looked at more closely.
    pub(super) fn read(&self, bytes: &Buffer, at: usize) -> Option<(RecordBatch, usize)> {
        let message = bytes.get(at..)?;
        let template = self.templates.iter().find(|shape| shape.fits(message))?;
        let rows = template.rows(message)?;
        let body_bytes = template.body_bytes(message)?;
        let start = at + template.len();
        let is_bounded = body_bytes <= IPC_BODY_BYTES_MAX && body_bytes <= bytes.len() - start;
        // The library has rules of its own for batches of nothing.
        if !is_bounded || rows == 0 || rows > BATCH_ROWS_MAX {
            return None;
        }
        let mut walk = Walk {
            template,
            message,
            body: bytes,
            start,
            body_bytes,
            rows,
            buffer: 0,
            taken_bytes: 0,
        };
        let mut columns = Vec::with_capacity(self.columns.len());
        for (node, (field, plain)) in self.schema.fields().iter().zip(&self.columns).enumerate() {
            columns.push(walk.column(node, field, *plain)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options).ok()?;
        Some((batch, start + body_bytes))
    }
}

/// Takes nodes and buffers in their order.
struct Walk<'m> {
    template: &'m Template,
    message: &'m [u8],
    body: &'m Buffer,
    /// Where the body begins, and its length.
    start: usize,
    body_bytes: usize,
    rows: usize,
    /// The number of the next buffer.
    buffer: usize,
    /// Bytes of those before it, which share none.
    taken_bytes: usize,
}

impl Walk<'_> {
    fn column(&mut self, node: usize, field: &Field, plain: Plain) -> Option<ArrayRef> {
        let [values, nulls] = self.template.node(self.message, node)?;
        if values != self.rows || nulls > values {
            return None;
        }
        let validity = self.validity(nulls)?;
        match plain {
            Plain::Bits => self.bits(validity),
            Plain::Fixed => self.fixed(field.data_type(), validity),
            Plain::Bytes => match field.data_type() {
                DataType::Utf8 => self.texts::<arrow_types::Utf8Type>(validity),
                DataType::LargeUtf8 => self.texts::<arrow_types::LargeUtf8Type>(validity),
                DataType::Binary => self.texts::<arrow_types::BinaryType>(validity),
                DataType::LargeBinary => self.texts::<arrow_types::LargeBinaryType>(validity),
                _ => None,
            },
        }
    }

    /// The next buffer, of at least `due` bytes.
    fn next(&mut self, due: usize) -> Option<Buffer> {
        let [offset, length] = self.template.buffer(self.message, self.buffer)?;
        self.buffer += 1;
        let end = offset.checked_add(length)?;
        self.taken_bytes = self.taken_bytes.checked_add(length)?;
        let is_sound = end.max(self.taken_bytes) <= self.body_bytes
            && length >= due
            && (offset % BUFFER_ALIGNMENT == 0 || length == 0);
        is_sound.then(|| self.body.slice_with_length(self.start + offset, length))
    }

    /// The next buffer as values of a type, whole ones, at least `count`. Where they do not lie
    /// as the processor wants them, the library copies them.
    fn values<T: ArrowNativeType>(&mut self, count: usize) -> Option<ScalarBuffer<T>> {
        let buffer = self.next(count.checked_mul(size_of::<T>())?)?;
        let is_aligned = buffer.as_ptr().addr().is_multiple_of(align_of::<T>());
        let is_whole = buffer.len().is_multiple_of(size_of::<T>());
        (is_aligned && is_whole).then(|| ScalarBuffer::new(buffer, 0, count))
    }

    /// Which values are there; it has as many nulls as the node says.
    fn validity(&mut self, nulls: usize) -> Option<Option<NullBuffer>> {
        let due = if nulls > 0 { self.rows.div_ceil(8) } else { 0 };
        let buffer = self.next(due)?;
        if buffer.is_empty() {
            return Some(None);
        }
        if buffer.len() < self.rows.div_ceil(8) {
            return None;
        }
        let validity = NullBuffer::new(BooleanBuffer::new(buffer, 0, self.rows));
        (validity.null_count() == nulls).then(|| (nulls > 0).then_some(validity))
    }

    fn bits(&mut self, validity: Option<NullBuffer>) -> Option<ArrayRef> {
        let bits = self.next(self.rows.div_ceil(8))?;
        let bits = BooleanBuffer::new(bits, 0, self.rows);
        Some(Arc::new(BooleanArray::new(bits, validity)))
    }

    fn fixed(&mut self, data_type: &DataType, validity: Option<NullBuffer>) -> Option<ArrayRef> {
        macro_rules! primitive {
            ($type:ty) => {
                self.primitive::<$type>(data_type, validity)
            };
        }
        downcast_primitive! {
            data_type => (primitive),
            _ => None,
        }
    }

    fn primitive<T: ArrowPrimitiveType>(
        &mut self,
        data_type: &DataType,
        validity: Option<NullBuffer>,
    ) -> Option<ArrayRef> {
        let values = self.values::<T::Native>(self.rows)?;
        let array = PrimitiveArray::<T>::try_new(values, validity).ok()?;
        // Only a timestamp says more in its type than in that of its values.
        match data_type {
            DataType::Timestamp(_, Some(_)) => {
                Some(Arc::new(array.with_data_type(data_type.clone())))
            }
            _ => Some(Arc::new(array)),
        }
    }

    fn texts<T: ByteArrayType>(&mut self, validity: Option<NullBuffer>) -> Option<ArrayRef> {
        let offsets = self.values::<T::Offset>(self.rows + 1)?;
        let bytes = self.next(0)?;
        // Of these the array makes sure itself that they end within the bytes.
        let is_rising = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        if offsets[0] < T::Offset::default() || !is_rising {
            return None;
        }
        let offsets = OffsetBuffer::new(offsets);
        let array = GenericByteArray::<T>::try_new(offsets, bytes, validity).ok()?;
        Some(Arc::new(array))
    }
}
