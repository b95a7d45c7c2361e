//! Results of windows that are not complete.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexSet;

use super::frontier::Frontier;
use crate::clock::ProcessingTime;
use crate::element::EventTime;
use crate::operators::aggregate::FastHash;

/// When windows give results before they are complete: those so far, in full, of the keys for
/// which rows have come.
///
/// Without either they give none. The last result of a window and key is the right one: a
/// consumer that keeps one replaces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyResults {
    /// So long after a row, in milliseconds of processing time.
    pub every_ms: Option<u64>,
    /// After the batch with which so many rows of a key, or more, have come into a window since
    /// its last result for that reason; at least 1.
    pub every_rows: Option<u64>,
}

/// Windows by number, each with its keys that are to give results.
pub(super) type KeysOfWindows = BTreeMap<i128, Vec<u32>>;

/// What has come into windows that are not complete since they gave results.
pub(super) struct Early {
    asked: EarlyResults,
    /// By the start of their pane; a pane's windows are worked out when they are asked for.
    changed: BTreeMap<EventTime, ChangedKeys>,
    due_at: Option<ProcessingTime>,
    rows: BTreeMap<i128, HashMap<u32, u64, FastHash>>,
}

/// Keys in the order in which they changed.
type ChangedKeys = IndexSet<u32, FastHash>;

impl Early {
    pub(super) fn new(asked: EarlyResults) -> Self {
        Self {
            asked,
            changed: BTreeMap::new(),
            due_at: None,
            rows: BTreeMap::new(),
        }
    }

    /// Rows of these times and keys have come. Returns what is due by their number.
    pub(super) fn add(
        &mut self,
        times: &[EventTime],
        keys: &[u32],
        frontier: &Frontier,
        now: ProcessingTime,
    ) -> KeysOfWindows {
        if let Some(every_ms) = self.asked.every_ms {
            for (time, key) in times.iter().zip(keys) {
                let pane = frontier.assigner().pane_of(*time).start;
                self.changed.entry(pane).or_default().insert(*key);
            }
            self.due_at
                .get_or_insert(now.saturating_add_unsigned(every_ms));
        }
        let mut due = KeysOfWindows::new();
        let Some(every_rows) = self.asked.every_rows else {
            return due;
        };
        for (time, key) in times.iter().zip(keys) {
            for number in frontier.open_numbers(*time) {
                let rows = self.rows.entry(number).or_default().entry(*key);
                let rows = rows.or_default();
                *rows += 1;
                if *rows == every_rows {
                    due.entry(number).or_default().push(*key);
                }
            }
        }
        for number in due.keys() {
            if let Some(rows) = self.rows.get_mut(number) {
                rows.retain(|_, rows| *rows < every_rows);
            }
        }
        due
    }

    /// When [`Early::fire`] is due.
    pub(super) const fn due_at(&self) -> Option<ProcessingTime> {
        self.due_at
    }

    /// What has changed since the last call.
    pub(super) fn fire(&mut self, frontier: &Frontier) -> KeysOfWindows {
        self.due_at = None;
        let mut due: BTreeMap<i128, ChangedKeys> = BTreeMap::new();
        for (pane, changed) in std::mem::take(&mut self.changed) {
            for number in frontier.open_numbers(pane) {
                due.entry(number).or_default().extend(&changed);
            }
        }
        due.into_iter()
            .map(|(number, changed)| (number, changed.into_iter().collect()))
            .collect()
    }

    /// Windows have become complete: nothing is early in them.
    pub(super) fn forget_complete(&mut self, frontier: &Frontier) {
        let is_complete = |pane: EventTime| frontier.open_numbers(pane).next().is_none();
        while let Some(first) = self.changed.first_entry()
            && is_complete(*first.key())
        {
            first.remove();
        }
        if self.changed.is_empty() {
            self.due_at = None;
        }
        while let Some(first) = self.rows.first_entry()
            && frontier.is_complete(*first.key())
        {
            first.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;
    use crate::element::Watermark;
    use crate::operators::AggregateSpec;
    use crate::operators::testing::{Harness, Random};
    use crate::operators::window::{WindowAggregate, WindowAssigner, WindowSpec};

    /// Event time and key.
    type Input = (i64, i64);
    /// The last time of the window, key, count.
    type Output = (i64, i64, i64);
    type Windows = Harness<WindowAggregate, RecordBatch>;

    fn batch(rows: &[Input]) -> RecordBatch {
        let field = |name| Field::new(name, DataType::Int64, true);
        let schema = Schema::new(vec![field("event_time"), field("key")]);
        let times = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
        let keys = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
        let columns: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(keys)];
        RecordBatch::try_new(Arc::new(schema), columns).expect("columns and schema agree")
    }

    fn windows(assigner: WindowAssigner, early: EarlyResults, room: usize) -> Windows {
        let spec = WindowSpec {
            assigner,
            key_columns: vec![1],
            aggregates: vec![AggregateSpec::count("count")],
            allowed_lateness_ms: 0,
            early,
            late: None,
        };
        let operator = WindowAggregate::new(batch(&[]).schema(), spec);
        Harness::new(operator.expect("a fitting spec"), room)
    }

    fn told(harness: &mut Windows) -> Vec<Output> {
        let mut results = Vec::new();
        for batch in harness.take_data() {
            let cell = |at: usize, row| batch.column(at).as_primitive::<Int64Type>().value(row);
            results.extend((0..batch.num_rows()).map(|at| (cell(0, at), cell(3, at), cell(4, at))));
        }
        results
    }

    /// The rows of each window and key that is not complete, and those since its last result.
    #[derive(Default)]
    struct Model {
        rows: BTreeMap<(i64, i64), (i64, i64)>,
    }

    impl Model {
        fn add(&mut self, assigner: WindowAssigner, rows: &[Input], watermark: i64) {
            for &(time, key) in rows {
                for window in assigner.windows_of(time) {
                    if window.last() > watermark {
                        let (all, new) = self.rows.entry((window.last(), key)).or_default();
                        *all += 1;
                        *new += 1;
                    }
                }
            }
        }

        /// What has as many new rows.
        fn fire(&mut self, new_min: i64) -> Vec<Output> {
            let mut results = Vec::new();
            for ((last, key), (all, new)) in &mut self.rows {
                if *new >= new_min {
                    *new = 0;
                    results.push((*last, *key, *all));
                }
            }
            results
        }

        fn complete(&mut self, watermark: i64) -> Vec<Output> {
            let later = self.rows.split_off(&(watermark, i64::MAX));
            let complete = std::mem::replace(&mut self.rows, later).into_iter();
            complete
                .map(|((last, key), (all, _))| (last, key, all))
                .collect()
        }
    }

    #[test]
    fn open_windows_tell_of_what_is_new_and_every_window_tells_its_last_result() {
        let mut random = Random::new("open_windows_tell_of_what_is_new");
        for round in 0..40 {
            let assigner = WindowAssigner::sliding(10, random.between(3, 11), 0).expect("windows");
            let (by_time, every) = (round % 2 == 0, random.below(4) + 1);
            let early = EarlyResults {
                every_ms: by_time.then_some(100),
                every_rows: (!by_time).then_some(every),
            };
            let mut wide = windows(assigner, early, usize::MAX);
            let mut tight = windows(assigner, early, 1);
            let mut model = Model::default();
            let (mut around, mut watermark, mut now) = (0, i64::MIN, 1000);
            wide.time::<RecordBatch>(now);
            tight.time::<RecordBatch>(now);
            for step in 0..60 {
                around += random.between(0, 4);
                let rows: Vec<Input> = (0..random.below(6))
                    .map(|_| (around + random.between(-6, 8), random.between(0, 3)))
                    .collect();
                model.add(assigner, &rows, watermark);
                wide.push(batch(&rows));
                tight.push(batch(&rows));
                let mut expected = match by_time {
                    true => Vec::new(),
                    false => model.fire(every as i64),
                };
                if random.below(3) == 0 {
                    // The first row since then came at `now` or later.
                    now += 200;
                    wide.time::<RecordBatch>(now);
                    tight.time::<RecordBatch>(now);
                    if by_time {
                        expected.extend(model.fire(1));
                    }
                }
                if random.below(3) == 0 || step == 59 {
                    watermark = if step == 59 { i64::MAX } else { around - 6 };
                    wide.watermark::<RecordBatch>(Watermark::active(watermark));
                    tight.watermark::<RecordBatch>(Watermark::active(watermark));
                    expected.extend(model.complete(watermark));
                }
                let mut results = told(&mut wide);
                assert_eq!(told(&mut tight), results);
                results.sort_unstable();
                expected.sort_unstable();
                assert_eq!(results, expected);
            }
            let early = &wide.operator.early;
            assert!(early.changed.is_empty() && early.rows.is_empty());
            assert_eq!(early.due_at(), None, "no timer is left");
        }
    }

    #[test]
    fn a_result_by_time_waits_that_long_after_the_first_new_row() {
        let assigner = WindowAssigner::tumbling(100, 0).expect("windows");
        let early = EarlyResults {
            every_ms: Some(50),
            every_rows: None,
        };
        let mut harness = windows(assigner, early, 1);
        harness.time::<RecordBatch>(1000);
        harness.push(batch(&[(5, 1)]));
        harness.time::<RecordBatch>(1040);
        harness.push(batch(&[(6, 1)]));
        assert_eq!(told(&mut harness), []);
        harness.time::<RecordBatch>(1050);
        assert_eq!(told(&mut harness), [(99, 1, 2)]);
        harness.time::<RecordBatch>(2000);
        assert_eq!(told(&mut harness), [], "nothing is new");
        harness.watermark::<RecordBatch>(Watermark::active(99));
        assert_eq!(told(&mut harness), [(99, 1, 2)], "the last result comes");
    }
}
