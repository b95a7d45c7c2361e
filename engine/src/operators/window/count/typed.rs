//! Windows of so many rows of a key.

use std::hash::Hash;

use indexmap::IndexMap;
use indexmap::map::IntoIter;

use super::super::aggregator::Aggregator;
use crate::batch::{Row, Rows};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts};
use crate::operators::aggregate::FastHash;
use crate::operators::gather::{Gather, Gathered};

/// The result of one key over so many of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountResult<K, R> {
    /// The key.
    pub key: K,
    /// Which window of the key this is, from 0.
    pub number: u64,
    /// Rows in it: as many as asked for, or fewer in the last of a key when the stream ends.
    pub rows: u64,
    /// What was computed of its values.
    pub value: R,
}

/// Aggregates typed rows by key in windows of `rows_max` rows: the first so many rows of a key,
/// the next so many, and so on, in the order in which they come.
///
/// A window's result is emitted with its last row; its event time is the highest in the window.
/// When the stream ends, windows that are not full give their results, keys in the order in
/// which they were first seen. Watermarks matter to none of this.
///
/// ```
/// use ringway::operators::window::{CountWindow, Mean};
///
/// type Reading = (u8, f64);
/// let mean = Mean(|reading: &Reading| reading.1);
/// let of_each_hundred = CountWindow::new(|reading: &Reading| reading.0, 100, mean);
/// # let _ = of_each_hundred;
/// ```
pub struct CountWindow<T, K, A: Aggregator<T>, Key> {
    key: Key,
    rows_max: u64,
    aggregator: A,
    windows: IndexMap<K, Filling<A::Accumulator>, FastHash>,
    input: std::vec::IntoIter<Row<T>>,
    ending: IntoIter<K, Filling<A::Accumulator>>,
    output: Rows<CountResult<K, A::Result>>,
    advancing: Option<Watermark>,
}

/// The result of a window that has a row.
type ResultRow<K, R> = Option<Row<CountResult<K, R>>>;

/// The window of a key that is not full.
struct Filling<S> {
    number: u64,
    rows: u64,
    latest: Option<EventTime>,
    /// None between two windows.
    state: Option<S>,
}

impl<T, K, A, Key> CountWindow<T, K, A, Key>
where
    K: Eq + Hash + Clone,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K,
{
    /// An operator that computes `aggregator` of every `rows_max` values of each `key`.
    ///
    /// # Panics
    /// When `rows_max` is 0.
    pub fn new(key: Key, rows_max: u64, aggregator: A) -> Self {
        assert!(rows_max > 0, "a window has a row");
        Self {
            key,
            rows_max,
            aggregator,
            windows: IndexMap::default(),
            input: Vec::new().into_iter(),
            ending: IntoIter::default(),
            output: Rows::new(),
            advancing: None,
        }
    }

    fn add(&mut self, row: &Row<T>) -> Result<(), OperatorError> {
        let entry = self.windows.entry((self.key)(&row.value));
        let at = entry.index();
        entry.or_default();
        let (key, window) = self.windows.get_index_mut(at).expect("it was added");
        let aggregator = &self.aggregator;
        let state = window.state.get_or_insert_with(|| aggregator.create());
        aggregator.add(state, &row.value);
        window.rows += 1;
        window.latest = window.latest.max(row.event_time);
        if window.rows == self.rows_max {
            let result = window.result(key, aggregator)?;
            self.output.extend(result);
            window.number += 1;
            (window.rows, window.latest, window.state) = (0, None, None);
        }
        Ok(())
    }
}

impl<S> Filling<S> {
    fn result<K: Clone, T, A: Aggregator<T, Accumulator = S>>(
        &self,
        key: &K,
        aggregator: &A,
    ) -> Result<ResultRow<K, A::Result>, OperatorError> {
        let Some(state) = &self.state else {
            return Ok(None);
        };
        let value = CountResult {
            key: key.clone(),
            number: self.number,
            rows: self.rows,
            value: aggregator.result(state)?,
        };
        let event_time = self.latest;
        Ok(Some(Row { value, event_time }))
    }
}

impl<S> Default for Filling<S> {
    fn default() -> Self {
        Self {
            number: 0,
            rows: 0,
            latest: None,
            state: None,
        }
    }
}

impl<T, K, A, Key> Gather for CountWindow<T, K, A, Key>
where
    T: Clone + Send + 'static,
    K: Eq + Hash + Clone + Send + 'static,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K + Send,
{
    type In = Rows<T>;
    type Out = Rows<CountResult<K, A::Result>>;

    fn take_in(
        &mut self,
        batch: Rows<T>,
        _out: &mut Emitter<'_, Self::Out>,
    ) -> Result<(), OperatorError> {
        self.input = batch.into_vec().into_iter();
        Ok(())
    }

    fn advance(&mut self, _watermark: EventTime) {}

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        while self.output.len() < BATCH_ROWS {
            if let Some(row) = self.input.next() {
                self.add(&row)?;
            } else if let Some((key, window)) = self.ending.next() {
                self.output.extend(window.result(&key, &self.aggregator)?);
            } else {
                return Ok(Gathered::All);
            }
        }
        Ok(Gathered::Batch)
    }

    fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    fn build(&mut self) -> Result<Self::Out, OperatorError> {
        Ok(std::mem::take(&mut self.output))
    }

    fn end(&mut self) {
        self.ending = std::mem::take(&mut self.windows).into_iter();
    }

    fn row_counts(&self) -> Option<RowCounts> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::element::Watermark;
    use crate::operator::Operator;
    use crate::operators::testing::{Harness, Random};
    use crate::operators::window::{Count, Sum};

    type Out = Rows<CountResult<u64, i64>>;

    fn harness(rows_max: u64, room: usize) -> Harness<impl Operator<Rows<(u64, i64)>, Out>, Out> {
        let sum = Sum(|value: &(u64, i64)| value.1);
        Harness::new(
            CountWindow::new(|value: &(u64, i64)| value.0, rows_max, sum),
            room,
        )
    }

    #[test]
    fn every_so_many_rows_of_a_key_give_a_result_and_the_rest_at_the_end() {
        let mut random = Random::new("every_so_many_rows_of_a_key_give_a_result");
        for _ in 0..20 {
            let rows_max = random.below(5) + 1;
            let mut harness = harness(rows_max, 1);
            let mut all: BTreeMap<u64, Vec<Row<(u64, i64)>>> = BTreeMap::new();
            for _ in 0..20 {
                let rows: Vec<_> = (0..random.below(8))
                    .map(|_| Row {
                        value: (random.below(4), random.between(-9, 9)),
                        event_time: (random.below(4) > 0).then(|| random.between(-50, 50)),
                    })
                    .collect();
                for row in &rows {
                    all.entry(row.value.0).or_default().push(row.clone());
                }
                harness.push(Rows::from(rows));
                harness.watermark::<Rows<(u64, i64)>>(Watermark::idle(7));
            }
            let full: usize = all
                .values()
                .map(|rows| rows.len() / rows_max as usize)
                .sum();
            let mut told: Vec<_> = harness.take_data().into_iter().flatten().collect();
            assert_eq!(told.len(), full, "full windows do not wait");
            harness.end::<Rows<(u64, i64)>>();
            told.extend(harness.take_data().into_iter().flatten());
            told.sort_by_key(|row| (row.value.key, row.value.number));
            let mut expected = Vec::new();
            for (key, rows) in all {
                for (number, part) in rows.chunks(rows_max as usize).enumerate() {
                    expected.push(Row {
                        event_time: part.iter().filter_map(|row| row.event_time).max(),
                        value: CountResult {
                            key,
                            number: number as u64,
                            rows: part.len() as u64,
                            value: part.iter().map(|row| row.value.1).sum(),
                        },
                    });
                }
            }
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn very_many_windows_come_out_in_bounded_batches() {
        let many = 2 * BATCH_ROWS as u64 + 1;
        let run = |room| {
            let window = CountWindow::new(|n: &u64| n % 2, 1, Count);
            let mut harness: Harness<_, Rows<CountResult<u64, u64>>> = Harness::new(window, room);
            harness.push((0..many).map(Row::untimed).collect::<Rows<u64>>());
            harness.take_data()
        };
        assert_eq!(run(usize::MAX).len(), 3);
        assert_eq!(run(1), run(usize::MAX));
    }
}
