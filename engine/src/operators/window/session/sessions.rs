//! The live sessions of every key, and the rules by which they grow, merge and end.

use std::collections::VecDeque;

use super::super::assigner::Window;
use crate::element::EventTime;
use crate::operators::SpecError;
use crate::operators::state::{DueKeys, KeyForm, KeyMap};

use super::of_key::{Session, SessionsOfKey};

/// The live sessions of every key, each with a state of type `S`.
///
/// Those of a key are apart by the gap at least. A session is due once at a time: for its
/// result when it is complete, then to be freed when its lateness is past.
pub(super) struct Sessions<K: KeyForm, S> {
    gap_ms: i64,
    allowed_lateness_ms: u64,
    watermark: Option<EventTime>,
    by_key: K::Map<SessionsOfKey<S>>,
    /// All sessions by the time at which it is looked whether they are due, and some that are
    /// not there any more or are looked at at another time.
    due: DueKeys<KeyTime<K::Key>>,
    /// Complete sessions that a row has changed.
    changed: VecDeque<(KeyTime<K::Key>, u64)>,
    next_id: u64,
    accepted_late_rows: u64,
}

/// A key and a time in one of its sessions, by which that is found. It stays in it, because
/// sessions only grow.
type KeyTime<K> = (K, EventTime);

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

    /// Calls `each` with the state of the session of each row up to the first that is none of
    /// those that [`Sessions::prolonged`] tells; returns how many they are.
    #[inline]
    pub(super) fn prolong_first(
        &mut self,
        keys: &[K::Key],
        times: &[EventTime],
        mut each: impl FnMut(&mut S),
    ) -> usize {
        let mut rows = keys.iter().zip(times);
        let first_other = rows.position(|(key, time)| match self.prolonged(key, *time) {
            Some(state) => {
                each(state);
                false
            }
            None => true,
        });
        first_other.unwrap_or(keys.len())
    }

    /// The state of the session that a row of `key` at `time` belongs to, if it is the only one of
    /// its key and the row changes nothing but when it ends, as most do.
    #[inline]
    pub(super) fn prolonged(&mut self, key: &K::Key, time: EventTime) -> Option<&mut S> {
        match self.by_key.state_mut(key)? {
            SessionsOfKey::One(session) if session.takes(time, self.gap_ms) => {
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
        let own = Window::of_session(time, time, self.gap_ms);
        let expired = |watermark| own.is_expired(watermark, self.allowed_lateness_ms);
        let is_late = self.watermark.is_some_and(expired);
        let sessions = self.by_key.state_mut(key);
        let is_in = sessions.is_some_and(|of_key| of_key.grow(time, self.gap_ms, &mut merge));
        if !is_in {
            if is_late {
                return None;
            }
            let session = Session {
                id: self.next_id,
                first: time,
                last_row: time,
                looked_at: own.last(),
                is_complete: false,
                is_changed: false,
                state: create(),
            };
            let place = (key.clone(), time);
            self.due.push(own.last(), self.next_id, place);
            self.next_id += 1;
            match self.by_key.state_mut(key) {
                Some(sessions) => sessions.insert(session),
                None => self.by_key.insert(key, SessionsOfKey::One(session)),
            }
        }
        let session = self.by_key.state_mut(key)?.at_mut(time);
        let session = session.expect("the row is in one");
        let window = session.window(self.gap_ms);
        session.is_complete = self
            .watermark
            .is_some_and(|watermark| window.is_complete(watermark));
        if session.is_complete {
            self.accepted_late_rows += 1;
            if !std::mem::replace(&mut session.is_changed, true) {
                let place = (key.clone(), time);
                self.changed.push_back((place, session.id));
            }
        }
        let due = session.due(self.gap_ms, self.allowed_lateness_ms);
        if due < session.looked_at {
            session.looked_at = due;
            self.due.push(due, session.id, (key.clone(), time));
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
    /// they were, then the others by their end. None as well when so many were looked at that
    /// `budget` is used up.
    pub(super) fn next_due(&mut self, budget: &mut usize) -> Option<DueSession<'_, K::Key, S>> {
        while *budget > 0
            && let Some((place, id)) = self.changed.pop_front()
        {
            *budget -= 1;
            // It may have become part of another, or have grown past the watermark: it is due
            // in another way then.
            if let Some(session) = self.session_mut(&place, id)
                && std::mem::take(&mut session.is_changed)
                && session.is_complete
            {
                return Some(self.kept(place));
            }
        }
        let (gap_ms, lateness_ms) = (self.gap_ms, self.allowed_lateness_ms);
        let watermark = self.watermark?;
        while *budget > 0 && self.due.next_time()? <= watermark {
            *budget -= 1;
            let (looked_at, id, place) = self.due.pop()?;
            let Some(session) = self.session_mut(&place, id) else {
                continue;
            };
            if session.looked_at != looked_at {
                continue;
            }
            let is_prolonged = session.due(gap_ms, lateness_ms) > looked_at;
            let has_result = !is_prolonged && !std::mem::replace(&mut session.is_complete, true);
            let due = session.due(gap_ms, lateness_ms);
            if is_prolonged || due > watermark {
                session.looked_at = due;
                self.due.push(due, id, place.clone());
                if has_result {
                    return Some(self.kept(place));
                }
                continue;
            }
            let (key, time) = place;
            let session = match self.by_key.state_mut(&key)? {
                SessionsOfKey::One(_) => match self.by_key.remove(&key)? {
                    SessionsOfKey::One(session) => session,
                    SessionsOfKey::Others(_) => return None,
                },
                several => several.remove_at(time)?,
            };
            return Some(DueSession {
                key,
                window: session.window(gap_ms),
                state: DueState::Last(session.state),
                has_result,
            });
        }
        None
    }

    fn kept(&mut self, place: KeyTime<K::Key>) -> DueSession<'_, K::Key, S> {
        let (key, time) = place;
        let sessions = self.by_key.state_mut(&key);
        let session = sessions.and_then(|sessions| sessions.at_mut(time));
        // Invariant: the session was found just before.
        let session = session.expect("a session that was found");
        DueSession {
            window: session.window(self.gap_ms),
            state: DueState::Kept(&session.state),
            key,
            has_result: true,
        }
    }

    /// The session `id` that `place` leads to, if it is there.
    fn session_mut(&mut self, (key, time): &KeyTime<K::Key>, id: u64) -> Option<&mut Session<S>> {
        let session = self.by_key.state_mut(key)?.at_mut(*time)?;
        (session.id == id).then_some(session)
    }

    /// Live sessions.
    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        let sessions = self.by_key.sum(SessionsOfKey::len);
        assert!(self.due.len() >= sessions, "every session is looked at");
        assert!(sessions > 0 || self.by_key.sum(|_| 1) == 0);
        sessions
    }
}
