//! Windows whose results come when a user's own logic says so.

use std::collections::BTreeMap;
use std::hash::Hash;

use indexmap::IndexMap;

use super::aggregator::Aggregator;
use super::assigner::{Window, WindowAssigner};
use super::typed::WindowResult;
use crate::batch::{Row, Rows};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::aggregate::FastHash;
use crate::operators::gather::{Gather, Gathered, STEP_ITEMS_MAX};
use crate::operators::late::set_late_rows_aside;

/// What becomes of a key's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerAction {
    /// Nothing yet.
    Continue,
    /// It gives its result so far, and goes on from there.
    Fire,
    /// It gives its result so far, and begins anew.
    FireAndPurge,
}

/// Says when a window gives results.
///
/// ```
/// use ringway::batch::Row;
/// use ringway::operators::window::{Trigger, TriggerAction, Window};
///
/// /// Tells of large amounts at once.
/// struct Large;
///
/// impl Trigger<i64> for Large {
///     type State = ();
///
///     fn on_row(&self, (): &mut (), row: &Row<i64>, _: Window) -> TriggerAction {
///         match row.value {
///             1_000_000.. => TriggerAction::Fire,
///             _ => TriggerAction::Continue,
///         }
///     }
/// }
/// ```
pub trait Trigger<T>: Send {
    /// What is kept for each key and window; fresh for each.
    type State: Default + Send;

    /// A row has been taken into the window.
    fn on_row(&self, state: &mut Self::State, row: &Row<T>, window: Window) -> TriggerAction;

    /// The watermark has completed the window, which is forgotten after this. Unless this says
    /// otherwise, it gives its result.
    fn on_complete(&self, _state: &mut Self::State, _window: Window) -> TriggerAction {
        TriggerAction::Fire
    }
}

/// Gives the result so far after every so many rows of a key in a window, and the last when the
/// window is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EveryRows(
    /// How many rows; 1 at least.
    pub u64,
);

impl<T> Trigger<T> for EveryRows {
    type State = u64;

    fn on_row(&self, rows: &mut u64, _row: &Row<T>, _window: Window) -> TriggerAction {
        *rows += 1;
        if *rows < self.0 {
            return TriggerAction::Continue;
        }
        *rows = 0;
        TriggerAction::Fire
    }

    fn on_complete(&self, rows: &mut u64, _window: Window) -> TriggerAction {
        match rows {
            // The last result was told already.
            0 => TriggerAction::Continue,
            _ => TriggerAction::Fire,
        }
    }
}

/// Aggregates typed rows by key and event-time window, and gives results when a [`Trigger`]
/// says so, with the event time of the window's last instant.
///
/// A window without rows since it was purged gives none. Windows are forgotten when the
/// watermark completes them: rows of such windows only, and rows without an event time, go to
/// the late output.
///
/// ```
/// use ringway::operators::window::{Count, EveryRows, TriggeredWindow, WindowAssigner};
///
/// let daily = WindowAssigner::tumbling(86_400_000, 0)?;
/// let page = |page: &String| page.clone();
/// let visits = TriggeredWindow::new(page, daily, Count, EveryRows(100), None);
/// # let _ = visits;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct TriggeredWindow<T, K, A: Aggregator<T>, Key, Tr: Trigger<T>> {
    key: Key,
    assigner: WindowAssigner,
    aggregator: A,
    trigger: Tr,
    late: Option<SideTag<Rows<T>>>,
    by_last: BTreeMap<EventTime, LiveWindow<K, A::Accumulator, Tr::State>>,
    watermark: Option<EventTime>,
    completing: Option<Completing<K, A::Accumulator, Tr::State>>,
    input: std::vec::IntoIter<Row<T>>,
    output: Rows<WindowResult<K, A::Result>>,
    advancing: Option<Watermark>,
    counts: RowCounts,
}

/// A complete window and the keys that are still to be asked about.
type Completing<K, S, G> = (Window, indexmap::map::IntoIter<K, LiveKey<S, G>>);

/// The keys of a window, in the order in which they came.
struct LiveWindow<K, S, G> {
    window: Window,
    keys: IndexMap<K, LiveKey<S, G>, FastHash>,
}

struct LiveKey<S, G> {
    /// None when it was purged and no row has come since.
    state: Option<S>,
    trigger: G,
}

impl<T, K, A, Key, Tr> TriggeredWindow<T, K, A, Key, Tr>
where
    K: Eq + Hash + Clone,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K,
    Tr: Trigger<T>,
{
    /// An operator that computes `aggregator` of the values of each `key` and window, and gives
    /// results when `trigger` says so.
    pub fn new(
        key: Key,
        assigner: WindowAssigner,
        aggregator: A,
        trigger: Tr,
        late: Option<SideTag<Rows<T>>>,
    ) -> Self {
        Self {
            key,
            assigner,
            aggregator,
            trigger,
            late,
            by_last: BTreeMap::new(),
            watermark: None,
            completing: None,
            input: Vec::new().into_iter(),
            output: Rows::new(),
            advancing: None,
            counts: RowCounts::default(),
        }
    }

    /// Takes a row that is not late into its windows.
    fn add(&mut self, row: &Row<T>) -> Result<(), OperatorError> {
        let Some(time) = row.event_time else {
            return Ok(());
        };
        let key = (self.key)(&row.value);
        for window in self.assigner.windows_of(time) {
            if Some(window.last()) <= self.watermark {
                continue;
            }
            let live = self
                .by_last
                .entry(window.last())
                .or_insert_with(|| LiveWindow {
                    window,
                    keys: IndexMap::default(),
                });
            let live = live.key_mut(&key);
            let state = live.state.get_or_insert_with(|| self.aggregator.create());
            self.aggregator.add(state, &row.value);
            let action = self.trigger.on_row(&mut live.trigger, row, window);
            let result = live.act(action, &key, window, &self.aggregator)?;
            self.output.extend(result);
        }
        Ok(())
    }

    /// Does the next thing there is to do; returns false when there is nothing.
    fn go_on(&mut self) -> Result<bool, OperatorError> {
        if let Some(row) = self.input.next() {
            self.add(&row)?;
            return Ok(true);
        }
        if let Some((window, keys)) = &mut self.completing {
            let window = *window;
            let Some((key, mut live)) = keys.next() else {
                self.completing = None;
                return Ok(true);
            };
            let action = self.trigger.on_complete(&mut live.trigger, window);
            let result = live.act(action, &key, window, &self.aggregator)?;
            self.output.extend(result);
            return Ok(true);
        }
        match self.by_last.first_entry() {
            Some(first) if Some(*first.key()) <= self.watermark => {
                let live = first.remove();
                self.completing = Some((live.window, live.keys.into_iter()));
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

impl<K: Eq + Hash + Clone, S, G: Default> LiveWindow<K, S, G> {
    fn key_mut(&mut self, key: &K) -> &mut LiveKey<S, G> {
        let at = match self.keys.get_index_of(key) {
            Some(at) => at,
            None => {
                let live = LiveKey {
                    state: None,
                    trigger: G::default(),
                };
                self.keys.insert_full(key.clone(), live).0
            }
        };
        &mut self.keys[at]
    }
}

/// A result, if the window gives one.
type Fired<K, R> = Option<Row<WindowResult<K, R>>>;

impl<S, G> LiveKey<S, G> {
    fn act<K: Clone, T, A: Aggregator<T, Accumulator = S>>(
        &mut self,
        action: TriggerAction,
        key: &K,
        window: Window,
        aggregator: &A,
    ) -> Result<Fired<K, A::Result>, OperatorError> {
        let state = match action {
            TriggerAction::Continue => None,
            TriggerAction::Fire | TriggerAction::FireAndPurge => self.state.as_ref(),
        };
        let Some(state) = state else {
            return Ok(None);
        };
        let value = aggregator.result(state)?;
        if action == TriggerAction::FireAndPurge {
            self.state = None;
        }
        let key = key.clone();
        let result = WindowResult { key, window, value };
        Ok(Some(Row::at(window.last(), result)))
    }
}

impl<T, K, A, Key, Tr> Gather for TriggeredWindow<T, K, A, Key, Tr>
where
    T: Clone + Send + 'static,
    K: Eq + Hash + Clone + Send + 'static,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K + Send,
    Tr: Trigger<T>,
{
    type In = Rows<T>;
    type Out = Rows<WindowResult<K, A::Result>>;

    fn take_in(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Self::Out>,
    ) -> Result<(), OperatorError> {
        let (assigner, watermark) = (self.assigner, self.watermark);
        let is_late = |time: Option<EventTime>| {
            time.is_none_or(|time| Some(assigner.last_window(time).last()) <= watermark)
        };
        let rows = set_late_rows_aside(batch, is_late, self.late, &mut self.counts, out);
        self.input = rows.into_vec().into_iter();
        Ok(())
    }

    fn advance(&mut self, watermark: EventTime) {
        self.watermark = self.watermark.max(Some(watermark));
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        // Rows and keys may give no results, however many they are.
        for _ in 0..STEP_ITEMS_MAX {
            if self.output.len() >= BATCH_ROWS {
                return Ok(Gathered::Batch);
            }
            if !self.go_on()? {
                return Ok(Gathered::All);
            }
        }
        Ok(Gathered::Enough)
    }

    fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    fn build(&mut self) -> Result<Self::Out, OperatorError> {
        // A row may fire many windows, so there may be more than a batch.
        let mut rows = std::mem::take(&mut self.output).into_vec();
        if rows.len() > BATCH_ROWS {
            self.output = rows.split_off(BATCH_ROWS).into();
        }
        Ok(rows.into())
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::StreamElement;
    use crate::operator::Operator;
    use crate::operators::testing::{Harness, Random};
    use crate::operators::window::Count;

    type Value = (u8, i64);
    type Out = Rows<WindowResult<u8, u64>>;

    /// Fires at multiples of 5, and then purges at multiples of 10; silent at the end for odd
    /// keys.
    struct Fives;

    impl Trigger<Value> for Fives {
        type State = Option<u8>;

        fn on_row(&self, key: &mut Option<u8>, row: &Row<Value>, _: Window) -> TriggerAction {
            *key = Some(row.value.0);
            match row.value.1 {
                value if value % 10 == 0 => TriggerAction::FireAndPurge,
                value if value % 5 == 0 => TriggerAction::Fire,
                _ => TriggerAction::Continue,
            }
        }

        fn on_complete(&self, key: &mut Option<u8>, _: Window) -> TriggerAction {
            match key {
                Some(key) if *key % 2 == 1 => TriggerAction::Continue,
                _ => TriggerAction::Fire,
            }
        }
    }

    fn harness<Tr: Trigger<Value>>(
        assigner: WindowAssigner,
        trigger: Tr,
        room: usize,
    ) -> Harness<impl Operator<Rows<Value>, Out>, Out> {
        let key = |value: &Value| value.0;
        Harness::new(
            TriggeredWindow::new(key, assigner, Count, trigger, None),
            room,
        )
    }

    fn told(elements: Vec<StreamElement<Out>>) -> Vec<(i64, u8, u64)> {
        let rows = elements.into_iter().flat_map(|element| match element {
            StreamElement::Data(rows) => rows.into_vec(),
            _ => Vec::new(),
        });
        rows.map(|row| {
            assert_eq!(row.event_time, Some(row.value.window.last()));
            (row.value.window.last(), row.value.key, row.value.value)
        })
        .collect()
    }

    #[test]
    fn results_come_when_the_trigger_says_so() {
        let mut random = Random::new("results_come_when_the_trigger_says_so");
        for _ in 0..20 {
            let assigner = WindowAssigner::sliding(10, random.between(3, 11), 0).expect("windows");
            let mut wide = harness(assigner, Fives, usize::MAX);
            let mut tight = harness(assigner, Fives, 1);
            let mut model: BTreeMap<(i64, u8), u64> = BTreeMap::new();
            let (mut around, mut watermark) = (0, i64::MIN);
            for step in 0..80 {
                around += random.between(0, 4);
                let time = (random.below(9) > 0).then(|| around + random.between(-12, 8));
                let value = (random.below(3) as u8, random.between(0, 21));
                let mut expected = Vec::new();
                for window in time.into_iter().flat_map(|time| assigner.windows_of(time)) {
                    let last = window.last();
                    if last > watermark {
                        let count = model.entry((last, value.0)).or_default();
                        *count += 1;
                        if value.1 % 5 == 0 {
                            expected.push((last, value.0, *count));
                        }
                        if value.1 % 10 == 0 {
                            *count = 0;
                        }
                    }
                }
                let row = Row {
                    value,
                    event_time: time,
                };
                for harness in [&mut wide, &mut tight] {
                    harness.push(Rows::from(vec![row.clone()]));
                    harness.watermark::<Rows<Value>>(Watermark::idle(500));
                }
                let elements = wide.take();
                assert_eq!(tight.take(), elements);
                assert_eq!(told(elements), expected);

                watermark = if step == 79 { i64::MAX } else { around - 6 };
                wide.watermark::<Rows<Value>>(Watermark::active(watermark));
                tight.watermark::<Rows<Value>>(Watermark::active(watermark));
                let later = model.split_off(&(watermark, u8::MAX));
                let complete = std::mem::replace(&mut model, later);
                let expected: Vec<_> = complete
                    .into_iter()
                    .filter(|((_, key), count)| *key % 2 == 0 && *count > 0)
                    .map(|((last, key), count)| (last, key, count))
                    .collect();
                let elements = wide.take();
                assert_eq!(tight.take(), elements);
                let mut results = told(elements);
                results.sort_unstable();
                assert_eq!(results, expected);
            }
        }
    }

    #[test]
    fn every_so_many_rows_and_the_end_give_a_result() {
        let assigner = WindowAssigner::tumbling(100, 0).expect("windows");
        let mut harness = harness(assigner, EveryRows(2), 1);
        harness.push(Rows::from_iter((0..5).map(|n| Row::at(n, (1, n)))));
        harness.push(Rows::from_iter((100..104).map(|n| Row::at(n, (1, n)))));
        harness.watermark::<Rows<Value>>(Watermark::MAX);
        assert_eq!(
            told(harness.take()),
            [(99, 1, 2), (99, 1, 4), (199, 1, 2), (199, 1, 4), (99, 1, 5)]
        );
    }
}
