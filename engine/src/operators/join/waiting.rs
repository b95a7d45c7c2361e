//! The rows of one side that wait for a match.

use std::collections::VecDeque;

use crate::element::EventTime;
use crate::operators::state::{DueKeys, KeyForm, KeyMap};

use super::kind::Alone;
use super::state::JoinOutput;

/// Lists that are kept for other keys, and the rows that one of them has room for, at most.
const SPARE_LISTS_MAX: usize = 1024;
const SPARE_ROWS_MAX: usize = 256;

/// The rows of one side that wait, by key and time.
pub(super) struct Waiting<K: KeyForm, T> {
    by_key: K::Map<KeptRows<T>>,
    /// Whether rows are let go of one by one, or all at once only.
    is_queued: bool,
    /// Then all rows by time; those of a key in the order in which they wait.
    due: DueKeys<K::Key>,
    next_number: u64,
    /// Lists of keys that are gone, for others.
    #[expect(
        clippy::vec_box,
        reason = "a list moves between here and its key by its pointer"
    )]
    spare: Vec<Box<VecDeque<Kept<T>>>>,
}

/// A row that waits.
pub(super) struct Kept<T> {
    pub(super) time: EventTime,
    /// None when the row is done with before its time.
    pub(super) row: Option<T>,
    /// Whether it has matched: not 0. A whole word, because rows are moved by words, and the
    /// processor waits for what was written in parts.
    pub(super) matched: u64,
}

/// The rows of a key by time, one at least. Most keys have one, which takes no list.
pub(super) struct KeptRows<T> {
    first: Kept<T>,
    /// None until there are more, so that a key with one row is small.
    #[expect(clippy::box_collection, reason = "a pointer is a third of a list")]
    rest: Option<Box<VecDeque<Kept<T>>>>,
}

impl<K: KeyForm, T> Waiting<K, T> {
    /// No rows; whether they are let go of one by one, or all at once only.
    pub(super) fn new(is_queued: bool) -> Self {
        Self {
            by_key: K::Map::default(),
            is_queued,
            due: DueKeys::default(),
            next_number: 0,
            spare: Vec::new(),
        }
    }

    /// Lets go of all rows that are not let go of one by one, of so many keys at a time; returns
    /// whether that is all.
    pub(super) fn clear_some(&mut self, budget: &mut usize) -> bool {
        debug_assert!(!self.is_queued || self.due.next_time().is_none());
        self.by_key.clear_some(budget)
    }

    /// The rows of a key.
    pub(super) fn of_key(&mut self, key: &K::Key) -> Option<&mut KeptRows<T>> {
        self.by_key.state_mut(key)
    }

    /// Keeps a row; where `once` says so only if none of its key and time is kept. Returns
    /// whether it is kept.
    #[inline]
    pub(super) fn keep(
        &mut self,
        key: &K::Key,
        time: EventTime,
        (row, matched): (&T, bool),
        once: bool,
    ) -> bool
    where
        T: Clone,
    {
        // It is made where it will be: moving it costs more than making it.
        let kept = || Kept {
            time,
            row: Some(row.clone()),
            matched: matched.into(),
        };
        match self.by_key.state_mut(key) {
            Some(rows) => {
                let Some(at) = rows.place_of(time, once) else {
                    return false;
                };
                rows.insert(at, kept(), &mut self.spare);
            }
            None => {
                let (first, rest) = (kept(), None);
                self.by_key.insert(key, KeptRows { first, rest });
            }
        }
        if self.is_queued {
            self.due.push(time, self.next_number, key.clone());
            self.next_number += 1;
        }
        true
    }

    /// Lets go of rows whose time is before `before`, and gives those that are asked for. Calls
    /// `released` for each time that their key was kept. Returns whether that is all.
    pub(super) fn expire<O>(
        &mut self,
        before: i128,
        alone: Alone,
        budget: &mut usize,
        out: &mut impl JoinOutput<T, O>,
        released: &mut dyn FnMut(&K::Key),
    ) -> bool {
        while let Some(time) = self.due.next_time() {
            if i128::from(time) >= before {
                break;
            }
            if *budget == 0 || out.is_full() {
                return false;
            }
            *budget -= 1;
            // Invariant: its time was looked at just above, and what is due waits. The rows of a
            // key are due in the order in which they wait.
            let (_, _, key) = self.due.pop().expect("looked at");
            let rows = self.by_key.state_mut(&key).expect("a key with a row");
            let second = rows.rest.as_mut().and_then(|rest| rest.pop_front());
            let kept = match second {
                Some(second) => std::mem::replace(&mut rows.first, second),
                None => {
                    let rows = self.by_key.remove(&key).expect("a key with a row");
                    if let Some(rest) = rows.rest
                        && self.spare.len() < SPARE_LISTS_MAX
                        && rest.capacity() <= SPARE_ROWS_MAX
                    {
                        self.spare.push(rest);
                    }
                    rows.first
                }
            };
            debug_assert_eq!(kept.time, time);
            if let Some(row) = kept.row {
                if alone.unmatched && kept.matched == 0 {
                    out.give(time, Some(&row), None);
                }
                out.let_go(Some(row), None);
            }
            released(&key);
        }
        true
    }

    /// Rows that wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let rows = self.by_key.sum(|rows| rows.rest().len() + 1);
        assert!(
            !self.is_queued || self.due.len() == rows,
            "keys go with their last row"
        );
        rows
    }
}

impl<T> KeptRows<T> {
    /// How many rows are before `time`.
    #[inline]
    pub(super) fn before(&self, time: i128) -> usize {
        match i128::from(self.first.time) < time {
            false => 0,
            true => {
                1 + self
                    .rest()
                    .partition_point(|kept| i128::from(kept.time) < time)
            }
        }
    }

    /// The row at a place.
    #[inline]
    pub(super) fn row_mut(&mut self, at: usize) -> Option<&mut Kept<T>> {
        match at {
            0 => Some(&mut self.first),
            at => self.rest.as_mut()?.get_mut(at - 1),
        }
    }

    /// The place behind the rows of `time` and before; where `once` says so only if there is none
    /// of that time.
    #[inline]
    fn place_of(&self, time: EventTime, once: bool) -> Option<usize> {
        let at = match self.last().time <= time {
            true => self.rest().len() + 1,
            false if time < self.first.time => 0,
            false => 1 + self.rest().partition_point(|other| other.time <= time),
        };
        if once && at > 0 {
            let before = match at {
                1 => &self.first,
                at => &self.rest()[at - 2],
            };
            if before.time == time {
                return None;
            }
        }
        Some(at)
    }

    /// Puts a row before the one at `at`.
    #[inline]
    #[expect(clippy::vec_box, reason = "as where they are kept")]
    fn insert(&mut self, at: usize, kept: Kept<T>, spare: &mut Vec<Box<VecDeque<Kept<T>>>>) {
        let rest = self
            .rest
            .get_or_insert_with(|| spare.pop().unwrap_or_default());
        match at {
            0 => rest.push_front(std::mem::replace(&mut self.first, kept)),
            at if at > rest.len() => rest.push_back(kept),
            at => rest.insert(at - 1, kept),
        }
    }

    fn last(&self) -> &Kept<T> {
        self.rest().back().unwrap_or(&self.first)
    }

    #[inline]
    fn rest(&self) -> &VecDeque<Kept<T>> {
        match &self.rest {
            Some(rest) => rest,
            None => const { &VecDeque::new() },
        }
    }
}
