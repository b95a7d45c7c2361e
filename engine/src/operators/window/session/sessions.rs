//! The live sessions of every key, and the rules by which they grow, merge and end.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use super::super::assigner::Window;
use crate::element::EventTime;
use crate::operators::SpecError;
use crate::operators::aggregate::FastHash;

/// The live sessions of every key, each with a state of type `S`.
///
/// Those of a key are apart by the gap at least. A session is due once at a time: for its
/// result when it is complete, then to be freed when its lateness is past.
pub(super) struct Sessions<K, S> {
    gap_ms: i64,
    allowed_lateness_ms: u64,
    watermark: Option<EventTime>,
    by_key: HashMap<K, Vec<Session<S>>, FastHash>,
    due: BTreeMap<(EventTime, u64), K>,
    /// Complete sessions that a row has changed.
    changed: VecDeque<(K, u64)>,
    next_id: u64,
    accepted_late_rows: u64,
}

struct Session<S> {
    id: u64,
    first: EventTime,
    last_row: EventTime,
    due: EventTime,
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

impl<K: Eq + Hash + Clone, S> Sessions<K, S> {
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
            by_key: HashMap::default(),
            due: BTreeMap::new(),
            changed: VecDeque::new(),
            next_id: 0,
            accepted_late_rows: 0,
        })
    }

    /// The state of the session that a row of `key` at `time` belongs to, after what that makes
    /// one session has been merged; none when the row is late.
    pub(super) fn session_of(
        &mut self,
        key: &K,
        time: EventTime,
        create: impl FnOnce() -> S,
        mut merge: impl FnMut(&mut S, S),
    ) -> Option<&mut S> {
        let gap = i128::from(self.gap_ms);
        let at = i128::from(time);
        let live = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
        let from = live.partition_point(|session| i128::from(session.last_row) + gap <= at);
        let upto = live.partition_point(|session| i128::from(session.first) < at + gap);
        let own = Window::of_session(time, time, self.gap_ms);
        if from == upto {
            let lateness = self.allowed_lateness_ms;
            if self
                .watermark
                .is_some_and(|watermark| own.is_expired(watermark, lateness))
            {
                return None;
            }
        }
        let sessions = self.by_key.entry(key.clone()).or_default();
        if from == upto {
            let session = Session {
                id: self.next_id,
                first: time,
                last_row: time,
                due: own.last(),
                is_complete: false,
                is_changed: false,
                state: create(),
            };
            self.next_id += 1;
            self.due.insert((session.due, session.id), key.clone());
            sessions.insert(from, session);
        } else {
            let others: Vec<_> = sessions.drain(from + 1..upto).collect();
            let session = &mut sessions[from];
            for other in others {
                self.due.remove(&(other.due, other.id));
                session.last_row = other.last_row;
                merge(&mut session.state, other.state);
            }
            session.first = session.first.min(time);
            session.last_row = session.last_row.max(time);
        }
        let session = &mut sessions[from];
        self.due.remove(&(session.due, session.id));
        let window = Window::of_session(session.first, session.last_row, self.gap_ms);
        session.is_complete = self
            .watermark
            .is_some_and(|watermark| window.is_complete(watermark));
        session.due = window.last();
        if session.is_complete {
            self.accepted_late_rows += 1;
            session.due = expires_at(window, self.allowed_lateness_ms);
            if !std::mem::replace(&mut session.is_changed, true) {
                self.changed.push_back((key.clone(), session.id));
            }
        }
        self.due.insert((session.due, session.id), key.clone());
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
    /// they were, then the others by their end.
    pub(super) fn next_due(&mut self) -> Option<DueSession<'_, K, S>> {
        while let Some((key, id)) = self.changed.pop_front() {
            // It may have become part of another, or have grown past the watermark: it is due
            // in another way then.
            let Some(at) = self.position(&key, id) else {
                continue;
            };
            let session = &mut self.by_key.get_mut(&key)?[at];
            session.is_changed = false;
            if session.is_complete {
                let session = &self.by_key[&key][at];
                return Some(DueSession {
                    key,
                    window: Window::of_session(session.first, session.last_row, self.gap_ms),
                    state: DueState::Kept(&session.state),
                    has_result: true,
                });
            }
        }
        let first = self.due.first_entry()?;
        if Some(first.key().0) > self.watermark {
            return None;
        }
        let ((_, id), key) = first.remove_entry();
        let at = self.position(&key, id).expect("what is due lives");
        let sessions = self.by_key.get_mut(&key).expect("what is due has a key");
        let session = &mut sessions[at];
        let window = Window::of_session(session.first, session.last_row, self.gap_ms);
        let has_result = !std::mem::replace(&mut session.is_complete, true);
        let expires = expires_at(window, self.allowed_lateness_ms);
        if Some(expires) > self.watermark {
            session.due = expires;
            self.due.insert((expires, id), key.clone());
            return Some(DueSession {
                key: key.clone(),
                window,
                state: DueState::Kept(&self.by_key[&key][at].state),
                has_result,
            });
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

    fn position(&self, key: &K, id: u64) -> Option<usize> {
        let sessions = self.by_key.get(key)?;
        sessions.iter().position(|session| session.id == id)
    }

    /// Live sessions.
    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        assert_eq!(
            self.due.len(),
            self.by_key.values().map(Vec::len).sum::<usize>()
        );
        self.due.len()
    }
}

/// When a complete session is freed.
fn expires_at(window: Window, allowed_lateness_ms: u64) -> EventTime {
    window.last().saturating_add_unsigned(allowed_lateness_ms)
}
