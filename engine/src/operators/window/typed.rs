//! Aggregates by key and window over typed rows.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::Hash;

use indexmap::map::IntoIter;
use indexmap::{IndexMap, IndexSet};

use super::aggregator::Aggregator;
use super::assigner::{Window, WindowAssigner};
use super::frontier::Frontier;
use crate::batch::{Row, Rows};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::aggregate::FastHash;
use crate::operators::gather::{Gather, Gathered, STEP_ITEMS_MAX};
use crate::operators::late::emit_late_rows;

/// The result of one key in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowResult<K, R> {
    /// The key.
    pub key: K,
    /// The window.
    pub window: Window,
    /// What was computed of its values.
    pub value: R,
}

/// Aggregates typed rows by key and event-time window; the results have the event time of
/// the window's last instant.
///
/// It follows the rules of [`WindowAggregate`](super::WindowAggregate): results when the
/// watermark reaches the window's last event time, windows by their end, the keys of a
/// window as they were first seen in its earliest part; rows within the allowed lateness
/// give full results anew, once a batch; later rows and rows without an event time go to
/// the late output.
///
/// ```
/// use ringway::operators::window::{Count, Extreme, KeyedWindow, Mean, WindowAssigner};
///
/// struct Flight { carrier: String, delay: i64 }
///
/// let hourly = WindowAssigner::tumbling(3_600_000, 0)?;
/// let delay = |flight: &Flight| flight.delay;
/// let delays = KeyedWindow::new(
///     |flight: &Flight| flight.carrier.clone(),
///     hourly,
///     (Count, (Mean(delay), Extreme::max(delay))),
///     0,
///     None,
/// );
/// # let _ = delays;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct KeyedWindow<T, K, A: Aggregator<T>, Key> {
    key: Key,
    aggregator: A,
    frontier: Frontier,
    late: Option<SideTag<Rows<T>>>,
    panes: BTreeMap<EventTime, LivePane<K, A::Accumulator>>,
    /// What is left of panes that are past.
    expired: Vec<IntoIter<K, A::Accumulator>>,
    updates: VecDeque<(i128, Vec<K>)>,
    firing: Option<(Window, std::vec::IntoIter<K>)>,
    advancing: Option<Watermark>,
    output: Rows<WindowResult<K, A::Result>>,
    counts: RowCounts,
}

/// The next result of a window, if one is due.
type NextResult<K, R> = Option<Row<WindowResult<K, R>>>;

/// The accumulators of a pane, in the order in which their keys came.
struct LivePane<K, A> {
    last: EventTime,
    accumulators: IndexMap<K, A, FastHash>,
}

impl<T, K, A, Key> KeyedWindow<T, K, A, Key>
where
    K: Eq + Hash + Clone,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K,
{
    /// An operator that computes `aggregator` of the values of each `key` and window.
    ///
    /// Windows take in rows for `allowed_lateness_ms` of event time after their end; rows
    /// after that go to `late`, and are counted only when there is none.
    pub fn new(
        key: Key,
        assigner: WindowAssigner,
        aggregator: A,
        allowed_lateness_ms: u64,
        late: Option<SideTag<Rows<T>>>,
    ) -> Self {
        Self {
            key,
            aggregator,
            frontier: Frontier::new(assigner, allowed_lateness_ms),
            late,
            panes: BTreeMap::new(),
            expired: Vec::new(),
            updates: VecDeque::new(),
            firing: None,
            advancing: None,
            output: Rows::new(),
            counts: RowCounts::default(),
        }
    }

    /// Takes in the rows that are in time, and returns the others.
    fn add(&mut self, batch: Rows<T>) -> Rows<T> {
        let mut late = Rows::new();
        let mut changed: BTreeMap<i128, Vec<K>> = BTreeMap::new();
        let mut seen = HashSet::new();
        for row in batch {
            let time = match row.event_time {
                Some(time) if !self.frontier.is_late(Some(time)) => time,
                _ => {
                    late.push(row);
                    continue;
                }
            };
            let key = (self.key)(&row.value);
            let mut is_late = false;
            for number in self.frontier.reopened_by(time) {
                is_late = true;
                if seen.insert((number, key.clone())) {
                    changed.entry(number).or_default().push(key.clone());
                }
            }
            self.counts.accepted_late_rows += u64::from(is_late);
            let pane = self.frontier.assigner().pane_of(time);
            let live = self.panes.entry(pane.start).or_insert_with(|| LivePane {
                last: pane.last,
                accumulators: IndexMap::default(),
            });
            let accumulator = live.accumulators.entry(key);
            let accumulator = accumulator.or_insert_with(|| self.aggregator.create());
            self.aggregator.add(accumulator, &row.value);
        }
        self.updates.extend(changed);
        late
    }

    /// The next result, if one is due.
    fn next_result(&mut self) -> Result<NextResult<K, A::Result>, OperatorError> {
        loop {
            if let Some((window, keys)) = &mut self.firing {
                let window = *window;
                if let Some(key) = keys.next() {
                    let value = self.combine(window, &key)?;
                    let result = WindowResult { key, window, value };
                    return Ok(Some(Row::at(window.last(), result)));
                }
                self.firing = None;
            }
            let Some((window, keys)) = self.next_firing() else {
                return Ok(None);
            };
            self.firing = Some((window, keys.into_iter()));
        }
    }

    fn next_firing(&mut self) -> Option<(Window, Vec<K>)> {
        if let Some((number, keys)) = self.updates.pop_front() {
            return Some((self.frontier.assigner().window(number), keys));
        }
        let watermark = self.advancing.filter(|watermark| !watermark.idle)?;
        let window = self
            .frontier
            .next_complete(watermark.timestamp, &self.panes)?;
        let live = self.panes.range(window.start()..=window.last());
        let keys = live.flat_map(|(_, pane)| pane.accumulators.keys());
        let keys: IndexSet<&K, FastHash> = keys.collect();
        Some((window, keys.into_iter().cloned().collect()))
    }

    fn combine(&self, window: Window, key: &K) -> Result<A::Result, OperatorError> {
        let mut parts = self
            .panes
            .range(window.start()..=window.last())
            .filter_map(|(_, pane)| pane.accumulators.get(key));
        if self.frontier.assigner().is_tumbling() {
            let only = parts.next().expect("a window that fires has the key");
            return self.aggregator.result(only);
        }
        let mut combined = self.aggregator.create();
        parts.for_each(|part| self.aggregator.merge(&mut combined, part));
        self.aggregator.result(&combined)
    }

    fn advanced(&mut self, watermark: EventTime) {
        self.frontier.advance(watermark);
        while let Some(first) = self.panes.first_entry() {
            if Some(first.get().last) > self.frontier.late_through() {
                return;
            }
            self.expired.push(first.remove().accumulators.into_iter());
        }
    }
}

impl<T, K, A, Key> Gather for KeyedWindow<T, K, A, Key>
where
    T: Clone + Send + 'static,
    K: Eq + Hash + Clone + Send + 'static,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K + Send,
{
    type In = Rows<T>;
    type Out = Rows<WindowResult<K, A::Result>>;

    fn take_in(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Self::Out>,
    ) -> Result<(), OperatorError> {
        let late = self.add(batch);
        emit_late_rows(late, self.late, &mut self.counts, out);
        Ok(())
    }

    fn advance(&mut self, _watermark: EventTime) {
        // The windows that it completes fire one after the other, and then it has come.
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        while self.output.len() < BATCH_ROWS {
            match self.next_result()? {
                Some(row) => self.output.push(row),
                None => return Ok(Gathered::All),
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

    fn passed_on(&mut self, watermark: Watermark) -> Watermark {
        if !watermark.idle {
            self.advanced(watermark.timestamp);
        }
        watermark
    }

    fn free_some(&mut self) -> Result<bool, OperatorError> {
        let mut budget = STEP_ITEMS_MAX;
        while let Some(expired) = self.expired.last_mut() {
            budget -= expired.take(budget).count();
            if budget == 0 {
                return Ok(false);
            }
            self.expired.pop();
        }
        Ok(true)
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests;
