//! Types that are one column: how their values get into an array and out of it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray, StringBuilder};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::error::BatchError;

/// Bytes that a column with 32-bit offsets can hold.
pub(super) const COLUMN_BYTES_MAX: usize = i32::MAX as usize;

/// A type whose values are one column without nulls.
pub trait Scalar: Sized + Send + Sync + 'static {
    /// The type of the column.
    const DATA_TYPE: DataType;

    /// The array of the column.
    type Array: Array + 'static;

    /// A value that is read where it lies.
    type Ref<'a>;

    /// The values as an array of [`Self::DATA_TYPE`].
    ///
    /// # Errors
    ///
    /// [`BatchError::TooLarge`] where the array can't hold the values: build fewer at once.
    fn array<'a>(
        values: impl ExactSizeIterator<Item = &'a Self> + Clone,
    ) -> Result<ArrayRef, BatchError>;

    /// The value of a row.
    ///
    /// # Panics
    ///
    /// Where the array has no such row.
    fn at(array: &Self::Array, row: usize) -> Self::Ref<'_>;

    /// A value of one's own.
    fn to_owned(value: Self::Ref<'_>) -> Self;
}

macro_rules! primitive {
    ($($native:ty => $arrow:ty),*) => {$(
        impl Scalar for $native {
            const DATA_TYPE: DataType = <$arrow>::DATA_TYPE;
            type Array = PrimitiveArray<$arrow>;
            type Ref<'a> = $native;

            fn array<'a>(
                values: impl ExactSizeIterator<Item = &'a Self> + Clone,
            ) -> Result<ArrayRef, BatchError> {
                let values: Vec<$native> = values.copied().collect();
                Ok(Arc::new(PrimitiveArray::<$arrow>::new(values.into(), None)))
            }

            fn at(array: &Self::Array, row: usize) -> $native {
                array.value(row)
            }

            fn to_owned(value: $native) -> Self {
                value
            }
        }
    )*};
}

primitive!(
    i8 => Int8Type, i16 => Int16Type, i32 => Int32Type, i64 => Int64Type,
    u8 => UInt8Type, u16 => UInt16Type, u32 => UInt32Type, u64 => UInt64Type,
    f32 => Float32Type, f64 => Float64Type
);

impl Scalar for bool {
    const DATA_TYPE: DataType = DataType::Boolean;
    type Array = BooleanArray;
    type Ref<'a> = bool;

    fn array<'a>(
        values: impl ExactSizeIterator<Item = &'a Self> + Clone,
    ) -> Result<ArrayRef, BatchError> {
        let values: Vec<bool> = values.copied().collect();
        Ok(Arc::new(BooleanArray::from(values)))
    }

    fn at(array: &Self::Array, row: usize) -> bool {
        array.value(row)
    }

    fn to_owned(value: bool) -> Self {
        value
    }
}

impl Scalar for String {
    const DATA_TYPE: DataType = DataType::Utf8;
    type Array = StringArray;
    type Ref<'a> = &'a str;

    fn array<'a>(
        values: impl ExactSizeIterator<Item = &'a Self> + Clone,
    ) -> Result<ArrayRef, BatchError> {
        let lengths = values.clone().map(String::len);
        let bytes = total_bytes(lengths, COLUMN_BYTES_MAX)?;
        let mut builder = StringBuilder::with_capacity(values.len(), bytes);
        for value in values {
            builder.append_value(value);
        }
        Ok(Arc::new(builder.finish()))
    }

    fn at(array: &Self::Array, row: usize) -> &str {
        array.value(row)
    }

    fn to_owned(value: &str) -> Self {
        value.into()
    }
}

/// The sum of the lengths. Arrow's builders panic beyond the limit, so it is found before.
fn total_bytes(
    lengths: impl Iterator<Item = usize>,
    bytes_max: usize,
) -> Result<usize, BatchError> {
    let mut total = 0_usize;
    for (row, length) in lengths.enumerate() {
        total = match total.checked_add(length) {
            Some(sum) if sum <= bytes_max => sum,
            _ => return Err(BatchError::TooLarge { row, bytes_max }),
        };
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_the_offsets_is_an_error_that_names_the_row() {
        let fits = [COLUMN_BYTES_MAX - 1, 1, 0];
        assert_eq!(
            total_bytes(fits.into_iter(), COLUMN_BYTES_MAX).unwrap(),
            COLUMN_BYTES_MAX
        );
        for lengths in [[1, COLUMN_BYTES_MAX], [1, usize::MAX]] {
            let refused = total_bytes(lengths.into_iter(), COLUMN_BYTES_MAX);
            assert!(matches!(refused, Err(BatchError::TooLarge { row: 1, .. })));
        }
    }

    fn round_trip<V: Scalar + Clone>(values: &[V]) -> Vec<V> {
        let array = V::array(values.iter()).unwrap();
        assert_eq!(array.data_type(), &V::DATA_TYPE);
        assert!(array.nulls().is_none());
        let array = array.as_any().downcast_ref::<V::Array>().unwrap();
        let rows = 0..values.len();
        rows.map(|row| V::to_owned(V::at(array, row))).collect()
    }

    #[test]
    fn every_scalar_comes_back_with_its_extremes() {
        macro_rules! extremes {
            ($($type:ty),*) => {$(
                let values = [<$type>::MIN, <$type>::MAX, 0 as $type];
                assert_eq!(round_trip(&values), values);
            )*};
        }
        extremes!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
        assert_eq!(round_trip(&[true, false, true]), [true, false, true]);
        let nan = f64::from_bits(0x7ff8_0000_dead_beef);
        assert_eq!(round_trip(&[nan])[0].to_bits(), nan.to_bits());
        let text = ["", "a\0b\n\t", "漢é"].map(String::from);
        assert_eq!(round_trip(&text), text);
    }
}
