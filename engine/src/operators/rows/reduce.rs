//! A running result for each key.

use std::hash::Hash;

use crate::batch::{Row, Rows};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};
use crate::operators::state::KeyedState;

/// Folds each row into the value of its key, and emits the value after each row, with the
/// event time of that row.
///
/// The first value of a key is its own first result. Keys are kept for ever.
#[derive(Clone, Debug)]
pub struct KeyedReduce<K, T, Key, Reduce> {
    key: Key,
    reduce: Reduce,
    values: KeyedState<K, T>,
}

impl<K: Eq + Hash, T, Key, Reduce> KeyedReduce<K, T, Key, Reduce> {
    /// An operator that folds each value into that of its `key` with `reduce`.
    pub fn new(key: Key, reduce: Reduce) -> Self {
        Self {
            key,
            reduce,
            values: KeyedState::new(),
        }
    }
}

impl<K, T, Key, Reduce> Operator<Rows<T>, Rows<T>> for KeyedReduce<K, T, Key, Reduce>
where
    K: Eq + Hash + Send,
    T: Clone + Send + 'static,
    Key: FnMut(&T) -> K + Send,
    Reduce: FnMut(&mut T, T) + Send,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        let mut reduced = Rows::with_capacity(batch.len());
        for Row { value, event_time } in batch {
            let key = (self.key)(&value);
            let result = match self.values.value_mut(&key) {
                Some(kept) => {
                    (self.reduce)(kept, value);
                    kept.clone()
                }
                None => self.values.value_or_insert_with(key, || value).clone(),
            };
            reduced.push(Row {
                value: result,
                event_time,
            });
        }
        out.emit(reduced);
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::Harness;

    #[test]
    fn each_row_gives_the_running_result_of_its_key() {
        let sum = KeyedReduce::new(
            |value: &(char, i64)| value.0,
            |kept: &mut (char, i64), next: (char, i64)| kept.1 += next.1,
        );
        let mut harness: Harness<_, Rows<(char, i64)>> = Harness::new(sum, 1);
        harness.push(Rows::from(vec![
            Row::at(1, ('a', 1)),
            Row::at(2, ('b', 10)),
            Row::at(3, ('a', 2)),
        ]));
        harness.push(Rows::from(vec![Row::untimed(('a', 4))]));
        let rows: Vec<_> = harness.take_data().into_iter().flatten().collect();
        assert_eq!(
            rows,
            vec![
                Row::at(1, ('a', 1)),
                Row::at(2, ('b', 10)),
                Row::at(3, ('a', 3)),
                Row::untimed(('a', 7)),
            ]
        );
    }
}
