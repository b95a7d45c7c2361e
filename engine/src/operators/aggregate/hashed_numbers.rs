//! The numbers of integers that lie far apart.

use std::hash::BuildHasher;

use super::hash::FastHash;
use super::number_table::NO_ID;

/// Entries of the smallest table.
const ENTRIES_MIN: usize = 16;

/// A map from integers to numbers: one flat array, at most a quarter of it used, in which a key
/// is at its place or shortly behind. Where keys come once for each row, a lookup is one line
/// of memory, and takes less than that of a general map.
pub(super) struct HashedNumbers {
    hash: FastHash,
    entries: Vec<Entry>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    key: i64,
    id: u32,
}

const EMPTY: Entry = Entry { key: 0, id: NO_ID };

impl HashedNumbers {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, key: i64) -> Option<u32> {
        let id = self.entries[self.position(key)].id;
        (id != NO_ID).then_some(id)
    }

    /// Gives `key`, which has none, a number.
    pub(super) fn insert(&mut self, key: i64, id: u32) {
        if self.len * 4 >= self.entries.len() {
            let larger = vec![EMPTY; self.entries.len() * 2];
            for entry in std::mem::replace(&mut self.entries, larger) {
                if entry.id != NO_ID {
                    let at = self.position(entry.key);
                    self.entries[at] = entry;
                }
            }
        }
        let at = self.position(key);
        self.entries[at] = Entry { key, id };
        self.len += 1;
    }

    pub(super) fn remove(&mut self, key: i64) {
        let mut gap = self.position(key);
        if self.entries[gap].id == NO_ID {
            return;
        }
        self.len -= 1;
        // What stands behind moves up, unless it would come before its own place.
        let mask = self.entries.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.id == NO_ID {
                break;
            }
            let from_place = at.wrapping_sub(self.place(entry.key)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_place >= from_gap {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = EMPTY;
    }

    pub(super) fn keys(&self) -> Vec<i64> {
        let used = self.entries.iter().filter(|entry| entry.id != NO_ID);
        used.map(|entry| entry.key).collect()
    }

    /// Where `key` is, or would be.
    #[inline]
    fn position(&self, key: i64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = self.place(key);
        loop {
            let entry = &self.entries[at];
            if entry.key == key || entry.id == NO_ID {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn place(&self, key: i64) -> usize {
        self.hash.hash_one(key) as usize & (self.entries.len() - 1)
    }
}

impl Default for HashedNumbers {
    fn default() -> Self {
        Self {
            hash: FastHash::default(),
            entries: vec![EMPTY; ENTRIES_MIN],
            len: 0,
        }
    }
}
