//! Which ids are over.

use std::collections::BTreeSet;

use crate::limits::DEAD_BARRIERS_MAX;

/// The ids that were forwarded on all inputs, aborted, superseded or refused.
#[derive(Clone, Debug, Default)]
pub(super) struct DeadIds {
    /// Every id up to this one was brought or passed over by every open input.
    settled: Option<u64>,
    /// Ids up to this one were dropped from the set to keep its bound.
    forgotten: Option<u64>,
    /// The dead ids above both.
    ids: BTreeSet<u64>,
}

impl DeadIds {
    pub(super) fn settled(&self) -> Option<u64> {
        self.settled
    }

    /// Whether this id is known to be over.
    pub(super) fn contains(&self, id: u64) -> bool {
        self.settled.is_some_and(|settled| id <= settled) || self.ids.contains(&id)
    }

    /// Whether this id, which is not in the set, may have been dropped from it.
    pub(super) fn may_have_forgotten(&self, id: u64) -> bool {
        self.forgotten.is_some_and(|forgotten| id <= forgotten)
    }

    pub(super) fn insert(&mut self, id: u64) {
        if self.contains(id) || self.may_have_forgotten(id) {
            return;
        }
        self.ids.insert(id);
        if self.ids.len() > DEAD_BARRIERS_MAX {
            self.forgotten = self.ids.pop_first();
        }
    }

    /// Every id up to this one is over: the set need not name them.
    pub(super) fn settle_up_to(&mut self, id: u64) {
        if self.settled.is_some_and(|settled| settled >= id) {
            return;
        }
        self.settled = Some(id);
        self.ids = match id.checked_add(1) {
            Some(above) => self.ids.split_off(&above),
            None => BTreeSet::new(),
        };
    }

    /// How many ids the set names.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.ids.len()
    }
}
