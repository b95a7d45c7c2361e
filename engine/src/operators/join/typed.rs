//! Joins of typed rows.

use std::hash::Hash;

use crate::batch::{Either, Row, Rows};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::gather::{Gather, Gathered};
use crate::operators::late::set_late_rows_aside;
use crate::operators::state::Values;

use super::kind::JoinKind;
use super::state::{Entering, Entry, Flipped, JoinOutput, JoinState};
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
    counts: RowCounts,
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
            counts: RowCounts::default(),
        }
    }

    /// Rows that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        self.state.waiting()
    }
}

impl<K: Eq + Hash + Clone, T> EnteringRows<K, T> {
    fn new(rows: Rows<T>) -> Self {
        Self {
            rows: rows.into_vec().into_iter(),
            row: None,
        }
    }

    /// Lets rows enter; returns whether all are in.
    fn enter<O>(
        &mut self,
        mut entry: Entry<'_, Values<K>, T, O>,
        key: &mut impl FnMut(&T) -> K,
        out: &mut impl JoinOutput<T, O>,
    ) -> bool
    where
        T: Clone,
    {
        if let Some(row) = &mut self.row
            && !entry.go_on(row, out, &mut |_| {})
        {
            return false;
        }
        self.row = None;
        for Row { value, event_time } in &mut self.rows {
            // Invariant: rows without an event time were set aside as late.
            let time = event_time.expect("a row in time has an event time");
            let key = key(&value);
            self.row = entry.begin(Some(&key), value, time, out, &mut |_| {});
            if self.row.is_some() {
                return false;
            }
        }
        true
    }
}

impl<K, L, R, O, KL, KR, F> Gather for KeyedJoin<K, L, R, O, KL, KR, F>
where
    K: Eq + Hash + Clone + Send,
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
    O: Clone + Send + 'static,
    KL: FnMut(&L) -> K + Send,
    KR: FnMut(&R) -> K + Send,
    F: FnMut(Option<&L>, Option<&R>) -> O + Send,
{
    type In = Either<Rows<L>, Rows<R>>;
    type Out = Rows<O>;

    fn take_in(
        &mut self,
        batch: Either<Rows<L>, Rows<R>>,
        out: &mut Emitter<'_, Rows<O>>,
    ) -> Result<(), OperatorError> {
        let is_late = |time| self.state.is_late(time);
        let counts = &mut self.counts;
        self.entering = Some(match batch {
            Either::Left(rows) => {
                let rows = set_late_rows_aside(rows, is_late, self.late.left, counts, out);
                Either::Left(EnteringRows::new(rows))
            }
            Either::Right(rows) => {
                let rows = set_late_rows_aside(rows, is_late, self.late.right, counts, out);
                Either::Right(EnteringRows::new(rows))
            }
        });
        Ok(())
    }

    fn advance(&mut self, watermark: EventTime) {
        self.state.advance(watermark);
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        let Self { state, joined, .. } = self;
        let is_in = match &mut self.entering {
            Some(Either::Left(rows)) => rows.enter(state.left(), &mut self.left_key, joined),
            Some(Either::Right(rows)) => {
                rows.enter(state.right(), &mut self.right_key, &mut Flipped(joined))
            }
            None => true,
        };
        if !is_in {
            return Ok(Gathered::Batch);
        }
        self.entering = None;
        if self.advancing.is_none_or(|watermark| watermark.idle) {
            return Ok(Gathered::All);
        }
        if state.end() {
            return Ok(Gathered::All);
        }
        Ok(state.expire(joined, &mut |_| {}))
    }

    fn is_empty(&self) -> bool {
        self.joined.rows.is_empty()
    }

    fn build(&mut self) -> Result<Rows<O>, OperatorError> {
        Ok(std::mem::take(&mut self.joined.rows))
    }

    fn passed_on(&mut self, watermark: Watermark) -> Watermark {
        self.time.passed_on(self.kind, watermark)
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}
