//! Joins of typed rows.

use std::hash::Hash;

use crate::batch::{Either, Row, Rows};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Operator, Progress, SideTag};
use crate::operators::state::Values;

use super::kind::JoinKind;
use super::state::{Entering, JoinOutput, JoinState};
use super::time::JoinTime;

/// Where the rows of either side go that come too late to join, or have no event time.
pub struct LateTags<L, R> {
    /// Those of the left side; without it they are counted only.
    pub left: Option<SideTag<Rows<L>>>,
    /// Those of the right side.
    pub right: Option<SideTag<Rows<R>>>,
}

/// Joins typed rows by key and event time; follows the rules of [`Join`](super::Join).
///
/// A function makes a value of each result: of both rows of a pair, or of one alone. The event
/// time of a pair is the later of both, that of a row alone its own, and in a join by window
/// the last of the window.
pub struct KeyedJoin<K: Eq + Hash + Clone, L, R, O, KL, KR, F> {
    kind: JoinKind,
    time: JoinTime,
    left_key: KL,
    right_key: KR,
    late: LateTags<L, R>,
    state: JoinState<Values<K>, L, R>,
    joined: Joined<O, F>,
    entering: Option<Either<EnteringRows<K, L>, EnteringRows<K, R>>>,
    advancing: Option<Watermark>,
    late_rows: u64,
    untimed_rows: u64,
}

struct EnteringRows<K, T> {
    rows: std::vec::IntoIter<Row<T>>,
    row: Option<Entering<K, T>>,
}

struct Joined<O, F> {
    rows: Rows<O>,
    join: F,
}

impl<L, R, O, F: FnMut(Option<&L>, Option<&R>) -> O> JoinOutput<L, R> for Joined<O, F> {
    fn give(&mut self, time: EventTime, left: Option<&L>, right: Option<&R>) {
        self.rows.push(Row::at(time, (self.join)(left, right)));
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS
    }
}

impl<L, R> Default for LateTags<L, R> {
    fn default() -> Self {
        Self {
            left: None,
            right: None,
        }
    }
}

impl<K, L, R, O, KL, KR, F> KeyedJoin<K, L, R, O, KL, KR, F>
where
    K: Eq + Hash + Clone,
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
    KL: FnMut(&L) -> K,
    KR: FnMut(&R) -> K,
    F: FnMut(Option<&L>, Option<&R>) -> O,
{
    /// An operator that makes results of kind `kind` by `join`, of rows whose keys are equal
    /// and whose times match by `time`.
    pub fn new(
        kind: JoinKind,
        time: JoinTime,
        (left_key, right_key): (KL, KR),
        join: F,
        late: LateTags<L, R>,
    ) -> Self {
        Self {
            kind,
            time,
            left_key,
            right_key,
            late,
            state: JoinState::new(kind, time),
            joined: Joined {
                rows: Rows::new(),
                join,
            },
            entering: None,
            advancing: None,
            late_rows: 0,
            untimed_rows: 0,
        }
    }

    /// Rows that came too late to be joined.
    pub const fn late_rows(&self) -> u64 {
        self.late_rows
    }

    /// Rows without an event time, which match nothing.
    pub const fn untimed_rows(&self) -> u64 {
        self.untimed_rows
    }

    /// The rows that are in time, and the others.
    fn split_late<T>(&mut self, rows: Rows<T>) -> (EnteringRows<K, T>, Rows<T>) {
        let late = |row: &Row<T>| self.state.is_late(row.event_time);
        let (late, rows): (Vec<_>, Vec<_>) = match rows.iter().any(late) {
            true => rows.into_iter().partition(late),
            false => (Vec::new(), rows.into_vec()),
        };
        let untimed = late.iter().filter(|row| row.event_time.is_none()).count();
        self.untimed_rows += untimed as u64;
        self.late_rows += (late.len() - untimed) as u64;
        let entering = EnteringRows {
            rows: rows.into_iter(),
            row: None,
        };
        (entering, late.into())
    }

    /// Joins until a batch of results is full; returns whether there is nothing left to do.
    fn fill(&mut self) -> bool {
        let Self { state, joined, .. } = self;
        match &mut self.entering {
            Some(Either::Left(rows)) => {
                while rows.begin(state, &mut self.left_key) {
                    let row = rows.row.as_mut().expect("one has begun");
                    if !state.enter_left(row, joined, &mut |_| {}) {
                        return false;
                    }
                    rows.row = None;
                }
            }
            Some(Either::Right(rows)) => {
                while rows.begin(state, &mut self.right_key) {
                    let row = rows.row.as_mut().expect("one has begun");
                    if !state.enter_right(row, joined, &mut |_| {}) {
                        return false;
                    }
                    rows.row = None;
                }
            }
            None => {}
        }
        self.entering = None;
        if self.advancing.is_none_or(|watermark| watermark.idle) {
            return true;
        }
        state.end() || state.expire(joined, &mut |_| {})
    }

    /// Rows that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        self.state.waiting()
    }
}

impl<K: Eq + Hash + Clone, T> EnteringRows<K, T> {
    /// Begins with the next row unless one has begun; returns whether there is one.
    fn begin<L: Clone, R: Clone>(
        &mut self,
        state: &JoinState<Values<K>, L, R>,
        key: &mut impl FnMut(&T) -> K,
    ) -> bool {
        if self.row.is_none() {
            self.row = self.rows.next().map(|row| {
                let key = key(&row.value);
                // Invariant: rows without an event time were set aside as late.
                let time = row.event_time.expect("a row in time has an event time");
                state.entering(Some(key), row.value, time)
            });
        }
        self.row.is_some()
    }
}

impl<K, L, R, O, KL, KR, F> Operator<Either<Rows<L>, Rows<R>>, Rows<O>>
    for KeyedJoin<K, L, R, O, KL, KR, F>
where
    K: Eq + Hash + Clone + Send,
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
    O: Clone + Send + 'static,
    KL: FnMut(&L) -> K + Send,
    KR: FnMut(&R) -> K + Send,
    F: FnMut(Option<&L>, Option<&R>) -> O + Send,
{
    fn process(
        &mut self,
        batch: Either<Rows<L>, Rows<R>>,
        out: &mut Emitter<'_, Rows<O>>,
    ) -> Result<Progress, OperatorError> {
        self.entering = Some(match batch {
            Either::Left(rows) => {
                let (entering, late) = self.split_late(rows);
                if let Some(tag) = self.late.left {
                    out.emit_side(tag, late);
                }
                Either::Left(entering)
            }
            Either::Right(rows) => {
                let (entering, late) = self.split_late(rows);
                if let Some(tag) = self.late.right {
                    out.emit_side(tag, late);
                }
                Either::Right(entering)
            }
        });
        self.resume(out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Rows<O>>,
    ) -> Result<Progress, OperatorError> {
        if !watermark.idle {
            self.state.advance(watermark.timestamp);
        }
        self.advancing = Some(watermark);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, Rows<O>>) -> Result<Progress, OperatorError> {
        loop {
            let done = self.fill();
            if !self.joined.rows.is_empty() {
                if out.is_full() {
                    return Ok(Progress::More);
                }
                out.emit(std::mem::take(&mut self.joined.rows));
            } else if !done {
                return Ok(Progress::More);
            }
            if done {
                break;
            }
        }
        if let Some(watermark) = self.advancing.take() {
            out.watermark(self.time.passed_on(self.kind, watermark));
        }
        Ok(Progress::Done)
    }
}
