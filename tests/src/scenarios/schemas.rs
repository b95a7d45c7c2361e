//! B29: metadata, names that repeat, and schemas that change.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use ringway::element::StreamElement;

use super::{receive, send, texts};
use crate::conformance::EdgeSubject;
use crate::conformance::elements::room_for;

type Pairs = HashMap<String, String>;

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Pairs {
    let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    pairs.into_iter().map(own).collect()
}

fn numbers(fields: Vec<Field>, metadata: Pairs, columns: &[[i64; 2]]) -> RecordBatch {
    let columns = columns
        .iter()
        .map(|values| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef);
    let schema = Schema::new_with_metadata(fields, metadata);
    RecordBatch::try_new(Arc::new(schema), columns.collect()).expect("columns that fit")
}

fn int64(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn same<S: EdgeSubject>(subject: &S, batch: &RecordBatch) -> RecordBatch {
    let (mut sender, mut receiver) = subject.open(room_for(1));
    send(&mut sender, batch);
    let arrived = receive(&mut receiver);
    assert_eq!(arrived.schema(), batch.schema());
    assert_eq!(arrived, *batch);
    arrived
}

/// With an empty key, and on fields inside of others.
pub fn b29_metadata_of_schema_and_fields_arrives<S: EdgeSubject>(subject: &S) {
    let extension = pairs([("ARROW:extension:name", "example.id"), ("", "empty key")]);
    let field = int64("a").with_metadata(extension.clone());
    let inner = Arc::new(int64("inner").with_metadata(extension));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let record =
        arrow::array::StructArray::new(vec![inner].into(), vec![Arc::clone(&values)], None);
    let outer = Field::new("b", arrow::array::Array::data_type(&record).clone(), false);
    let metadata = pairs([("origin", "t1"), ("", "")]);
    let schema = Schema::new_with_metadata(vec![field, outer], metadata);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![values, Arc::new(record)]);
    same(subject, &batch.expect("columns that fit"));
}

/// Also where the first of them has metadata and the second has none.
pub fn b29_columns_of_one_name_and_of_none_are_told_apart_by_position<S: EdgeSubject>(subject: &S) {
    let first = int64("same").with_metadata(pairs([("unit", "ms")]));
    let fields = vec![first, int64("same"), int64(""), int64("")];
    let batch = numbers(fields, pairs([]), &[[1, 2], [3, 4], [5, 6], [7, 8]]);
    let arrived = same(subject, &batch);
    let all: Vec<_> = arrived.columns().iter().map(texts).collect();
    assert_eq!(all, [["1", "2"], ["3", "4"], ["5", "6"], ["7", "8"]]);
}

/// More than any header has room for by chance.
pub fn b29_twenty_thousand_pairs_of_metadata_arrive<S: EdgeSubject>(subject: &S) {
    let many = (0..20_000).map(|pair| (format!("key {pair}"), format!("value {pair}")));
    let batch = numbers(vec![int64("a")], many.collect(), &[[1, 2]]);
    let arrived = same(subject, &batch);
    assert_eq!(arrived.schema().metadata().len(), 20_000);
}

/// Though it is another object in memory.
pub fn b29_the_same_schema_twice_is_one_schema<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open(room_for(4));
    for values in [[1, 2], [3, 4]] {
        let batch = numbers(vec![int64("a")], pairs([("origin", "t1")]), &[values]);
        send(&mut sender, &batch);
        assert_eq!(receive(&mut receiver), batch);
    }
}

/// It arrives under its own schema, or it is given back.
pub fn b29_a_batch_of_another_schema_is_never_read_with_the_first<S: EdgeSubject>(subject: &S) {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let field = Field::new("a", DataType::Utf8, true);
    let of_texts = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![texts]);
    let others = [
        of_texts.expect("columns that fit"),
        numbers(vec![int64("a"), int64("b")], pairs([]), &[[1, 2], [3, 4]]),
        numbers(vec![int64("b")], pairs([]), &[[1, 2]]),
        numbers(vec![int64("a")], pairs([("origin", "t2")]), &[[1, 2]]),
    ];
    for other in others {
        let (mut sender, mut receiver) = subject.open(room_for(4));
        let first = numbers(vec![int64("a")], pairs([("origin", "t1")]), &[[1, 2]]);
        send(&mut sender, &first);
        match sender.try_push(StreamElement::Data(other.clone())) {
            Ok(()) => {
                assert_eq!(receive(&mut receiver), first);
                let arrived = receive(&mut receiver);
                assert_eq!(arrived.schema(), other.schema());
                assert_eq!(arrived, other);
            }
            Err(rejected) => assert_eq!(rejected.element, StreamElement::Data(other)),
        }
    }
}
