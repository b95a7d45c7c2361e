//! A checksum over rows that does not depend on their order, nor on how they are batched.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::row::{RowConverter, SortField};

/// What a row's hash begins with.
const START: u64 = 0x243f_6a88_85a3_08d3;

/// What stands for a null.
const NULL: u64 = 0x1319_8a2e_0370_7344;

/// An odd factor that spreads bits upwards.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The wrapping sum over the rows of `batch` of a 64-bit hash of each row. The sum over
/// several batches is that over their rows, in any order.
///
/// A row's hash is folded over its columns from left to right: `h = (h ^ v) * K`, then
/// `h ^= h >> 32`, where `v` is the value: an integer, boolean, date or timestamp as 64 bits
/// (sign extended), a float as the bits of its f64 (all NaN alike, -0 and 0 alike), the bytes
/// of a text or binary value folded eight at a time, and for any other type the bytes of
/// Arrow's row format. Null is a value of its own. Names, and whether a column may be null,
/// do not matter; the order of the columns does.
///
/// It tells results apart that differ by accident; it is no defence against intent.
pub fn checksum(batch: &RecordBatch) -> u64 {
    let mut hashes = vec![START; batch.num_rows()];
    for column in batch.columns() {
        fold_column(&mut hashes, column);
    }
    hashes.iter().fold(0, |sum, hash| sum.wrapping_add(*hash))
}

fn fold_column(hashes: &mut [u64], column: &ArrayRef) {
    match column.data_type() {
        DataType::Int8 => fold_ints::<Int8Type>(hashes, column),
        DataType::Int16 => fold_ints::<Int16Type>(hashes, column),
        DataType::Int32 => fold_ints::<Int32Type>(hashes, column),
        DataType::Int64 => fold_ints::<Int64Type>(hashes, column),
        DataType::UInt8 => fold_ints::<UInt8Type>(hashes, column),
        DataType::UInt16 => fold_ints::<UInt16Type>(hashes, column),
        DataType::UInt32 => fold_ints::<UInt32Type>(hashes, column),
        DataType::UInt64 => fold_primitive::<UInt64Type>(hashes, column, |value| value),
        DataType::Date32 => fold_ints::<Date32Type>(hashes, column),
        DataType::Date64 => fold_ints::<Date64Type>(hashes, column),
        DataType::Timestamp(unit, _) => fold_times(hashes, column, *unit),
        DataType::Float32 => {
            fold_primitive::<Float32Type>(hashes, column, |value| float_bits(f64::from(value)));
        }
        DataType::Float64 => fold_primitive::<Float64Type>(hashes, column, float_bits),
        DataType::Boolean => fold_values(hashes, column, column.as_boolean().iter(), u64::from),
        DataType::Utf8 => fold_values(hashes, column, column.as_string::<i32>().iter(), |text| {
            hash_bytes(text.as_bytes())
        }),
        DataType::LargeUtf8 => {
            fold_values(hashes, column, column.as_string::<i64>().iter(), |text| {
                hash_bytes(text.as_bytes())
            });
        }
        DataType::Binary => {
            fold_values(hashes, column, column.as_binary::<i32>().iter(), hash_bytes);
        }
        _ => fold_rows(hashes, column),
    }
}

fn fold_times(hashes: &mut [u64], column: &ArrayRef, unit: TimeUnit) {
    match unit {
        TimeUnit::Second => fold_ints::<TimestampSecondType>(hashes, column),
        TimeUnit::Millisecond => fold_ints::<TimestampMillisecondType>(hashes, column),
        TimeUnit::Microsecond => fold_ints::<TimestampMicrosecondType>(hashes, column),
        TimeUnit::Nanosecond => fold_ints::<TimestampNanosecondType>(hashes, column),
    }
}

fn fold_ints<T: ArrowPrimitiveType>(hashes: &mut [u64], column: &ArrayRef)
where
    T::Native: Into<i64>,
{
    fold_primitive::<T>(hashes, column, |value| {
        let value: i64 = value.into();
        value.cast_unsigned()
    });
}

fn fold_primitive<T: ArrowPrimitiveType>(
    hashes: &mut [u64],
    column: &ArrayRef,
    bits: impl Fn(T::Native) -> u64,
) {
    let column: &PrimitiveArray<T> = column.as_primitive();
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        // Without nulls it is one plain loop over two slices.
        None => {
            for (hash, value) in hashes.iter_mut().zip(column.values()) {
                fold(hash, bits(*value));
            }
        }
        Some(nulls) => {
            let valid = nulls.iter();
            for ((hash, value), valid) in hashes.iter_mut().zip(column.values()).zip(valid) {
                fold(hash, if valid { bits(*value) } else { NULL });
            }
        }
    }
}

fn fold_values<V>(
    hashes: &mut [u64],
    column: &ArrayRef,
    values: impl Iterator<Item = Option<V>>,
    bits: impl Fn(V) -> u64,
) {
    debug_assert_eq!(hashes.len(), column.len());
    for (hash, value) in hashes.iter_mut().zip(values) {
        fold(hash, value.map_or(NULL, &bits));
    }
}

/// Any type that Arrow can put into its row format; what it can't counts only by its nulls.
fn fold_rows(hashes: &mut [u64], column: &ArrayRef) {
    let rows = RowConverter::new(vec![SortField::new(column.data_type().clone())])
        .and_then(|converter| converter.convert_columns(std::slice::from_ref(column)));
    let Ok(rows) = rows else {
        for (row, hash) in hashes.iter_mut().enumerate() {
            fold(hash, if column.is_null(row) { NULL } else { 0 });
        }
        return;
    };
    for (row, hash) in hashes.iter_mut().enumerate() {
        let is_null = column.is_null(row);
        let bits = if is_null {
            NULL
        } else {
            hash_bytes(rows.row(row).as_ref())
        };
        fold(hash, bits);
    }
}

#[inline]
fn fold(hash: &mut u64, value: u64) {
    let mixed = (*hash ^ value).wrapping_mul(FACTOR);
    *hash = mixed ^ (mixed >> 32);
}

fn float_bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        // Adding zero turns -0 into 0 and leaves all else alone.
        (value + 0.0).to_bits()
    }
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        fold(&mut hash, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(&mut hash, u64::from_le_bytes(last));
    hash
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::UInt64Array;
    use arrow::array::{
        BooleanArray, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array,
        StringArray,
    };
    use arrow::compute::{concat_batches, take_record_batch};

    use super::*;

    fn sample() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "i",
                Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
            ),
            (
                "s",
                Arc::new(StringArray::from(vec![Some("a"), Some(""), None])),
            ),
            ("f", Arc::new(Float64Array::from(vec![0.5, -0.5, 7.0]))),
            ("b", Arc::new(BooleanArray::from(vec![true, false, true]))),
            (
                "d",
                Arc::new(Decimal128Array::from(vec![Some(1), None, Some(5)])),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn neither_the_order_of_rows_nor_their_batches_matter() {
        let batch = sample();
        let turned = take_record_batch(&batch, &UInt64Array::from(vec![2, 0, 1])).unwrap();
        assert_eq!(checksum(&batch), checksum(&turned));
        let parts = [batch.slice(0, 1), batch.slice(1, 2)];
        let sum = parts
            .iter()
            .fold(0u64, |sum, part| sum.wrapping_add(checksum(part)));
        assert_eq!(sum, checksum(&batch));
        let twice = concat_batches(&batch.schema(), [&batch, &batch]).unwrap();
        assert_eq!(checksum(&twice), checksum(&batch).wrapping_mul(2));
    }

    #[test]
    fn every_value_matters() {
        let batch = sample();
        for column in 0..batch.num_columns() {
            for (to, from) in [(0, 1), (1, 2), (2, 0)] {
                let mut order = vec![0, 1, 2];
                order[to] = from;
                let order = UInt64Array::from(order);
                let mut columns = batch.columns().to_vec();
                columns[column] = arrow::compute::take(&columns[column], &order, None).unwrap();
                let names = ["i", "s", "f", "b", "d"].into_iter().zip(columns);
                let changed = RecordBatch::try_from_iter(names).unwrap();
                let is_same = batch.column(column) == changed.column(column);
                assert_eq!(checksum(&changed) == checksum(&batch), is_same);
            }
        }
    }

    #[test]
    fn equal_numbers_hash_alike_and_null_is_not_zero() {
        let one =
            |column: ArrayRef| checksum(&RecordBatch::try_from_iter([("a", column)]).unwrap());
        assert_eq!(
            one(Arc::new(Int32Array::from(vec![-5]))),
            one(Arc::new(Int64Array::from(vec![-5])))
        );
        assert_eq!(
            one(Arc::new(Float32Array::from(vec![-0.0]))),
            one(Arc::new(Float64Array::from(vec![0.0])))
        );
        assert_ne!(
            one(Arc::new(Int64Array::from(vec![None]))),
            one(Arc::new(Int64Array::from(vec![0])))
        );
        assert_ne!(
            one(Arc::new(StringArray::from(vec!["a"]))),
            one(Arc::new(StringArray::from(vec!["a\0"])))
        );
    }
}
