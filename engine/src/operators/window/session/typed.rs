//! Sessions over typed rows.

use std::hash::Hash;

use super::super::aggregator::Aggregator;
use super::super::typed::WindowResult;
use super::sessions::Sessions;
use crate::batch::{Row, Rows};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::SpecError;
use crate::operators::gather::{Gather, Gathered, STEP_ITEMS_MAX};
use crate::operators::late::emit_late_rows;
use crate::operators::state::Values;

/// Aggregates typed rows by key and session; follows the rules of
/// [`SessionAggregate`](super::SessionAggregate).
///
/// ```
/// use ringway::operators::window::{Count, KeyedSession};
///
/// let half_an_hour = 1_800_000;
/// let visits = KeyedSession::new(|user: &String| user.clone(), half_an_hour, Count, 0, None)?;
/// # let _ = visits;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct KeyedSession<T, K: Eq + Hash + Clone, A: Aggregator<T>, Key> {
    key: Key,
    aggregator: A,
    sessions: Sessions<Values<K>, A::Accumulator>,
    late: Option<SideTag<Rows<T>>>,
    output: Rows<WindowResult<K, A::Result>>,
    advancing: Option<Watermark>,
    counts: RowCounts,
}

impl<T, K, A, Key> KeyedSession<T, K, A, Key>
where
    K: Eq + Hash + Clone,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K,
{
    /// An operator that computes `aggregator` of the values of each `key` and session: rows
    /// less than `gap_ms` apart are in one.
    ///
    /// Sessions take in rows for `allowed_lateness_ms` of event time after their end; rows
    /// after that go to `late`, and are counted only when there is none.
    ///
    /// # Errors
    /// [`SpecError::SessionGap`]: the gap must be at least 1.
    pub fn new(
        key: Key,
        gap_ms: i64,
        aggregator: A,
        allowed_lateness_ms: u64,
        late: Option<SideTag<Rows<T>>>,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            key,
            aggregator,
            sessions: Sessions::new(gap_ms, allowed_lateness_ms)?,
            late,
            output: Rows::new(),
            advancing: None,
            counts: RowCounts::default(),
        })
    }

    /// Takes in the rows that are in time, and returns the others.
    fn add(&mut self, batch: Rows<T>) -> Rows<T> {
        let mut late = Rows::new();
        let aggregator = &self.aggregator;
        for row in batch {
            let Some(time) = row.event_time else {
                late.push(row);
                continue;
            };
            let key = (self.key)(&row.value);
            if let Some(state) = self.sessions.prolonged(&key, time) {
                aggregator.add(state, &row.value);
                continue;
            }
            let state = self.sessions.session_of(
                &key,
                time,
                || aggregator.create(),
                |into, from| aggregator.merge(into, &from),
            );
            match state {
                Some(state) => aggregator.add(state, &row.value),
                None => late.push(row),
            }
        }
        late
    }

    /// Live sessions.
    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        self.sessions.live()
    }
}

impl<T, K, A, Key> Gather for KeyedSession<T, K, A, Key>
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

    fn advance(&mut self, watermark: EventTime) {
        self.sessions.advance(watermark);
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        let mut budget = STEP_ITEMS_MAX;
        while self.output.len() < BATCH_ROWS {
            let Some(due) = self.sessions.next_due(&mut budget) else {
                return Ok(Gathered::within(budget));
            };
            if !due.has_result {
                continue;
            }
            let value = self.aggregator.result(due.state.get())?;
            let (key, window) = (due.key, due.window);
            let result = WindowResult { key, window, value };
            self.output.push(Row::at(window.last(), result));
        }
        Ok(Gathered::Batch)
    }

    fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    fn build(&mut self) -> Result<Self::Out, OperatorError> {
        Ok(std::mem::take(&mut self.output))
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(RowCounts {
            accepted_late_rows: self.sessions.accepted_late_rows(),
            ..self.counts
        })
    }
}
