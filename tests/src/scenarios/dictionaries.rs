//! B25: dictionaries that are replaced, that grow, are shared, and begin anew.

use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int8Array, ListArray, RecordBatch, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Int8Type};
use ringway::element::Barrier;

use super::{batch, receive, send, texts};
use crate::conformance::EdgeSubject;
use crate::conformance::elements::room_for;

fn values(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn coded(keys: &[i8], values: &ArrayRef) -> ArrayRef {
    let keys = Int8Array::from(keys.to_vec());
    Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::clone(values)))
}

/// One column with these keys into these values.
fn of(keys: &[i8], of: &[&str]) -> RecordBatch {
    batch(vec![coded(keys, &values(of))])
}

/// The receiver reads the second batch while it holds the first.
pub fn b25_a_batch_that_is_kept_is_not_changed_by_the_next_dictionary<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open(room_for(4));
    send(&mut sender, &of(&[0, 1], &["a", "b"]));
    let kept = receive(&mut receiver);
    send(&mut sender, &of(&[0, 1], &["x", "y"]));
    assert_eq!(texts(receive(&mut receiver).column(0)), ["x", "y"]);
    assert_eq!(texts(kept.column(0)), ["a", "b"]);
}

/// The keys of the first batch mean the same in the second.
pub fn b25_a_dictionary_that_grows_gives_the_right_values<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open(room_for(4));
    send(&mut sender, &of(&[0, 1], &["a", "b"]));
    send(&mut sender, &of(&[2, 0], &["a", "b", "c"]));
    send(&mut sender, &of(&[1, 1], &["a", "b"]));
    for expected in [["a", "b"], ["c", "a"], ["b", "b"]] {
        assert_eq!(texts(receive(&mut receiver).column(0)), expected);
    }
}

/// What is replaced in one column is not in the other.
pub fn b25_columns_that_share_a_dictionary_may_part<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open(room_for(4));
    let (shared, other) = (values(&["a", "b"]), values(&["x", "y"]));
    let both =
        |one: &ArrayRef, two: &ArrayRef| batch(vec![coded(&[0, 1], one), coded(&[1, 0], two)]);
    send(&mut sender, &both(&shared, &shared));
    send(&mut sender, &both(&shared, &other));
    send(&mut sender, &both(&shared, &shared));
    for second in [["b", "a"], ["y", "x"], ["b", "a"]] {
        let arrived = receive(&mut receiver);
        assert_eq!(texts(arrived.column(0)), ["a", "b"]);
        assert_eq!(texts(arrived.column(1)), second);
    }
}

/// Which has not seen the batch that brought the dictionary to the first.
pub fn b25_a_second_receiver_gets_the_right_values<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open(room_for(4));
    let dictionary = values(&["a", "b"]);
    send(&mut sender, &batch(vec![coded(&[0, 1], &dictionary)]));
    let (mut to_second, mut second) = subject.open(room_for(4));
    let later = batch(vec![coded(&[1, 0, 1], &dictionary)]);
    send(&mut sender, &later);
    send(&mut to_second, &later);
    assert_eq!(texts(receive(&mut receiver).column(0)), ["a", "b"]);
    for receiver in [&mut receiver, &mut second] {
        assert_eq!(texts(receive(receiver).column(0)), ["b", "a", "b"]);
    }
}

/// It was cut after the first batch.
pub fn b25_the_next_edge_needs_nothing_of_one_that_was_lost<S: EdgeSubject>(subject: &S) {
    let dictionary = values(&["a", "b"]);
    let second = batch(vec![coded(&[1, 0], &dictionary)]);
    let (mut sender, mut receiver) = subject.open(room_for(4));
    send(&mut sender, &batch(vec![coded(&[0, 1], &dictionary)]));
    let kept = receive(&mut receiver);
    drop(receiver);
    drop(sender);
    let (mut sender, mut receiver) = subject.open(room_for(4));
    send(&mut sender, &second);
    assert_eq!(texts(receive(&mut receiver).column(0)), ["b", "a"]);
    assert_eq!(texts(kept.column(0)), ["a", "b"]);
}

/// One that is nested has a state of its own as well.
pub fn b25_a_dictionary_inside_of_a_list_is_replaced_too<S: EdgeSubject>(subject: &S) {
    let list = |of: &[&str]| {
        let items = coded(&[0, 1, 1], &values(of));
        let field = Arc::new(Field::new("item", items.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([2, 1]);
        batch(vec![Arc::new(ListArray::new(field, offsets, items, None))])
    };
    let (mut sender, mut receiver) = subject.open(room_for(4));
    send(&mut sender, &list(&["a", "b"]));
    send(&mut sender, &list(&["x", "y"]));
    let kept = receive(&mut receiver);
    assert_eq!(texts(receive(&mut receiver).column(0)), ["[x, y]", "[y]"]);
    assert_eq!(texts(kept.column(0)), ["[a, b]", "[b]"]);
}

/// As a checkpoint would save them.
pub fn b25_dictionaries_that_a_barrier_overtakes_are_peeked_as_they_are<S: EdgeSubject>(
    subject: &S,
) {
    let (mut sender, mut receiver) = subject.open(room_for(4));
    send(&mut sender, &of(&[0, 1], &["a", "b"]));
    send(&mut sender, &of(&[0, 1], &["x", "y"]));
    super::arrived(&receiver, 2);
    sender
        .try_push_priority(Barrier::unaligned(1))
        .expect("the first");
    let overtaken = super::overtaken(&mut receiver);
    let expected = [["a", "b"], ["x", "y"]];
    assert_eq!(overtaken.len(), expected.len());
    for (batch, expected) in overtaken.iter().zip(expected) {
        assert_eq!(texts(batch.column(0)), expected);
    }
    for expected in expected {
        assert_eq!(texts(receive(&mut receiver).column(0)), expected);
    }
}
