//! Fields of one number, truth value or text.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, StringArray, StringBuilder,
};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;

use super::field::{ColumnWriter, FieldType, Full, KeyType, Required};
use super::live::{Live, Misfit, typed};
use crate::batcher::scalar::COLUMN_BYTES_MAX;

/// Gathers numbers where the array will have them.
#[doc(hidden)]
#[derive(Debug)]
pub struct NumberWriter<P: ArrowPrimitiveType> {
    values: Vec<P::Native>,
    nulls: NullBufferBuilder,
}

impl<P: ArrowPrimitiveType> ColumnWriter<P::Native> for NumberWriter<P> {
    fn with_capacity(rows: usize) -> Self {
        Self {
            values: Vec::with_capacity(rows),
            nulls: NullBufferBuilder::new(rows),
        }
    }

    #[inline]
    fn push(&mut self, value: &P::Native) -> Result<(), Full> {
        self.values.push(*value);
        self.nulls.append_non_null();
        Ok(())
    }

    #[inline]
    fn push_null(&mut self) {
        self.values.push(P::Native::default());
        self.nulls.append_null();
    }

    fn push_blank(&mut self) {
        self.values.push(P::Native::default());
        self.nulls.append_non_null();
    }

    #[inline]
    fn extend<'r>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'r P::Native> + Clone,
    ) -> Result<(), Full> {
        self.nulls.append_n_non_nulls(values.len());
        self.values.extend(values.copied());
        Ok(())
    }

    fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        let array = PrimitiveArray::<P>::try_new(self.values.into(), self.nulls.finish())?;
        Ok(Arc::new(array))
    }
}

macro_rules! numbers {
    ($($native:ty => $arrow:ty),*) => {$(
        impl FieldType for $native {
            type Writer = NumberWriter<$arrow>;
            type Column<'a> = &'a [$native];
            type Ref<'a> = $native;

            fn data_type() -> DataType {
                <$arrow>::DATA_TYPE
            }

            fn column<'a>(array: &'a dyn Array, _: &Live) -> Result<&'a [$native], Misfit> {
                Ok(typed::<PrimitiveArray<$arrow>>(array)?.values())
            }

            #[inline]
            fn at<'a>(column: &Self::Column<'a>, row: usize) -> Self::Ref<'a> {
                column.get(row).copied().unwrap_or_default()
            }

            #[inline]
            fn owned(value: $native) -> $native {
                value
            }

            fn owned_range(column: &&[$native], rows: Range<usize>) -> Vec<$native> {
                column[rows].to_vec()
            }
        }

        impl Required for $native {}
    )*};
}

numbers!(
    i8 => Int8Type, i16 => Int16Type, i32 => Int32Type, i64 => Int64Type,
    u8 => UInt8Type, u16 => UInt16Type, u32 => UInt32Type, u64 => UInt64Type,
    f32 => Float32Type, f64 => Float64Type
);

macro_rules! keys {
    ($($type:ty),*) => {$(
        impl KeyType for $type {
            #[inline]
            fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering {
                Ord::cmp(&a, &b)
            }
        }
    )*};
}

keys!(i8, i16, i32, i64, u8, u16, u32, u64, bool);

impl KeyType for String {
    #[inline]
    fn compare(a: &str, b: &str) -> Ordering {
        a.cmp(b)
    }
}

/// Packs truth values, 64 to a word.
#[doc(hidden)]
#[derive(Debug)]
pub struct BoolWriter {
    words: Vec<u64>,
    /// The values that do not fill a word yet, the oldest in the lowest bit.
    last: u64,
    len: usize,
    nulls: NullBufferBuilder,
}

impl BoolWriter {
    #[inline]
    fn append(&mut self, value: bool) {
        self.last |= u64::from(value) << (self.len % 64);
        self.len += 1;
        if self.len.is_multiple_of(64) {
            self.words.push(self.last.to_le());
            self.last = 0;
        }
    }
}

impl ColumnWriter<bool> for BoolWriter {
    fn with_capacity(rows: usize) -> Self {
        Self {
            words: Vec::with_capacity(rows.div_ceil(64)),
            last: 0,
            len: 0,
            nulls: NullBufferBuilder::new(rows),
        }
    }

    #[inline]
    fn push(&mut self, value: &bool) -> Result<(), Full> {
        self.append(*value);
        self.nulls.append_non_null();
        Ok(())
    }

    fn push_null(&mut self) {
        self.append(false);
        self.nulls.append_null();
    }

    fn push_blank(&mut self) {
        self.append(false);
        self.nulls.append_non_null();
    }

    #[inline]
    fn extend<'r>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'r bool> + Clone,
    ) -> Result<(), Full> {
        self.nulls.append_n_non_nulls(values.len());
        values.for_each(|value| self.append(*value));
        Ok(())
    }

    fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        if !self.len.is_multiple_of(64) {
            self.words.push(self.last.to_le());
        }
        let bytes = Buffer::from_vec(self.words).slice_with_length(0, self.len.div_ceil(8));
        let values = BooleanBuffer::new(bytes, 0, self.len);
        Ok(Arc::new(BooleanArray::new(values, self.nulls.finish())))
    }
}

/// The bit of a row; false where there is no such row.
#[inline]
pub(super) fn bit(bits: &BooleanBuffer, row: usize) -> bool {
    let at = bits.offset() + row;
    let byte = bits.inner().as_slice().get(at / 8).copied();
    byte.unwrap_or_default() & (1 << (at % 8)) != 0
}

impl FieldType for bool {
    type Writer = BoolWriter;
    type Column<'a> = &'a BooleanArray;
    type Ref<'a> = bool;

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn column<'a>(array: &'a dyn Array, _: &Live) -> Result<&'a BooleanArray, Misfit> {
        typed(array)
    }

    #[inline]
    fn at<'a>(column: &Self::Column<'a>, row: usize) -> Self::Ref<'a> {
        bit(column.values(), row)
    }

    #[inline]
    fn owned(value: bool) -> bool {
        value
    }
}

impl Required for bool {}

/// Gathers texts. Their sum is checked here, because Arrow's builder panics beyond the limit.
#[doc(hidden)]
#[derive(Debug)]
pub struct TextWriter {
    texts: StringBuilder,
    bytes: usize,
    bytes_max: usize,
}

impl TextWriter {
    #[inline]
    fn claim(&mut self, bytes: usize) -> Result<(), Full> {
        match self.bytes.checked_add(bytes) {
            Some(sum) if sum <= self.bytes_max => self.bytes = sum,
            _ => return Err(Full::ONLY),
        }
        Ok(())
    }
}

impl ColumnWriter<String> for TextWriter {
    fn with_capacity(rows: usize) -> Self {
        Self {
            texts: StringBuilder::with_capacity(rows, 0),
            bytes: 0,
            bytes_max: COLUMN_BYTES_MAX,
        }
    }

    #[inline]
    fn push(&mut self, value: &String) -> Result<(), Full> {
        self.claim(value.len())?;
        self.texts.append_value(value);
        Ok(())
    }

    fn push_null(&mut self) {
        self.texts.append_null();
    }

    fn push_blank(&mut self) {
        self.texts.append_value("");
    }

    fn extend<'r>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'r String> + Clone,
    ) -> Result<(), Full> {
        let before = self.bytes;
        for (index, value) in values.clone().enumerate() {
            self.claim(value.len()).map_err(|_| Full { index })?;
        }
        if self.texts.offsets_slice().len() == 1 {
            let room = self.bytes - before;
            self.texts = StringBuilder::with_capacity(values.len(), room);
        }
        for value in values {
            self.texts.append_value(value);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(self.texts.finish()))
    }
}

impl FieldType for String {
    type Writer = TextWriter;
    type Column<'a> = &'a StringArray;
    type Ref<'a> = &'a str;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn column<'a>(array: &'a dyn Array, _: &Live) -> Result<&'a StringArray, Misfit> {
        typed(array)
    }

    #[inline]
    fn at<'a>(column: &Self::Column<'a>, row: usize) -> Self::Ref<'a> {
        if row < column.len() {
            column.value(row)
        } else {
            ""
        }
    }

    #[inline]
    fn owned(value: &str) -> String {
        value.into()
    }
}

impl Required for String {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_the_offsets_is_refused_at_its_row() {
        let texts = ["ab", "", "cd", "e"].map(String::from);
        let mut writer = TextWriter::with_capacity(4);
        writer.bytes_max = 4;
        assert_eq!(writer.extend(texts.iter()), Err(Full { index: 3 }));
        let mut writer = TextWriter::with_capacity(4);
        writer.bytes_max = 4;
        assert_eq!(writer.extend(texts[..3].iter()), Ok(()));
        assert_eq!(writer.push(&texts[3]), Err(Full::ONLY));
        assert_eq!(writer.push(&texts[1]), Ok(()));
    }

    #[test]
    fn truth_values_are_packed_as_arrow_packs_them() {
        for len in [0, 1, 7, 8, 63, 64, 65, 200] {
            let values: Vec<bool> = (0..len).map(|n| n % 3 == 0 || n % 7 == 1).collect();
            let mut writer = BoolWriter::with_capacity(3);
            writer.extend(values[..len / 2].iter()).unwrap();
            writer.extend(values[len / 2..].iter()).unwrap();
            let array = writer.finish().unwrap();
            let array = array.as_any().downcast_ref::<BooleanArray>().unwrap();
            assert_eq!(*array, BooleanArray::from(values));
            assert_eq!(array.values().inner().len(), len.div_ceil(8));
        }
    }
}
