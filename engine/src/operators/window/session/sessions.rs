//! The live sessions of every key, and the rules by which they grow, merge and end.

use std::collections::VecDeque;

use super::super::assigner::Window;
use crate::element::EventTime;
use crate::operators::SpecError;
use crate::operators::state::{DueKeys, KeyForm, KeyMap};

use super::few::Few;

/// The live sessions of every key, each with a state of type `S`.
///
/// Those of a key are apart by the gap at least. A session is due once at a time: for its
/// result when it is complete, then to be freed when its lateness is past.
pub(super) struct Sessions<K: KeyForm, S> {
    gap_ms: i64,
    allowed_lateness_ms: u64,
    watermark: Option<EventTime>,
    by_key: K::Map<Few<Session<S>>>,
    /// All sessions by the time at which it is looked whether they are due, and some that are
    /// not there any more or are looked at at another time.
    due: DueKeys<K::Key>,
    /// Complete sessions that a row has changed.
    changed: VecDeque<(K::Key, u64)>,
    next_id: u64,
    accepted_late_rows: u64,
}

struct Session<S> {
    id: u64,
    first: EventTime,
    last_row: EventTime,
    /// When it is looked whether it is due: not after that. Rows that prolong a session leave it
    /// alone, because they are many.
    looked_at: EventTime,
    is_complete: bool,
    is_changed: bool,
    state: S,
}

/// A session that is due.
pub(super) struct DueSession<'a, K, S> {
    pub(super) key: K,
    pub(super) window: Window,
    pub(super) state: DueState<'a, S>,
    /// Whether the result is to be emitted; if not it only ends.
    pub(super) has_result: bool,
}

/// The state of a session that is due.
pub(super) enum DueState<'a, S> {
    /// It lives on for late rows.
    Kept(&'a S),
    /// It is over.
    Last(S),
}

impl<S> DueState<'_, S> {
    pub(super) fn get(&self) -> &S {
        match self {
            Self::Kept(state) => state,
            Self::Last(state) => state,
        }
    }
}

impl<K: KeyForm, S> Sessions<K, S> {
    /// No sessions.
    ///
    /// # Errors
    /// When the gap is less than 1.
    pub(super) fn new(gap_ms: i64, allowed_lateness_ms: u64) -> Result<Self, SpecError> {
        if gap_ms < 1 {
            return Err(SpecError::SessionGap { gap_ms });
        }
        Ok(Self {
            gap_ms,
            allowed_lateness_ms,
            watermark: None,
            by_key: K::Map::default(),
            due: DueKeys::default(),
            changed: VecDeque::new(),
            next_id: 0,
            accepted_late_rows: 0,
        })
    }

    /// The state of the session that a row of `key` at `time` belongs to, if it is the only one of
    /// its key and the row changes nothing but when it ends, as most do.
    #[inline]
    pub(super) fn prolonged(&mut self, key: &K::Key, time: EventTime) -> Option<&mut S> {
        match self.by_key.state_mut(key)? {
            Few::One(session) if session.takes(time, self.gap_ms) => {
                // Without a branch, because a later time is as likely as the same.
                session.last_row = session.last_row.max(time);
                Some(&mut session.state)
            }
            _ => None,
        }
    }

    /// The state of the session that a row of `key` at `time` belongs to, after what that makes
    /// one session has been merged; none when the row is late.
    pub(super) fn session_of(
        &mut self,
        key: &K::Key,
        time: EventTime,
        create: impl FnOnce() -> S,
        mut merge: impl FnMut(&mut S, S),
    ) -> Option<&mut S> {
        let own = || Window::of_session(time, time, self.gap_ms);
        let is_late = || {
            let expired = |watermark| own().is_expired(watermark, self.allowed_lateness_ms);
            self.watermark.is_some_and(expired)
        };
        let make = || (!is_late()).then(Few::default);
        let sessions = self.by_key.state_or_make(key, make)?;
        let gap = i128::from(self.gap_ms);
        let at = i128::from(time);
        let live = sessions.as_slice();
        let from = live.partition_point(|session| i128::from(session.last_row) + gap <= at);
        let upto = live.partition_point(|session| i128::from(session.first) < at + gap);
        if from == upto {
            if is_late() {
                return None;
            }
            let session = Session {
                id: self.next_id,
                first: time,
                last_row: time,
                looked_at: own().last(),
                is_complete: false,
                is_changed: false,
                state: create(),
            };
            self.next_id += 1;
            self.due.push(own().last(), session.id, key.clone());
            sessions.insert(from, session);
        }
        for _ in from + 1..upto {
            let other = sessions.remove(from + 1);
            let session = &mut sessions.as_mut_slice()[from];
            session.last_row = other.last_row;
            merge(&mut session.state, other.state);
        }
        let session = &mut sessions.as_mut_slice()[from];
        session.first = session.first.min(time);
        session.last_row = session.last_row.max(time);
        let window = Window::of_session(session.first, session.last_row, self.gap_ms);
        session.is_complete = self
            .watermark
            .is_some_and(|watermark| window.is_complete(watermark));
        if session.is_complete {
            self.accepted_late_rows += 1;
            if !std::mem::replace(&mut session.is_changed, true) {
                self.changed.push_back((key.clone(), session.id));
            }
        }
        let due = session.due(self.gap_ms, self.allowed_lateness_ms);
        if due < session.looked_at {
            session.looked_at = due;
            self.due.push(due, session.id, key.clone());
        }
        Some(&mut session.state)
    }

    /// Rows that changed sessions which were complete.
    pub(super) fn accepted_late_rows(&self) -> u64 {
        self.accepted_late_rows
    }

    /// A watermark has come; what it completes is due.
    pub(super) fn advance(&mut self, watermark: EventTime) {
        self.watermark = self.watermark.max(Some(watermark));
    }

    /// The next session that is due: those that late rows have changed, in the order in which
    /// they were, then the others by their end. One that was prolonged may come without a
    /// result, and lives on.
    pub(super) fn next_due(&mut self) -> Option<DueSession<'_, K::Key, S>> {
        while let Some((key, id)) = self.changed.pop_front() {
            // It may have become part of another, or have grown past the watermark: it is due
            // in another way then.
            let Some(at) = self.position(&key, id) else {
                continue;
            };
            let session = &mut self.by_key.state_mut(&key)?.as_mut_slice()[at];
            session.is_changed = false;
            if session.is_complete {
                return Some(self.kept(key, at, true));
            }
        }
        let (looked_at, id, key, at) = loop {
            if self.due.next_time() > self.watermark {
                return None;
            }
            let (looked_at, id, key) = self.due.pop()?;
            let at = self.position(&key, id);
            if let Some(at) = at.filter(|at| self.session(&key, *at).looked_at == looked_at) {
                break (looked_at, id, key, at);
            }
        };
        let sessions = self.by_key.state_mut(&key).expect("what is due has a key");
        let session = &mut sessions.as_mut_slice()[at];
        let window = Window::of_session(session.first, session.last_row, self.gap_ms);
        let (gap_ms, lateness_ms) = (self.gap_ms, self.allowed_lateness_ms);
        let is_prolonged = session.due(gap_ms, lateness_ms) > looked_at;
        let mut has_result = false;
        if !is_prolonged {
            has_result = !std::mem::replace(&mut session.is_complete, true);
        }
        let due = session.due(gap_ms, lateness_ms);
        if is_prolonged || Some(due) > self.watermark {
            session.looked_at = due;
            self.due.push(due, id, key.clone());
            return Some(self.kept(key, at, has_result));
        }
        let state = DueState::Last(sessions.remove(at).state);
        if sessions.is_empty() {
            self.by_key.remove(&key);
        }
        Some(DueSession {
            key,
            window,
            state,
            has_result,
        })
    }

    fn kept(&self, key: K::Key, at: usize, has_result: bool) -> DueSession<'_, K::Key, S> {
        let session = self.session(&key, at);
        DueSession {
            window: Window::of_session(session.first, session.last_row, self.gap_ms),
            state: DueState::Kept(&session.state),
            key,
            has_result,
        }
    }

    fn session(&self, key: &K::Key, at: usize) -> &Session<S> {
        let sessions = self.by_key.get(key).expect("a key with a session");
        &sessions.as_slice()[at]
    }

    fn position(&self, key: &K::Key, id: u64) -> Option<usize> {
        let sessions = self.by_key.get(key)?.as_slice();
        sessions.iter().position(|session| session.id == id)
    }

    /// Live sessions.
    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        let sessions = self.by_key.sum(|sessions| sessions.as_slice().len());
        assert!(self.due.len() >= sessions, "every session is looked at");
        assert!(sessions > 0 || self.by_key.sum(|_| 1) == 0);
        sessions
    }
}

impl<S> Session<S> {
    /// Whether a row at `time` goes into it and changes nothing but when it ends.
    #[inline]
    fn takes(&self, time: EventTime, gap_ms: i64) -> bool {
        let ends = self.last_row.saturating_add(gap_ms);
        !self.is_complete && self.first <= time && time < ends
    }

    /// When it is due: for its result, or when it is complete to be freed.
    fn due(&self, gap_ms: i64, allowed_lateness_ms: u64) -> EventTime {
        let window = Window::of_session(self.first, self.last_row, gap_ms);
        match self.is_complete {
            true => expires_at(window, allowed_lateness_ms),
            false => window.last(),
        }
    }
}

/// When a complete session is freed.
fn expires_at(window: Window, allowed_lateness_ms: u64) -> EventTime {
    window.last().saturating_add_unsigned(allowed_lateness_ms)
}
