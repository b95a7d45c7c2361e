//! Keys of every type, given and taken back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int16Array, Int64Array,
    LargeStringArray, StringArray, StringViewArray, TimestampMillisecondArray, UInt64Array,
};
use arrow::datatypes::{Field, Int32Type, Schema};

use super::*;
use crate::operators::testing::Random;

fn batch(columns: &[ArrayRef]) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|column| Field::new("same_name", column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.to_vec()).expect("equal lengths")
}

fn interner(columns: &[ArrayRef]) -> KeyInterner {
    let positions: Vec<usize> = (0..columns.len()).collect();
    KeyInterner::new(&batch(columns).schema(), &positions).expect("types that can be keys")
}

/// Five rows, of which row 0 and 3 are equal.
fn columns() -> Vec<ArrayRef> {
    let texts = [Some("a"), None, Some(""), Some("a"), Some("\0")];
    let dictionary: DictionaryArray<Int32Type> = texts.into_iter().collect();
    vec![
        Arc::new(Int64Array::from(vec![
            Some(i64::MIN),
            None,
            Some(0),
            Some(i64::MIN),
            Some(-1),
        ])),
        Arc::new(Int16Array::from(vec![
            Some(-1),
            None,
            Some(0),
            Some(-1),
            Some(i16::MAX),
        ])),
        Arc::new(UInt64Array::from(vec![
            Some(u64::MAX),
            None,
            Some(0),
            Some(u64::MAX),
            Some(1),
        ])),
        Arc::new(StringArray::from(texts.to_vec())),
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(StringViewArray::from(texts.to_vec())),
        Arc::new(Date32Array::from(vec![
            Some(-5),
            None,
            Some(0),
            Some(-5),
            Some(9),
        ])),
        Arc::new(TimestampMillisecondArray::from(vec![
            Some(1),
            None,
            Some(0),
            Some(1),
            Some(2),
        ])),
        Arc::new(Float64Array::from(vec![
            Some(1.5),
            None,
            Some(0.0),
            Some(1.5),
            Some(f64::NAN),
        ])),
        Arc::new(dictionary),
    ]
}

fn check(columns: &[ArrayRef]) {
    let mut interner = interner(columns);
    let mut ids = Vec::new();
    interner.intern(&batch(columns), &mut ids).expect("keys");
    assert_eq!(ids, [0, 1, 2, 0, 3], "{:?}", columns[0].data_type());
    let back = interner.columns(&[3, 0, 1, 2]).expect("columns");
    for (back, column) in back.iter().zip(columns) {
        assert_eq!(back.data_type(), column.data_type());
        for (at, row) in [4, 0, 1, 2].into_iter().enumerate() {
            assert_eq!(&back.slice(at, 1), &column.slice(row, 1));
        }
    }
}

#[test]
fn keys_of_one_column_come_back_with_their_type() {
    columns()
        .iter()
        .for_each(|column| check(std::slice::from_ref(column)));
}

#[test]
fn keys_of_several_columns_come_back_with_their_types() {
    let all = columns();
    for first in &all {
        for second in &all {
            check(&[Arc::clone(first), Arc::clone(second)]);
        }
    }
    check(&all);
}

#[test]
fn texts_that_join_to_the_same_are_different_keys() {
    let columns: [ArrayRef; 2] = [
        Arc::new(StringArray::from(vec![
            Some("ab"),
            Some("a"),
            None,
            Some(""),
        ])),
        Arc::new(StringArray::from(vec![
            Some("c"),
            Some("bc"),
            Some("abc"),
            Some("abc"),
        ])),
    ];
    let mut ids = Vec::new();
    interner(&columns)
        .intern(&batch(&columns), &mut ids)
        .expect("keys");
    assert_eq!(ids, [0, 1, 2, 3]);
}

#[test]
fn true_and_false_are_keys() {
    let column: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let mut interner = interner(std::slice::from_ref(&column));
    let mut ids = Vec::new();
    interner
        .intern(&batch(std::slice::from_ref(&column)), &mut ids)
        .expect("keys");
    assert_eq!(&interner.columns(&ids).expect("columns")[0], &column);
}

#[test]
fn a_number_is_given_again_only_when_nothing_uses_its_key() {
    let mut random = Random::new("key_numbers");
    for text in [false, true] {
        let column = |keys: &[i64]| -> ArrayRef {
            match text {
                true => Arc::new(
                    keys.iter()
                        .map(|key| Some(key.to_string()))
                        .collect::<StringArray>(),
                ),
                false => Arc::new(Int64Array::from(keys.to_vec())),
            }
        };
        let mut interner = interner(&[column(&[])]);
        let mut held: HashMap<i64, u32> = HashMap::new();
        for _ in 0..500 {
            let keys: Vec<i64> = (0..random.below(8))
                .map(|_| random.between(0, 40))
                .collect();
            let mut ids = Vec::new();
            interner
                .intern(&batch(&[column(&keys)]), &mut ids)
                .expect("keys");
            for (key, id) in keys.iter().zip(&ids) {
                if *held.entry(*key).or_insert(*id) == *id && random.below(2) == 0 {
                    continue;
                }
                assert_eq!(held[key], *id, "a key keeps its number while it is used");
            }
            // Every key that was seen is used once, and some are let go.
            let seen: HashMap<i64, u32> = keys.iter().copied().zip(ids).collect();
            for (key, id) in seen {
                interner.hold(id);
                if random.below(2) == 0 {
                    interner.release(id);
                    if interner.uses[id as usize] == 0 {
                        held.remove(&key);
                    }
                }
            }
            assert_eq!(interner.live(), held.len());
            let distinct: std::collections::HashSet<_> = held.values().collect();
            assert_eq!(distinct.len(), held.len(), "no number stands for two keys");
        }
        assert!(interner.bound() <= 40, "numbers are used again");
    }
}
