//! Batches of one kind of column each, made by a rule, so that they are the same in every run.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::Field;

use crate::error::BenchError;

/// Different values of a dictionary.
const ENTRIES: i32 = 100;

/// Entries of a list at most.
const LIST_ENTRIES_MAX: u64 = 15;

/// Texts of 4 to 19, 20 to 83 and 64 to 191 bytes.
///
/// # Errors
/// When the columns make no batch, as for all of them.
pub(super) fn strings(first: i64, rows: usize) -> Result<RecordBatch, BenchError> {
    let texts = |salt: u64, least: u64, span: u64| -> ArrayRef {
        let texts = numbers(first, rows).map(|number| {
            let spread = spread(number, salt);
            text(spread, (least + spread % span) as usize)
        });
        Arc::new(StringArray::from_iter_values(texts))
    };
    let columns = [
        times(first, rows),
        ("word", texts(1, 4, 16)),
        ("address", texts(2, 20, 64)),
        ("remark", texts(3, 64, 128)),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Amounts of money, and two numbers that need more than 64 bits.
pub(super) fn decimals(first: i64, rows: usize) -> Result<RecordBatch, BenchError> {
    let decimals = |salt, precision, scale, shift: u32| -> Result<ArrayRef, BenchError> {
        let values = numbers(first, rows).map(|number| {
            let spread = i128::from(spread(number, salt) >> 20);
            (spread << shift) - (1_i128 << 40)
        });
        let values = Decimal128Array::from_iter_values(values);
        Ok(Arc::new(values.with_precision_and_scale(precision, scale)?))
    };
    let columns = [
        times(first, rows),
        ("amount", decimals(1, 15, 2, 0)?),
        ("large", decimals(2, 38, 10, 60)?),
        ("larger", decimals(3, 38, 18, 70)?),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Lists of up to 15 numbers, and lists of up to 15 such lists, some of them empty.
pub(super) fn lists(first: i64, rows: usize) -> Result<RecordBatch, BenchError> {
    let lengths = |salt, rows| {
        let lengths = numbers(first, rows).map(move |number| {
            let length = spread(number, salt) % (LIST_ENTRIES_MAX + 1);
            length as usize
        });
        OffsetBuffer::from_lengths(lengths)
    };
    let ints = |salt, count: i32| -> ArrayRef {
        let values = numbers(first, count as usize);
        let values = values.map(|number| spread(number, salt).cast_signed() >> 30);
        Arc::new(Int64Array::from_iter_values(values))
    };
    let list = |offsets: OffsetBuffer<i32>, values: ArrayRef| -> Result<ArrayRef, BenchError> {
        let item = Field::new_list_field(values.data_type().clone(), true);
        let list = ListArray::try_new(Arc::new(item), offsets, values, None)?;
        Ok(Arc::new(list))
    };
    let last = |offsets: &OffsetBuffer<i32>| offsets[offsets.len() - 1];
    let flat = lengths(1, rows);
    let outer = lengths(2, rows);
    let inner = OffsetBuffer::from_lengths(
        (0..last(&outer)).map(|at| (spread(first + i64::from(at), 3) % 3) as usize),
    );
    let (flat_values, inner_values) = (ints(4, last(&flat)), ints(5, last(&inner)));
    let columns = [
        times(first, rows),
        ("numbers", list(flat, flat_values)?),
        ("groups", list(outer, list(inner, inner_values)?)?),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Two columns of texts of which there are a hundred each.
pub(super) fn dictionaries(first: i64, rows: usize) -> Result<RecordBatch, BenchError> {
    let column = |salt, bytes| -> Result<ArrayRef, BenchError> {
        let keys = numbers(first, rows);
        let keys = keys.map(|number| (spread(number, salt) % ENTRIES as u64) as i32);
        let entries = (0..ENTRIES).map(|entry| text(spread(i64::from(entry), salt), bytes));
        let entries = Arc::new(StringArray::from_iter_values(entries)) as ArrayRef;
        let keys = Int32Array::from_iter_values(keys);
        Ok(Arc::new(DictionaryArray::try_new(keys, entries)?))
    };
    let columns = [
        times(first, rows),
        ("country", column(1, 12)?),
        ("product", column(2, 40)?),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Numbers, texts and truth values, of which every other one is null, in no order.
pub(super) fn nulls(first: i64, rows: usize) -> Result<RecordBatch, BenchError> {
    let half = |salt| {
        let spread = move |number| spread(number, salt);
        numbers(first, rows)
            .map(spread)
            .map(|spread| (spread & 1 == 0).then_some(spread >> 1))
    };
    let ints = half(1).map(|value| value.map(u64::cast_signed));
    let floats = half(2).map(|value| value.map(|value| value as f64 / 1e3));
    let truths = half(3).map(|value| value.map(|value| value & 2 == 0));
    let texts = half(4).map(|value| value.map(|value| text(value, (value % 40) as usize)));
    let columns = [
        times(first, rows),
        ("number", Arc::new(ints.collect::<Int64Array>()) as ArrayRef),
        ("share", Arc::new(floats.collect::<Float64Array>())),
        ("flag", Arc::new(truths.collect::<BooleanArray>())),
        ("text", Arc::new(texts.collect::<StringArray>())),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn times(first: i64, rows: usize) -> (&'static str, ArrayRef) {
    let times = Int64Array::from_iter_values(numbers(first, rows));
    ("event_time", Arc::new(times))
}

fn numbers(first: i64, rows: usize) -> impl Iterator<Item = i64> {
    first..first + rows as i64
}

/// A number that looks like chance, and is the same for the same two.
fn spread(number: i64, salt: u64) -> u64 {
    let mut bits = number.cast_unsigned() ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        bits = (bits ^ bits >> 31).wrapping_mul(0x5851_f42d_4c95_7f2d);
    }
    bits ^ bits >> 29
}

/// Lower-case letters, so many.
fn text(mut bits: u64, bytes: usize) -> String {
    let letter = || {
        bits = bits.rotate_left(11).wrapping_mul(0x5851_f42d_4c95_7f2d) | 1;
        char::from(b'a' + (bits >> 59) as u8 % 26)
    };
    std::iter::repeat_with(letter).take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_values_are_null() {
        let batch = nulls(0, 1_000).unwrap();
        for column in &batch.columns()[1..] {
            let share = column.null_count() as f64 / 1_000.0;
            assert!((0.4..0.6).contains(&share), "{share}");
        }
    }

    #[test]
    fn the_same_rows_are_made_again() {
        for batch in [strings, decimals, lists, dictionaries, nulls] {
            assert_eq!(batch(5, 50).unwrap(), batch(5, 50).unwrap());
            assert_ne!(batch(5, 50).unwrap(), batch(6, 50).unwrap());
        }
    }
}
