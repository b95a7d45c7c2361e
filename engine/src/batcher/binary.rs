//! The batcher of types that have no columns of their own: the bytes of a codec.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{BinaryArray, RecordBatch};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, SchemaRef};

use super::Batcher;
use super::builtin::{event_time_array, schema_of};
use super::codec::{Codec, Coded, Plain};
use super::error::BatchError;
use super::scalar::COLUMN_BYTES_MAX;
use super::views::{BytesView, View};
use crate::batch::{Row, Rows};

/// The name of the column that holds a value in the bytes of its codec.
pub const VALUE_BYTES_COLUMN: &str = "value_bytes";

/// Rows of one value in the bytes of a codec: `event_time`, `value_bytes`.
#[derive(Debug)]
pub struct BinaryBatcher<T, C = Plain> {
    codec: C,
    schema: SchemaRef,
    value: PhantomData<fn() -> T>,
}

impl<T: Coded> BinaryBatcher<T> {
    /// The batcher over the encoding that the type has by itself.
    pub fn plain() -> Self {
        Self::over(Plain)
    }
}

impl<T, C: Codec<T>> BinaryBatcher<T, C> {
    /// The batcher over a codec of one's own.
    pub fn over(codec: C) -> Self {
        Self {
            codec,
            schema: schema_of([(VALUE_BYTES_COLUMN, DataType::Binary)]),
            value: PhantomData,
        }
    }

    /// The values one behind the other, and the array over them.
    fn encoded(&self, rows: &Rows<T>, bytes_max: usize) -> Result<BinaryArray, BatchError> {
        let mut bytes = Vec::new();
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        offsets.push(0_i32);
        for (row, Row { value, .. }) in rows.iter().enumerate() {
            let encoded = self.codec.encode(value, &mut bytes);
            encoded.map_err(|source| BatchError::Codec { row, source })?;
            let end = i32::try_from(bytes.len()).ok();
            match end {
                Some(end) if bytes.len() <= bytes_max => offsets.push(end),
                _ => return Err(BatchError::TooLarge { row, bytes_max }),
            }
        }
        // A codec that takes bytes back would break the order of the offsets, on which
        // everything below relies.
        if let Some(row) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            let message = "the codec removed bytes of earlier values".to_string();
            let source = super::CodecError::Other(message);
            return Err(BatchError::Codec { row, source });
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        Ok(BinaryArray::try_new(
            offsets,
            Buffer::from_vec(bytes),
            None,
        )?)
    }
}

impl<T, C: Codec<T>> Batcher<T> for BinaryBatcher<T, C> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn build(&self, rows: &Rows<T>) -> Result<RecordBatch, BatchError> {
        let values = Arc::new(self.encoded(rows, COLUMN_BYTES_MAX)?);
        let columns = vec![event_time_array(rows), values];
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn parse(&self, batch: &RecordBatch) -> Result<Rows<T>, BatchError> {
        let view = BytesView::of(batch)?;
        let mut rows = Rows::with_capacity(view.len());
        for (row, (event_time, bytes)) in view.iter().enumerate() {
            let value = self.codec.decode(bytes);
            let value = value.map_err(|source| BatchError::Codec { row, source })?;
            rows.push(Row { value, event_time });
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batcher::CodecError;

    struct Reversed;

    impl Codec<&'static str> for Reversed {
        fn encode(&self, value: &&'static str, out: &mut Vec<u8>) -> Result<(), CodecError> {
            out.extend(value.bytes().rev());
            Ok(())
        }

        fn decode(&self, bytes: &[u8]) -> Result<&'static str, CodecError> {
            match bytes {
                b"cba" => Ok("abc"),
                _ => Err(CodecError::Other("only abc is known".into())),
            }
        }
    }

    #[test]
    fn a_codec_of_ones_own_serves_a_type_that_is_not() {
        let batcher = BinaryBatcher::over(Reversed);
        let rows = Rows::from(vec![Row::at(1, "abc"), Row::untimed("abc")]);
        let batch = batcher.build(&rows).unwrap();
        assert_eq!(BytesView::of(&batch).unwrap().value(1), b"cba");
        assert_eq!(batcher.parse(&batch).unwrap(), rows);
    }

    #[test]
    fn bytes_that_do_not_decode_are_an_error_with_their_row() {
        let rows = Rows::from(vec![Row::untimed(b"ok".to_vec()), Row::untimed(vec![0xff])]);
        let batch = BinaryBatcher::plain().build(&rows).unwrap();
        let refused = BinaryBatcher::<String>::plain().parse(&batch);
        assert!(matches!(refused, Err(BatchError::Codec { row: 1, .. })));
    }

    #[test]
    fn more_bytes_than_a_column_holds_are_an_error_with_their_row() {
        let rows = Rows::from(vec![Row::untimed(vec![0_u8; 4]), Row::untimed(vec![0; 3])]);
        let batcher = BinaryBatcher::plain();
        assert!(batcher.encoded(&rows, 7).is_ok());
        let refused = batcher.encoded(&rows, 6);
        assert!(matches!(refused, Err(BatchError::TooLarge { row: 1, .. })));
    }
}
