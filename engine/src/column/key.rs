//! The key of each row of a batch, as a hash, a key group and a target.
//!
//! The hash is that of the partitioner over the bytes of the key, so typed rows route as their
//! columns do where the key is an `i64`, a text, or pairs of them. Narrower integers are widened
//! here, so that a key keeps its group when its column changes width. The bytes of one column:
//!
//! | type | bytes |
//! |---|---|
//! | integers, signed or not, of any width | the value as a 64-bit integer, 8 bytes little-endian |
//! | dates, times, timestamps, durations | the number that arrow holds, as an integer |
//! | booleans | one byte, 0 or 1 |
//! | floats | the 64-bit float, little-endian; -0 as 0, every NaN as one |
//! | text, binary, of any offset width or as views | the bytes themselves |
//! | null, of any type | one byte 0 |
//!
//! A key of several columns is a nested pair: each but the last goes behind its length as a
//! u32, little-endian. A null may share its group with the text of one zero byte, or with
//! `false`; the group decides where a row goes, not which key it has.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, UInt64Type};

use super::ColumnError;
use crate::partition::{Fnv1a, Parallelism, extend_with_key_groups, key_group_of_hash, subtask_of};

/// The columns that are the key of a row, bound to a schema.
///
/// What it computes lies in buffers of its own, which the next batch uses again.
#[derive(Debug)]
pub struct KeyColumns {
    columns: Vec<KeyColumn>,
    states: Vec<Fnv1a>,
    hashes: Vec<u64>,
    targets: Vec<u32>,
}

impl KeyColumns {
    /// The key made of these columns of the schema, in this order.
    ///
    /// # Errors
    ///
    /// [`ColumnError::NoKey`], [`ColumnError::NoColumn`] and [`ColumnError::KeyType`]: the plan
    /// asks for a key that such rows don't have, so refuse it.
    pub fn bind(schema: &Schema, columns: &[usize]) -> Result<Self, ColumnError> {
        if columns.is_empty() {
            return Err(ColumnError::NoKey);
        }
        let columns = columns
            .iter()
            .map(|&column| KeyColumn::bind(schema, column));
        Ok(Self {
            columns: columns.collect::<Result<_, _>>()?,
            states: Vec::new(),
            hashes: Vec::new(),
            targets: Vec::new(),
        })
    }

    /// The hash of each row's key.
    ///
    /// # Errors
    ///
    /// [`ColumnError::NoColumn`] and [`ColumnError::KeyChanged`] where the batch has not the
    /// schema that the key was bound to: what sent it is at fault.
    pub fn hashes(&mut self, batch: &RecordBatch) -> Result<&[u64], ColumnError> {
        self.absorb(batch)?;
        self.hashes.clear();
        self.hashes
            .extend(self.states.iter().map(|state| state.finish()));
        Ok(&self.hashes)
    }

    /// The key group of each row.
    ///
    /// # Errors
    ///
    /// As [`Self::hashes`].
    pub fn groups(&mut self, batch: &RecordBatch) -> Result<&[u32], ColumnError> {
        self.targets.clear();
        if let [column] = &self.columns[..]
            && let Some(integers) = column.integers(batch)?
        {
            extend_with_key_groups(&mut self.targets, integers.values());
            return Ok(&self.targets);
        }
        self.absorb(batch)?;
        let groups = self
            .states
            .iter()
            .map(|state| key_group_of_hash(state.finish()));
        self.targets.extend(groups);
        Ok(&self.targets)
    }

    /// The subtask of each row, of those that share the key groups.
    ///
    /// # Errors
    ///
    /// As [`Self::hashes`].
    pub fn targets(
        &mut self,
        batch: &RecordBatch,
        parallelism: Parallelism,
    ) -> Result<&[u32], ColumnError> {
        self.groups(batch)?;
        for target in &mut self.targets {
            *target = subtask_of(*target, parallelism);
        }
        Ok(&self.targets)
    }

    /// Takes the bytes of every key column into the state of each row.
    fn absorb(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        self.states.clear();
        self.states.resize(batch.num_rows(), Fnv1a::new());
        let last = self.columns.len() - 1;
        for (index, column) in self.columns.iter().enumerate() {
            column.absorb(batch, index < last, &mut self.states)?;
        }
        Ok(())
    }
}

/// One column of a key.
#[derive(Debug)]
struct KeyColumn {
    index: usize,
    data_type: DataType,
}

impl KeyColumn {
    fn bind(schema: &Schema, column: usize) -> Result<Self, ColumnError> {
        let field = schema.fields().get(column).ok_or(ColumnError::NoColumn {
            column,
            columns: schema.fields().len(),
        })?;
        let data_type = field.data_type().clone();
        if !has_key_bytes(&data_type) {
            return Err(ColumnError::KeyType {
                column,
                name: field.name().clone(),
                data_type,
            });
        }
        Ok(Self {
            index: column,
            data_type,
        })
    }

    /// Its values, where they are integers and none is null.
    fn integers(&self, batch: &RecordBatch) -> Result<Option<Int64Array>, ColumnError> {
        let array = self.array(batch)?;
        if !is_integer(&self.data_type) || array.null_count() > 0 {
            return Ok(None);
        }
        Ok(Some(as_int64(array)?))
    }

    /// Takes this column's bytes into the state of each row.
    fn absorb(
        &self,
        batch: &RecordBatch,
        prefixed: bool,
        states: &mut [Fnv1a],
    ) -> Result<(), ColumnError> {
        absorb_array(self.array(batch)?, prefixed, states)
    }

    fn array<'a>(&self, batch: &'a RecordBatch) -> Result<&'a ArrayRef, ColumnError> {
        let array = batch
            .columns()
            .get(self.index)
            .ok_or(ColumnError::NoColumn {
                column: self.index,
                columns: batch.num_columns(),
            })?;
        if array.data_type() != &self.data_type {
            return Err(ColumnError::KeyChanged {
                column: self.index,
                expected: self.data_type.clone(),
                found: array.data_type().clone(),
            });
        }
        Ok(array)
    }
}

/// 64 bits already: arrow hands out the same buffer under another type.
fn as_int64(array: &dyn Array) -> Result<Int64Array, ColumnError> {
    let wide = cast(array, &DataType::Int64)?;
    Ok(wide.as_primitive::<Int64Type>().clone())
}

/// Whether a column of this type can be part of a key.
fn has_key_bytes(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Boolean, LargeBinary, LargeUtf8, UInt64, Utf8, Utf8View};
    matches!(
        data_type,
        Boolean | UInt64 | Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView
    ) || data_type.is_floating()
        || is_integer(data_type)
}

/// Whether every value of the type is the number of a 64-bit signed integer.
fn is_integer(data_type: &DataType) -> bool {
    use DataType::{
        Date32, Date64, Duration, Int8, Int16, Int32, Int64, Time32, Time64, Timestamp, UInt8,
        UInt16, UInt32,
    };
    matches!(
        data_type,
        Int8 | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | Date32
            | Date64
            | Time32(_)
            | Time64(_)
            | Timestamp(..)
            | Duration(_)
    )
}

/// Takes the bytes of an array whose type [`has_key_bytes`] into the state of each row.
fn absorb_array(
    array: &dyn Array,
    prefixed: bool,
    states: &mut [Fnv1a],
) -> Result<(), ColumnError> {
    let nulls = array.nulls();
    let mut rows = Rows {
        states,
        nulls,
        prefixed,
    };
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            rows.absorb(|row| [u8::from(values.value(row))]);
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            rows.absorb(|row| values[row].to_le_bytes());
        }
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            rows.absorb(|row| values.value(row).as_bytes());
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            rows.absorb(|row| values.value(row).as_bytes());
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            rows.absorb(|row| values.value(row).as_bytes());
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            rows.absorb(|row| values.value(row));
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            rows.absorb(|row| values.value(row));
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            rows.absorb(|row| values.value(row));
        }
        float if float.is_floating() => {
            let wide = cast(array, &DataType::Float64)?;
            let values = wide.as_primitive::<Float64Type>().values();
            rows.absorb(|row| float_bytes(values[row]));
        }
        integer => {
            debug_assert!(is_integer(integer), "bind lets through no {integer}");
            let wide = as_int64(array)?;
            let values = wide.values();
            rows.absorb(|row| values[row].to_le_bytes());
        }
    }
    Ok(())
}

/// The states of all rows, while one column is taken into them.
struct Rows<'a> {
    states: &'a mut [Fnv1a],
    nulls: Option<&'a NullBuffer>,
    /// Another column follows, so the length of this one has to be told.
    prefixed: bool,
}

impl Rows<'_> {
    fn absorb<B: AsRef<[u8]>>(&mut self, bytes_of: impl Fn(usize) -> B) {
        match self.nulls {
            None => {
                for (row, state) in self.states.iter_mut().enumerate() {
                    write(state, bytes_of(row).as_ref(), self.prefixed);
                }
            }
            Some(nulls) => {
                for (row, state) in self.states.iter_mut().enumerate() {
                    if nulls.is_null(row) {
                        write(state, &NULL_KEY_BYTES, self.prefixed);
                    } else {
                        write(state, bytes_of(row).as_ref(), self.prefixed);
                    }
                }
            }
        }
    }
}

/// The bytes of a null: those of an absent optional value.
const NULL_KEY_BYTES: [u8; 1] = [0];

#[inline]
fn write(state: &mut Fnv1a, bytes: &[u8], prefixed: bool) {
    if prefixed {
        state.write_part(bytes);
    } else {
        state.write(bytes);
    }
}

/// Floats that compare equal are one key, and so are all that compare to nothing.
fn float_bytes(value: f64) -> [u8; 8] {
    if value.is_nan() {
        f64::NAN.to_le_bytes()
    } else {
        // Adding zero turns -0 into 0 and leaves every other number alone.
        (value + 0.0).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array,
        Int64Array, LargeStringArray, NullArray, StringArray, StringViewArray,
        TimestampMicrosecondArray, UInt32Array, UInt64Array, new_null_array,
    };
    use arrow::datatypes::TimeUnit;

    use crate::batcher::Coded;
    use crate::partition::fnv1a64;

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        // All columns have one name: nothing here may look a column up by it.
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|c| ("k", c, true)))
            .unwrap()
    }

    fn key(batch: &RecordBatch) -> KeyColumns {
        let all: Vec<usize> = (0..batch.num_columns()).collect();
        KeyColumns::bind(&batch.schema(), &all).unwrap()
    }

    fn hashes(columns: Vec<ArrayRef>) -> Vec<u64> {
        let batch = batch(columns);
        key(&batch).hashes(&batch).unwrap().to_vec()
    }

    fn hash_of<T: Coded>(value: &T) -> u64 {
        let mut bytes = Vec::new();
        value.encode(&mut bytes).unwrap();
        fnv1a64(&bytes)
    }

    #[test]
    fn integers_and_text_fall_into_the_groups_of_the_reference() {
        let numbers = Int64Array::from(vec![0, 1, 2, 3, -1, 42, 12345, i64::MAX, i64::MIN]);
        let numbers = batch(vec![Arc::new(numbers)]);
        assert_eq!(
            key(&numbers).groups(&numbers).unwrap(),
            [69, 36, 7, 102, 61, 111, 76, 61, 69]
        );
        assert_eq!(
            key(&numbers)
                .targets(&numbers, Parallelism::new(3).unwrap())
                .unwrap(),
            [1, 0, 0, 2, 1, 2, 1, 1, 1]
        );
        let texts = StringArray::from(vec!["", "a", "alice", "bob", "hello world"]);
        let texts = batch(vec![Arc::new(texts)]);
        assert_eq!(key(&texts).groups(&texts).unwrap(), [37, 12, 7, 84, 103]);
        assert_eq!(
            key(&texts).hashes(&texts).unwrap()[4],
            0x779a_65e7_023c_d2e7
        );
    }

    #[test]
    fn a_number_has_one_hash_whatever_its_width() {
        let wide = hashes(vec![Arc::new(Int64Array::from(vec![7, 100]))]);
        let others: [ArrayRef; 5] = [
            Arc::new(Int8Array::from(vec![7, 100])),
            Arc::new(UInt32Array::from(vec![7, 100])),
            Arc::new(UInt64Array::from(vec![7, 100])),
            Arc::new(Date32Array::from(vec![7, 100])),
            Arc::new(TimestampMicrosecondArray::from(vec![7, 100])),
        ];
        for other in others {
            assert_eq!(hashes(vec![other]), wide);
        }
        let large = hashes(vec![Arc::new(UInt64Array::from(vec![u64::MAX]))]);
        assert_eq!(large, hashes(vec![Arc::new(Int64Array::from(vec![-1]))]));
    }

    #[test]
    fn text_has_one_hash_however_it_is_stored() {
        let texts = vec!["", "alice", "longer than what a view holds inline"];
        let plain = hashes(vec![Arc::new(StringArray::from(texts.clone()))]);
        let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let others: [ArrayRef; 3] = [
            Arc::new(LargeStringArray::from(texts.clone())),
            Arc::new(StringViewArray::from(texts)),
            Arc::new(BinaryArray::from(bytes)),
        ];
        for other in others {
            assert_eq!(hashes(vec![other]), plain);
        }
    }

    #[test]
    fn equal_floats_are_one_key() {
        let values = vec![0.0, -0.0, f64::NAN, -f64::NAN, 1.5];
        let wide = hashes(vec![Arc::new(Float64Array::from(values))]);
        assert_eq!((wide[0], wide[2]), (wide[1], wide[3]));
        assert_eq!(wide[4], hash_of(&1.5_f64));
        let narrow = hashes(vec![Arc::new(Float32Array::from(vec![1.5]))]);
        assert_eq!(narrow[0], wide[4]);
    }

    #[test]
    fn several_columns_hash_like_the_nested_pair_of_their_values() {
        let names = Arc::new(StringArray::from(vec!["alice", "", "漢"]));
        let numbers = Arc::new(Int64Array::from(vec![1, -2, i64::MIN]));
        let flags = Arc::new(BooleanArray::from(vec![true, false, true]));
        let two = hashes(vec![names.clone(), numbers.clone()]);
        let three = hashes(vec![names, numbers, flags]);
        let rows = [("alice", 1, true), ("", -2, false), ("漢", i64::MIN, true)];
        for (row, (name, number, flag)) in rows.into_iter().enumerate() {
            let name = name.to_string();
            assert_eq!(two[row], hash_of(&(name.clone(), number)));
            assert_eq!(three[row], hash_of(&(name, (number, flag))));
        }
    }

    #[test]
    fn nulls_are_one_key_and_whatever_lies_under_them_is_not_read() {
        let dirty = Int64Array::new(vec![5, 6, 7].into(), Some(vec![true, false, false].into()));
        let hashed = hashes(vec![Arc::new(dirty.clone())]);
        assert_eq!(hashed[0], hash_of(&5_i64));
        assert_eq!(hashed[1], hash_of(&None::<i64>));
        assert_eq!(hashed[1], hashed[2]);
        let both = hashes(vec![Arc::new(dirty.clone()), Arc::new(dirty)]);
        assert_eq!(both[2], hash_of(&(None::<i64>, None::<i64>)));
    }

    #[test]
    fn a_slice_hashes_its_own_rows() {
        let rows = Int64Array::from_iter((0..9).map(|row| (row % 3 != 0).then_some(row)));
        let whole = batch(vec![Arc::new(rows)]);
        let all = key(&whole).hashes(&whole).unwrap().to_vec();
        let slice = whole.slice(4, 3);
        assert_eq!(key(&whole).hashes(&slice).unwrap(), &all[4..7]);
    }

    #[test]
    fn what_cannot_be_a_key_is_refused_when_bound() {
        let schema = batch(vec![Arc::new(NullArray::new(1))]).schema();
        let bind = |columns: &[usize]| KeyColumns::bind(&schema, columns).unwrap_err();
        assert!(matches!(bind(&[]), ColumnError::NoKey));
        assert!(matches!(
            bind(&[1]),
            ColumnError::NoColumn { columns: 1, .. }
        ));
        assert!(matches!(bind(&[0]), ColumnError::KeyType { column: 0, .. }));
    }

    #[test]
    fn what_can_be_bound_can_be_hashed() {
        use DataType::{
            Date64, Decimal128, Duration, Float16, Int16, Time32, Time64, Timestamp, UInt8, UInt16,
        };
        use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        for data_type in [
            Int16,
            UInt8,
            UInt16,
            Float16,
            Date64,
            Time32(Second),
            Time32(Millisecond),
            Time64(Microsecond),
            Time64(Nanosecond),
            Timestamp(Second, None),
            Timestamp(Nanosecond, Some("+02:00".into())),
            Duration(Second),
            Duration(Millisecond),
            DataType::LargeBinary,
            DataType::BinaryView,
        ] {
            let hashed = hashes(vec![new_null_array(&data_type, 2)]);
            assert_eq!(hashed, [hash_of(&None::<i64>); 2], "{data_type}");
        }
        let decimal = new_null_array(&Decimal128(10, 2), 1);
        assert!(KeyColumns::bind(&batch(vec![decimal]).schema(), &[0]).is_err());
    }

    #[test]
    fn a_batch_of_another_schema_is_an_error() {
        let numbers = batch(vec![Arc::new(Int64Array::from(vec![1]))]);
        let texts = batch(vec![Arc::new(StringArray::from(vec!["a"]))]);
        let mut key = key(&numbers);
        let refused = key.hashes(&texts).unwrap_err();
        assert!(matches!(refused, ColumnError::KeyChanged { .. }));
        let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert!(matches!(
            key.hashes(&none),
            Err(ColumnError::NoColumn { columns: 0, .. })
        ));
    }
}
