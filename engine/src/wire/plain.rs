//! Batches of plain columns, encoded without the library's writer.
//!
//! What is written is what the library would write. Whatever is not plain after all, such as a
//! slice whose texts begin within their bytes, is left to it.

use arrow::array::{Array, AsArray, RecordBatch, downcast_primitive};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes as arrow_types;
use arrow::datatypes::{ArrowNativeType, ByteArrayType, DataType, Schema};

use super::encode::Encoded;
use super::ipc::{Plain, Template};

/// Encodes batches of one schema.
#[derive(Debug)]
pub(super) struct PlainWriter {
    columns: Vec<Plain>,
    template: Template,
    alignment: usize,
    buffers: usize,
}

/// What a message is put together in.
struct Message<'t> {
    template: &'t Template,
    metadata: &'t mut [u8],
    body: Encoded,
    alignment: usize,
    /// Buffers so far.
    count: usize,
    /// Where the next one begins.
    offset: usize,
}

impl PlainWriter {
    /// An encoder for batches of `schema`, if its columns are plain.
    pub(super) fn new(schema: &Schema, alignment: usize) -> Option<Self> {
        let columns = Plain::of_schema(schema)?;
        let buffers = columns.iter().map(|column| column.buffers()).sum();
        let template = Template::new(columns.len(), buffers, alignment)?;
        Some(Self {
            columns,
            template,
            alignment,
            buffers,
        })
    }

    /// The message of a batch, behind what goes ahead of it; none if the library is to encode it.
    pub(super) fn encode(&self, ahead: &[u8], batch: &RecordBatch) -> Option<Encoded> {
        let rows = batch.num_rows();
        if rows == 0 {
            return None;
        }
        let mut head = Vec::with_capacity(ahead.len() + self.template.len());
        head.extend_from_slice(ahead);
        self.template.append_to(&mut head);
        let mut message = Message {
            template: &self.template,
            metadata: &mut head[ahead.len()..],
            body: Encoded::with_capacity(self.buffers),
            alignment: self.alignment,
            count: 0,
            offset: 0,
        };
        for (node, (column, plain)) in batch.columns().iter().zip(&self.columns).enumerate() {
            let pair = [rows, column.null_count()];
            self.template.set_node(message.metadata, node, pair);
            message.column(column.as_ref(), *plain)?;
        }
        self.template.set_rows(message.metadata, rows);
        let body_bytes = message.offset;
        self.template.set_body_bytes(message.metadata, body_bytes);
        let mut body = message.body;
        body.set_head(head);
        Some(body)
    }
}

impl Message<'_> {
    fn column(&mut self, column: &dyn Array, plain: Plain) -> Option<()> {
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        match nulls.map(NullBuffer::inner) {
            Some(bits) => self.push(bits.sliced()),
            None => self.say(0),
        }
        match plain {
            Plain::Bits => self.push(column.as_boolean_opt()?.values().sliced()),
            Plain::Fixed => self.push(values(column)?),
            Plain::Bytes => match column.data_type() {
                DataType::Utf8 => self.texts::<arrow_types::Utf8Type>(column)?,
                DataType::LargeUtf8 => self.texts::<arrow_types::LargeUtf8Type>(column)?,
                DataType::Binary => self.texts::<arrow_types::BinaryType>(column)?,
                DataType::LargeBinary => self.texts::<arrow_types::LargeBinaryType>(column)?,
                _ => return None,
            },
        }
        Some(())
    }

    fn texts<T: ByteArrayType>(&mut self, column: &dyn Array) -> Option<()> {
        let texts = column.as_bytes_opt::<T>()?;
        let offsets = texts.value_offsets();
        let end = offsets.last().copied()?;
        if offsets[0] != T::Offset::default() {
            return None;
        }
        let end = end.as_usize();
        self.push(texts.offsets().inner().inner().clone());
        self.push(texts.values().slice_with_length(0, end));
        Some(())
    }

    fn push(&mut self, buffer: Buffer) {
        let length = buffer.len();
        let padding = length.next_multiple_of(self.alignment) - length;
        self.say(length);
        self.offset += length + padding;
        self.body.push(buffer, padding);
    }

    /// Says where the next buffer is.
    fn say(&mut self, length: usize) {
        let pair = [self.offset, length];
        self.template.set_buffer(self.metadata, self.count, pair);
        self.count += 1;
    }
}

/// The values of a column of numbers.
fn values(column: &dyn Array) -> Option<Buffer> {
    macro_rules! values {
        ($type:ty) => {
            Some(column.as_primitive_opt::<$type>()?.values().inner().clone())
        };
    }
    downcast_primitive! {
        column.data_type() => (values),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
