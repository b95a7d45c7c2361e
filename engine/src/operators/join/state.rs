//! The rows that wait for a match, and the rules by which they come and go.

use crate::element::EventTime;
use crate::operators::gather::{Gathered, STEP_ITEMS_MAX};
use crate::operators::state::KeyForm;

use super::kind::{Alone, JoinKind};
use super::time::{JoinTime, JoinTimes, OnlyTime};
use super::waiting::{KeptRows, Waiting};

/// Takes what a join gives.
pub(super) trait JoinOutput<L, R> {
    /// Takes a pair, or a row alone, with the time at which it joined.
    fn give(&mut self, time: EventTime, left: Option<&L>, right: Option<&R>);

    /// Whether to stop until there is room.
    fn is_full(&self) -> bool;

    /// A row is kept from now on.
    fn keep(&mut self, _left: Option<&L>, _right: Option<&R>) {}

    /// A row that was kept is not any more.
    fn let_go(&mut self, _left: Option<L>, _right: Option<R>) {}
}

/// The rows of both sides that wait for a match.
pub(super) struct JoinState<K: KeyForm, L, R> {
    kind: JoinKind,
    time: JoinTime,
    left: Waiting<K, L>,
    right: Waiting<K, R>,
    /// The first join time that may still come.
    frontier: i128,
}

/// Where the rows of one side enter a join.
pub(super) struct Entry<'a, K: KeyForm, A, B> {
    meeting: Meeting,
    time: JoinTime,
    only_time: OnlyTime,
    own: &'a mut Waiting<K, A>,
    other: &'a mut Waiting<K, B>,
}

/// A row on its way into a join.
pub(super) struct Entering<K, T> {
    /// None for a row that nothing matches.
    key: Option<K>,
    row: T,
    times: JoinTimes,
    offer: Option<Offer>,
}

/// A row at one of the times at which it joins.
struct Offer {
    time: EventTime,
    /// The row of the other side to look at next, once that is known.
    next: Option<usize>,
    matched: bool,
}

/// How rows of one side meet those of the other.
#[derive(Clone, Copy)]
struct Meeting {
    pairs: bool,
    own: Alone,
    other: Alone,
    /// Rows of the own side do not come out: it only matters whether there is one.
    own_is_asked_for_only: bool,
    /// Rows of the other side match that are this much later, at least and at most.
    from: i128,
    upto: i128,
    frontier: i128,
}

/// Sees a side's rows as the left ones.
pub(super) struct Flipped<'a, O>(pub(super) &'a mut O);

impl<K: KeyForm, L: Clone, R: Clone> JoinState<K, L, R> {
    pub(super) fn new(kind: JoinKind, time: JoinTime) -> Self {
        let bounds = time.bounds();
        let is_bounded = bounds.upper_ms() < i64::MAX || bounds.lower_ms() > i64::MIN;
        Self::with_queues(kind, time, is_bounded || kind.gives_unmatched())
    }

    /// The same for rows that all join at one time, and are let go of together.
    pub(super) fn of_one_time(kind: JoinKind, time: JoinTime) -> Self {
        Self::with_queues(kind, time, kind.gives_unmatched())
    }

    fn with_queues(kind: JoinKind, time: JoinTime, are_queued: bool) -> Self {
        Self {
            kind,
            time,
            left: Waiting::new(are_queued),
            right: Waiting::new(are_queued),
            frontier: i128::MIN,
        }
    }

    /// Whether a row of this event time, or without one, comes too late to join.
    pub(super) fn is_late(&self, time: Option<EventTime>) -> bool {
        time.is_none_or(|time| i128::from(self.time.last_time_of(time)) < self.frontier)
    }

    /// Lets left rows enter. What their results go to is that of the join.
    pub(super) fn left(&mut self) -> Entry<'_, K, L, R> {
        let bounds = self.time.bounds();
        Entry {
            meeting: Meeting {
                pairs: self.kind.gives_pairs(),
                own: self.kind.left_alone(),
                other: self.kind.right_alone(),
                own_is_asked_for_only: !self.kind.gives_left(),
                from: bounds.lower_ms().into(),
                upto: bounds.upper_ms().into(),
                frontier: self.frontier,
            },
            time: self.time,
            only_time: OnlyTime::of(self.time),
            own: &mut self.left,
            other: &mut self.right,
        }
    }

    /// Lets right rows enter. What their results go to is [`Flipped`].
    pub(super) fn right(&mut self) -> Entry<'_, K, R, L> {
        let bounds = self.time.bounds();
        Entry {
            meeting: Meeting {
                pairs: self.kind.gives_pairs(),
                own: self.kind.right_alone(),
                other: self.kind.left_alone(),
                own_is_asked_for_only: !self.kind.gives_right(),
                from: -i128::from(bounds.upper_ms()),
                upto: -i128::from(bounds.lower_ms()),
                frontier: self.frontier,
            },
            time: self.time,
            only_time: OnlyTime::of(self.time),
            own: &mut self.right,
            other: &mut self.left,
        }
    }

    /// A watermark has come.
    pub(super) fn advance(&mut self, watermark: EventTime) {
        self.frontier = self.frontier.max(self.time.frontier(watermark));
    }

    /// Lets go of all rows at once, if nothing can match any and none is given alone; returns
    /// whether it did. Nothing says that their keys are released.
    pub(super) fn end(&mut self) -> bool {
        let is_over = self.frontier == JoinTime::AFTER_ALL && !self.kind.gives_unmatched();
        if is_over {
            let frontier = self.frontier;
            *self = Self::new(self.kind, self.time);
            self.frontier = frontier;
        }
        is_over
    }

    /// Lets go of rows that are not let go of one by one, of so many keys at a time; returns
    /// whether that is all.
    pub(super) fn clear_some(&mut self, budget: &mut usize) -> bool {
        self.left.clear_some(budget) && self.right.clear_some(budget)
    }

    /// Lets go of rows that nothing can match any more, left ones first, and gives those that
    /// the kind asks for. Calls `released` for each time that their key was kept.
    pub(super) fn expire(
        &mut self,
        out: &mut impl JoinOutput<L, R>,
        released: &mut dyn FnMut(&K::Key),
    ) -> Gathered {
        let bounds = self.time.bounds();
        let left_before = self.frontier - i128::from(bounds.upper_ms());
        let right_before = self.frontier + i128::from(bounds.lower_ms());
        let mut budget = STEP_ITEMS_MAX;
        let (left, right) = (self.kind.left_alone(), self.kind.right_alone());
        let is_done = self
            .left
            .expire(left_before, left, &mut budget, out, released)
            && self.right.expire(
                right_before,
                right,
                &mut budget,
                &mut Flipped(out),
                released,
            );
        match is_done {
            true => Gathered::All,
            false if budget == 0 => Gathered::Enough,
            false => Gathered::Batch,
        }
    }

    /// Rows that wait, of both sides.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.left.len(), self.right.len())
    }
}

impl<K: KeyForm, A: Clone, B> Entry<'_, K, A, B> {
    /// Begins with a row that has an event time; without a key nothing matches it. Calls `kept`
    /// each time that its key is kept. Returns the row where it is not in, because there is no
    /// room for results.
    #[inline]
    pub(super) fn begin(
        &mut self,
        key: Option<&K::Key>,
        row: A,
        time: EventTime,
        out: &mut impl JoinOutput<A, B>,
        kept: &mut impl FnMut(&K::Key),
    ) -> Option<Entering<K::Key, A>> {
        let Some(time) = self.only_time.at(time) else {
            let mut entering = Entering {
                key: key.cloned(),
                row,
                times: self.time.times_of(time),
                offer: None,
            };
            return (!self.go_on(&mut entering, out, kept)).then_some(entering);
        };
        let mut offer = Offer::at(time);
        if self.offer(key, &row, &mut offer, out, kept) {
            return None;
        }
        Some(Entering {
            key: key.cloned(),
            row,
            times: JoinTimes::Own(None),
            offer: Some(offer),
        })
    }

    /// Goes on with a row; returns whether it is in.
    pub(super) fn go_on(
        &mut self,
        entering: &mut Entering<K::Key, A>,
        out: &mut impl JoinOutput<A, B>,
        kept: &mut impl FnMut(&K::Key),
    ) -> bool {
        let frontier = self.meeting.frontier;
        loop {
            let mut offer = match entering.offer.take() {
                Some(offer) => offer,
                None => {
                    let in_time = |time: &EventTime| i128::from(*time) >= frontier;
                    let Some(time) = entering.times.find(in_time) else {
                        return true;
                    };
                    Offer::at(time)
                }
            };
            if !self.offer(entering.key.as_ref(), &entering.row, &mut offer, out, kept) {
                entering.offer = Some(offer);
                return false;
            }
        }
    }

    /// Offers the row to the other side and keeps it where another match may come; returns
    /// whether that is done.
    #[inline]
    fn offer(
        &mut self,
        key: Option<&K::Key>,
        row: &A,
        offer: &mut Offer,
        out: &mut impl JoinOutput<A, B>,
        kept: &mut impl FnMut(&K::Key),
    ) -> bool {
        if out.is_full() {
            return false;
        }
        let meeting = self.meeting;
        if let Some(candidates) = key.and_then(|key| self.other.of_key(key))
            && !meeting.offer_to(candidates, row, offer, out)
        {
            return false;
        }
        if offer.matched && meeting.own.ends_at_match {
            return true;
        }
        let may_match = i128::from(offer.time) + meeting.upto >= meeting.frontier;
        match key {
            Some(key) if may_match => {
                let waits = (row, offer.matched);
                if (self.own).keep(key, offer.time, waits, meeting.own_is_asked_for_only) {
                    out.keep(Some(row), None);
                    kept(key);
                }
            }
            _ if meeting.own.unmatched && !offer.matched => {
                out.give(offer.time, Some(row), None);
            }
            _ => {}
        }
        true
    }
}

impl Offer {
    const fn at(time: EventTime) -> Self {
        Self {
            time,
            next: None,
            matched: false,
        }
    }
}

impl Meeting {
    /// Offers a row to those of the other side with its key; returns whether that is done.
    fn offer_to<A, B>(
        &self,
        candidates: &mut KeptRows<B>,
        row: &A,
        offer: &mut Offer,
        out: &mut impl JoinOutput<A, B>,
    ) -> bool {
        let time = i128::from(offer.time);
        let start = offer.next;
        let start = start.unwrap_or_else(|| candidates.before(time + self.from));
        let mut next = start;
        while let Some(kept) = candidates.row_mut(next) {
            if i128::from(kept.time) > time + self.upto {
                break;
            }
            next += 1;
            let Some(candidate) = &kept.row else {
                continue;
            };
            if out.is_full() {
                offer.next = Some(next - 1);
                return false;
            }
            (offer.matched, kept.matched) = (true, 1);
            if self.pairs {
                out.give(offer.time.max(kept.time), Some(row), Some(candidate));
            }
            if self.other.matched {
                out.give(kept.time, None, Some(candidate));
            }
            if self.other.ends_at_match {
                out.let_go(None, kept.row.take());
            }
            if self.own.matched {
                out.give(offer.time, Some(row), None);
            }
            if self.own.ends_at_match {
                break;
            }
        }
        true
    }
}

impl<L, R, O: JoinOutput<L, R>> JoinOutput<R, L> for Flipped<'_, O> {
    fn give(&mut self, time: EventTime, left: Option<&R>, right: Option<&L>) {
        self.0.give(time, right, left);
    }

    fn is_full(&self) -> bool {
        self.0.is_full()
    }
    fn keep(&mut self, left: Option<&R>, right: Option<&L>) {
        self.0.keep(right, left);
    }

    fn let_go(&mut self, left: Option<R>, right: Option<L>) {
        self.0.let_go(right, left);
    }
}
