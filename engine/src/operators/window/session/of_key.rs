//! The live sessions of one key.

use std::collections::BTreeMap;

use super::super::assigner::Window;
use crate::element::EventTime;

/// A session of a key, with a state of type `S`.
pub(super) struct Session<S> {
    pub(super) first: EventTime,
    pub(super) last_row: EventTime,
    pub(super) state: S,
    pub(super) is_complete: bool,
    pub(super) is_changed: bool,
    pub(super) id: u64,
    /// When it is looked whether it is due: not after that. Rows that prolong a session leave it
    /// alone, because they are many.
    pub(super) looked_at: EventTime,
}

/// The sessions of a key, which are apart by the gap at least. Mostly it is one, which takes no
/// memory of its own; several are ordered, so that finding one takes no longer where they are
/// very many.
pub(super) enum SessionsOfKey<S> {
    One(Session<S>),
    /// By their first time; none, or several.
    Others(BTreeMap<EventTime, Session<S>>),
}

impl<S> Session<S> {
    /// Whether a row at `time` goes into it and changes nothing but when it ends.
    #[inline]
    pub(super) fn takes(&self, time: EventTime, gap_ms: i64) -> bool {
        // Without branches of their own, because a row is nearly always in.
        let before_end = time.saturating_sub(gap_ms) < self.last_row;
        !self.is_complete & (self.first <= time) & before_end
    }

    /// Whether a row at `time` is in it, or less than the gap away.
    fn is_near(&self, time: EventTime, gap_ms: i64) -> bool {
        self.ends_after(time, gap_ms) && self.begins_before(time, gap_ms)
    }

    pub(super) fn window(&self, gap_ms: i64) -> Window {
        Window::of_session(self.first, self.last_row, gap_ms)
    }

    /// When it is due: for its result, or when it is complete to be freed.
    pub(super) fn due(&self, gap_ms: i64, allowed_lateness_ms: u64) -> EventTime {
        let last = self.window(gap_ms).last();
        match self.is_complete {
            true => last.saturating_add_unsigned(allowed_lateness_ms),
            false => last,
        }
    }

    fn take_row(&mut self, time: EventTime) {
        self.first = self.first.min(time);
        self.last_row = self.last_row.max(time);
    }

    fn ends_after(&self, time: EventTime, gap_ms: i64) -> bool {
        i128::from(self.last_row) + i128::from(gap_ms) > i128::from(time)
    }

    fn begins_before(&self, time: EventTime, gap_ms: i64) -> bool {
        i128::from(self.first) < i128::from(time) + i128::from(gap_ms)
    }
}

impl<S> SessionsOfKey<S> {
    /// Puts a row at `time` into the session that it is in or near to, which is made one with
    /// all others that it is near to. Returns whether there is one.
    pub(super) fn grow(
        &mut self,
        time: EventTime,
        gap_ms: i64,
        mut merge: impl FnMut(&mut S, S),
    ) -> bool {
        let sessions = match self {
            Self::One(session) => {
                let is_near = session.is_near(time, gap_ms);
                if is_near {
                    session.take_row(time);
                }
                return is_near;
            }
            Self::Others(sessions) => sessions,
        };
        let before = sessions.range(..=time.saturating_add(gap_ms)).rev();
        let before = before.skip_while(|(_, session)| !session.begins_before(time, gap_ms));
        let near = before.take_while(|(_, session)| session.ends_after(time, gap_ms));
        let near: Vec<EventTime> = near.map(|(first, _)| *first).collect();
        // The earliest takes in the others, in their order.
        let mut near = near.iter().rev().filter_map(|first| sessions.remove(first));
        let Some(mut session) = near.next() else {
            return false;
        };
        for other in near {
            session.last_row = other.last_row;
            merge(&mut session.state, other.state);
        }
        session.take_row(time);
        self.insert(session);
        true
    }

    /// Adds a session that is apart from the others.
    pub(super) fn insert(&mut self, session: Session<S>) {
        let mut others = match std::mem::take(self) {
            Self::One(other) => BTreeMap::from([(other.first, other)]),
            Self::Others(others) => others,
        };
        *self = if others.is_empty() {
            Self::One(session)
        } else {
            others.insert(session.first, session);
            Self::Others(others)
        };
    }

    /// The session that has begun last at `time`.
    #[inline]
    pub(super) fn at_mut(&mut self, time: EventTime) -> Option<&mut Session<S>> {
        match self {
            Self::One(session) => (session.first <= time).then_some(session),
            Self::Others(sessions) => Some(sessions.range_mut(..=time).next_back()?.1),
        }
    }

    /// Takes the session that has begun last at `time`; there is another, which stays.
    pub(super) fn remove_at(&mut self, time: EventTime) -> Option<Session<S>> {
        let Self::Others(sessions) = self else {
            return None;
        };
        let first = *sessions.range(..=time).next_back()?.0;
        let session = sessions.remove(&first);
        if sessions.len() == 1 {
            *self = Self::One(sessions.pop_first()?.1);
        }
        session
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Others(sessions) => sessions.len(),
        }
    }
}

impl<S> Default for SessionsOfKey<S> {
    fn default() -> Self {
        Self::Others(BTreeMap::new())
    }
}
