//! The rows that wait for a match, and the rules by which they come and go.

use crate::element::EventTime;
use crate::operators::state::KeyForm;

use super::kind::{Alone, JoinKind};
use super::time::{JoinTime, JoinTimes};
use super::waiting::{Kept, KeptRows, Waiting};

/// Rows whose time is past that one call lets go of, so that freeing many does not hold the
/// core.
const EXPIRED_ROWS_MAX: usize = 65_536;

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
struct Flipped<'a, O>(&'a mut O);

impl<K: KeyForm, L: Clone, R: Clone> JoinState<K, L, R> {
    pub(super) fn new(kind: JoinKind, time: JoinTime) -> Self {
        Self {
            kind,
            time,
            left: Waiting::default(),
            right: Waiting::default(),
            frontier: i128::MIN,
        }
    }

    /// Whether a row of this event time, or without one, comes too late to join.
    pub(super) fn is_late(&self, time: Option<EventTime>) -> bool {
        time.is_none_or(|time| i128::from(self.time.last_time_of(time)) < self.frontier)
    }

    /// A row with an event time that is about to enter; without a key nothing matches it.
    pub(super) fn entering<T>(
        &self,
        key: Option<K::Key>,
        row: T,
        time: EventTime,
    ) -> Entering<K::Key, T> {
        Entering {
            key,
            row,
            times: self.time.times_of(time),
            offer: None,
        }
    }

    /// Goes on with a left row; returns whether it is in, and calls `kept` each time that its
    /// key is kept.
    pub(super) fn enter_left(
        &mut self,
        entering: &mut Entering<K::Key, L>,
        out: &mut impl JoinOutput<L, R>,
        kept: &mut impl FnMut(&K::Key),
    ) -> bool {
        let bounds = self.time.bounds();
        let meeting = Meeting {
            pairs: self.kind.gives_pairs(),
            own: self.kind.left_alone(),
            other: self.kind.right_alone(),
            own_is_asked_for_only: !self.kind.gives_left(),
            from: bounds.lower_ms().into(),
            upto: bounds.upper_ms().into(),
            frontier: self.frontier,
        };
        meeting.enter(entering, &mut self.left, &mut self.right, out, kept)
    }

    /// Goes on with a right row, as [`JoinState::enter_left`] does with a left one.
    pub(super) fn enter_right(
        &mut self,
        entering: &mut Entering<K::Key, R>,
        out: &mut impl JoinOutput<L, R>,
        kept: &mut impl FnMut(&K::Key),
    ) -> bool {
        let bounds = self.time.bounds();
        let meeting = Meeting {
            pairs: self.kind.gives_pairs(),
            own: self.kind.right_alone(),
            other: self.kind.left_alone(),
            own_is_asked_for_only: !self.kind.gives_right(),
            from: -i128::from(bounds.upper_ms()),
            upto: -i128::from(bounds.lower_ms()),
            frontier: self.frontier,
        };
        let out = &mut Flipped(out);
        meeting.enter(entering, &mut self.right, &mut self.left, out, kept)
    }

    /// A watermark has come.
    pub(super) fn advance(&mut self, watermark: EventTime) {
        self.frontier = self.frontier.max(self.time.frontier(watermark));
    }

    /// Lets go of all rows at once, if nothing can match any and none is given alone; returns
    /// whether it did. Nothing says that their keys are released.
    pub(super) fn end(&mut self) -> bool {
        let (left, right) = (self.kind.left_alone(), self.kind.right_alone());
        let is_over = self.frontier == JoinTime::AFTER_ALL && !left.unmatched && !right.unmatched;
        if is_over {
            self.left = Waiting::default();
            self.right = Waiting::default();
        }
        is_over
    }

    /// Lets go of rows that nothing can match any more, left ones first, and gives those that
    /// the kind asks for. Calls `released` for each time that their key was kept. Returns
    /// whether that is all.
    pub(super) fn expire(
        &mut self,
        out: &mut impl JoinOutput<L, R>,
        released: &mut dyn FnMut(&K::Key),
    ) -> bool {
        let bounds = self.time.bounds();
        let left_before = self.frontier - i128::from(bounds.upper_ms());
        let right_before = self.frontier + i128::from(bounds.lower_ms());
        let mut budget = EXPIRED_ROWS_MAX;
        let (left, right) = (self.kind.left_alone(), self.kind.right_alone());
        self.left
            .expire(left_before, left, &mut budget, out, released)
            && self.right.expire(
                right_before,
                right,
                &mut budget,
                &mut Flipped(out),
                released,
            )
    }

    /// Rows that wait, of both sides.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.left.len(), self.right.len())
    }
}

impl Meeting {
    fn enter<K: KeyForm, A: Clone, B>(
        self,
        entering: &mut Entering<K::Key, A>,
        own: &mut Waiting<K, A>,
        other: &mut Waiting<K, B>,
        out: &mut impl JoinOutput<A, B>,
        kept: &mut impl FnMut(&K::Key),
    ) -> bool {
        loop {
            let mut offer = match entering.offer.take() {
                Some(offer) => offer,
                None => {
                    let frontier = self.frontier;
                    let in_time = |time: &EventTime| i128::from(*time) >= frontier;
                    let Some(time) = entering.times.find(in_time) else {
                        return true;
                    };
                    Offer {
                        time,
                        next: None,
                        matched: false,
                    }
                }
            };
            if out.is_full() || !self.offer(entering, &mut offer, own, other, out, kept) {
                entering.offer = Some(offer);
                return false;
            }
        }
    }

    /// Offers the row to the other side and keeps it where another match may come; returns
    /// whether that is done.
    fn offer<K: KeyForm, A: Clone, B>(
        &self,
        entering: &Entering<K::Key, A>,
        offer: &mut Offer,
        own: &mut Waiting<K, A>,
        other: &mut Waiting<K, B>,
        out: &mut impl JoinOutput<A, B>,
        kept: &mut impl FnMut(&K::Key),
    ) -> bool {
        let candidates = entering.key.as_ref().and_then(|key| other.of_key(key));
        if let Some(candidates) = candidates
            && !self.offer_to(candidates, &entering.row, offer, out)
        {
            return false;
        }
        if offer.matched && self.own.ends_at_match {
            return true;
        }
        let may_match = i128::from(offer.time) + self.upto >= self.frontier;
        match &entering.key {
            Some(key) if may_match => {
                let row = Kept {
                    time: offer.time,
                    row: Some(entering.row.clone()),
                    matched: offer.matched,
                };
                if own.keep(key, row, self.own_is_asked_for_only) {
                    out.keep(Some(&entering.row), None);
                    kept(key);
                }
            }
            _ if self.own.unmatched && !offer.matched => {
                out.give(offer.time, Some(&entering.row), None);
            }
            _ => {}
        }
        true
    }

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
        for (index, kept) in candidates.from(start) {
            if i128::from(kept.time) > time + self.upto {
                break;
            }
            let Some(candidate) = &kept.row else {
                continue;
            };
            if out.is_full() {
                offer.next = Some(index);
                return false;
            }
            (offer.matched, kept.matched) = (true, true);
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
