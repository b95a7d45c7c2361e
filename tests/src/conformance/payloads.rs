//! A batch arrives as it was.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use ringway::batch::{Payload, Row, Rows};
use ringway::element::{EVENT_TIME_MAX, EVENT_TIME_MIN, StreamElement};

use super::EdgeSubject;
use super::elements::{Numbers, next, push, room_for};

/// What comes out when this is sent.
fn sent<S: EdgeSubject>(subject: &S, batch: RecordBatch) -> RecordBatch {
    let (mut sender, mut receiver) = subject.open::<RecordBatch>(room_for(1));
    let (schema, rows) = (batch.schema(), batch.num_rows());
    push(&mut sender, StreamElement::Data(batch));
    let mut arrived = Vec::new();
    // Boundaries of batches carry no meaning: it may come in pieces.
    while arrived.is_empty() || arrived.iter().map(RecordBatch::num_rows).sum::<usize>() < rows {
        match next(&mut receiver) {
            StreamElement::Data(batch) => arrived.push(batch),
            other => panic!("data, not {other:?}"),
        }
    }
    match (arrived.len(), schema.fields().is_empty()) {
        (1, _) => arrived.remove(0),
        (_, true) => without_columns(arrived.iter().map(RecordBatch::num_rows).sum()),
        (_, false) => concat_batches(&schema, &arrived).unwrap(),
    }
}

fn without_columns(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Arc::new(Schema::empty());
    RecordBatch::try_new_with_options(schema, vec![], &options).unwrap()
}

/// The count of rows is not that of the first column.
pub fn a_batch_without_columns_keeps_its_rows<S: EdgeSubject>(subject: &S) {
    for rows in [5, 0, 1 << 20] {
        let batch = sent(subject, without_columns(rows));
        assert_eq!((batch.num_rows(), batch.num_columns()), (rows, 0));
        assert_eq!(batch.rows(), rows);
    }
    let (mut sender, _receiver) = subject.open::<RecordBatch>(room_for(1));
    push(&mut sender, StreamElement::Data(without_columns(5)));
    assert_eq!(sender.metrics().rows, 5);
}

/// Also an empty key, an empty name, and metadata of a field.
pub fn schema_metadata_and_repeated_names_are_kept<S: EdgeSubject>(subject: &S) {
    let pairs = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
        let own = |&(key, value): &(&str, &str)| (key.to_string(), value.to_string());
        pairs.iter().map(own).collect()
    };
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let fields = vec![
        field("a").with_metadata(pairs(&[("unit", "ms")])),
        field("a"),
        field(""),
    ];
    let metadata = pairs(&[("origin", "t1"), ("", "empty key")]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let column = |values: [i64; 2]| Arc::new(Int64Array::from(values.to_vec())) as _;
    let columns = vec![column([1, 2]), column([3, 4]), column([5, 6])];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let arrived = sent(subject, batch.clone());
    assert_eq!(arrived.schema(), schema);
    assert_eq!(arrived, batch);
    let second = arrived.column(1).as_any().downcast_ref::<Int64Array>();
    assert_eq!(
        second.unwrap().values(),
        &[3, 4],
        "names repeat, positions do not"
    );
}

/// They count as elements, with and without columns.
pub fn empty_batches_are_delivered<S: EdgeSubject>(subject: &S) {
    let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
    let arrived = sent(subject, RecordBatch::new_empty(Arc::new(schema)));
    assert_eq!((arrived.num_rows(), arrived.num_columns()), (0, 1));

    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(4));
    for _ in 0..3 {
        push(&mut sender, StreamElement::Data(Rows::new()));
    }
    for _ in 0..3 {
        assert_eq!(next(&mut receiver), StreamElement::Data(Rows::new()));
    }
}

/// Every time is legal, and so is none.
pub fn event_times_of_rows_are_kept<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Rows<String>>(room_for(1));
    let times = [Some(EVENT_TIME_MIN), None, Some(-1), Some(EVENT_TIME_MAX)];
    let rows: Rows<String> = times
        .into_iter()
        .map(|event_time| Row {
            value: format!("{event_time:?}"),
            event_time,
        })
        .collect();
    push(&mut sender, StreamElement::Data(rows.clone()));
    assert_eq!(next(&mut receiver), StreamElement::Data(rows));
}

/// Whatever an edge moves at a time: a row can't be cut.
pub fn a_row_of_mebibytes_arrives_as_it_was<S: EdgeSubject>(subject: &S) {
    let text: String = (0..400_000).map(|n| format!("{n:08}")).collect();
    let values = StringArray::from_iter_values(["before", &text, "behind"]);
    let batch = RecordBatch::try_from_iter([("value", Arc::new(values) as _)]).unwrap();
    assert_eq!(sent(subject, batch.clone()), batch);
}

/// Nulls and slices included.
pub fn a_batch_arrives_value_by_value<S: EdgeSubject>(subject: &S) {
    let schema = Schema::new(vec![
        Field::new("event_time", DataType::Int64, true),
        Field::new("value", DataType::Utf8, false),
    ]);
    let times = Int64Array::from(vec![Some(i64::MIN), None, Some(0), Some(i64::MAX)]);
    let values = StringArray::from(vec!["", "a\n\t\0", "\u{1f980}", "z"]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(times), Arc::new(values)]);
    let batch = batch.unwrap();
    assert_eq!(sent(subject, batch.clone()), batch);
    assert_eq!(sent(subject, batch.slice(1, 2)), batch.slice(1, 2));
    assert_eq!(sent(subject, batch.slice(4, 0)), batch.slice(4, 0));
}
