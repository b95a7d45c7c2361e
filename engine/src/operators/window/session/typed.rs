//! Sessions over typed rows.

use std::hash::Hash;

use super::super::aggregator::Aggregator;
use super::super::typed::WindowResult;
use super::sessions::Sessions;
use crate::batch::{Row, Rows};
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Operator, Progress, SideTag};
use crate::operators::SpecError;
use crate::operators::state::Values;

/// Sessions that one step frees without a result, so that many do not hold the core.
const FREED_SESSIONS_MAX: usize = 65_536;

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
    late_rows: u64,
    untimed_rows: u64,
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
            late_rows: 0,
            untimed_rows: 0,
        })
    }

    /// Rows that came after the allowed lateness of what would be their session.
    pub const fn late_rows(&self) -> u64 {
        self.late_rows
    }

    /// Rows without an event time, which are in no session.
    pub const fn untimed_rows(&self) -> u64 {
        self.untimed_rows
    }

    /// Takes in the rows that are in time, and returns the others.
    fn add(&mut self, batch: Rows<T>) -> Rows<T> {
        let mut late = Rows::new();
        let aggregator = &self.aggregator;
        for row in batch {
            let Some(time) = row.event_time else {
                self.untimed_rows += 1;
                late.push(row);
                continue;
            };
            let key = (self.key)(&row.value);
            let state = self.sessions.session_of(
                &key,
                time,
                || aggregator.create(),
                |into, from| aggregator.merge(into, &from),
            );
            match state {
                Some(state) => aggregator.add(state, &row.value),
                None => {
                    self.late_rows += 1;
                    late.push(row);
                }
            }
        }
        late
    }

    /// Collects results until a batch is full; returns whether there is nothing left to do.
    fn fill(&mut self) -> Result<bool, OperatorError> {
        let mut budget = FREED_SESSIONS_MAX;
        while self.output.len() < BATCH_ROWS && budget > 0 {
            let Some(due) = self.sessions.next_due() else {
                return Ok(true);
            };
            if !due.has_result {
                budget -= 1;
                continue;
            }
            let value = self.aggregator.result(due.state.get())?;
            let (key, window) = (due.key, due.window);
            let result = WindowResult { key, window, value };
            self.output.push(Row::at(window.last(), result));
        }
        Ok(false)
    }

    /// Live sessions.
    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        self.sessions.live()
    }
}

impl<T, K, A, Key> Operator<Rows<T>, Rows<WindowResult<K, A::Result>>>
    for KeyedSession<T, K, A, Key>
where
    T: Clone + Send + 'static,
    K: Eq + Hash + Clone + Send + 'static,
    A: Aggregator<T>,
    Key: FnMut(&T) -> K + Send,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<WindowResult<K, A::Result>>>,
    ) -> Result<Progress, OperatorError> {
        let late = self.add(batch);
        if let Some(tag) = self.late {
            out.emit_side(tag, late);
        }
        self.resume(out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Rows<WindowResult<K, A::Result>>>,
    ) -> Result<Progress, OperatorError> {
        if !watermark.idle {
            self.sessions.advance(watermark.timestamp);
        }
        self.advancing = Some(watermark);
        self.resume(out)
    }

    fn resume(
        &mut self,
        out: &mut Emitter<'_, Rows<WindowResult<K, A::Result>>>,
    ) -> Result<Progress, OperatorError> {
        loop {
            let done = self.fill()?;
            if !self.output.is_empty() {
                if out.is_full() {
                    return Ok(Progress::More);
                }
                out.emit(std::mem::take(&mut self.output));
            } else if !done {
                return Ok(Progress::More);
            }
            if done {
                break;
            }
        }
        if let Some(watermark) = self.advancing.take() {
            out.watermark(watermark);
        }
        Ok(Progress::Done)
    }
}
