//! The numbers of keys that are integers.

use std::hash::BuildHasher;

use super::hash::FastHash;

/// Entries of the smallest table.
const ENTRIES_MIN: usize = 16;

/// Stands for an entry without a key.
const NO_ID: u32 = u32::MAX;

/// A map from integers to numbers: one flat array, at most half of it used, in which a key is at
/// its place or shortly behind. Where keys come once for each row, a lookup is one line of
/// memory, and takes half the time of a general map.
pub(super) struct NumberTable {
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

impl NumberTable {
    /// The number of `key`, that of `make` if it has none.
    #[inline]
    pub(super) fn number_of(&mut self, key: i64, make: impl FnOnce() -> u32) -> u32 {
        let at = self.position(key);
        match self.entries[at].id {
            NO_ID => self.insert(at, key, make()),
            id => id,
        }
    }

    /// Forgets `key`.
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

    /// Where `key` is, or would be.
    #[inline]
    fn position(&self, key: i64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = self.place(key);
        loop {
            let entry = &self.entries[at];
            if entry.id == NO_ID || entry.key == key {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn place(&self, key: i64) -> usize {
        self.hash.hash_one(key) as usize & (self.entries.len() - 1)
    }

    #[cold]
    fn insert(&mut self, at: usize, key: i64, id: u32) -> u32 {
        assert!(id != NO_ID, "memory ends before the numbers do");
        self.entries[at] = Entry { key, id };
        self.len += 1;
        if self.len * 2 > self.entries.len() {
            let larger = vec![EMPTY; self.entries.len() * 2];
            for entry in std::mem::replace(&mut self.entries, larger) {
                if entry.id != NO_ID {
                    let at = self.position(entry.key);
                    self.entries[at] = entry;
                }
            }
        }
        id
    }
}

impl Default for NumberTable {
    fn default() -> Self {
        Self {
            hash: FastHash::default(),
            entries: vec![EMPTY; ENTRIES_MIN],
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::operators::testing::Random;

    #[test]
    fn keys_keep_their_numbers_while_others_come_and_go() {
        let mut random = Random::new("keys_keep_their_numbers_while_others_come_and_go");
        for keys in [3, 40, 5_000] {
            let (mut table, mut model) = (NumberTable::default(), HashMap::new());
            for number in 0..20_000_u32 {
                let key = random.between(-keys, keys) << (random.below(2) * 40);
                if random.below(3) == 0 {
                    table.remove(key);
                    model.remove(&key);
                } else {
                    let expected = *model.entry(key).or_insert(number);
                    assert_eq!(table.number_of(key, || number), expected);
                }
                assert_eq!(table.len, model.len());
            }
            for (key, number) in model {
                assert_eq!(table.number_of(key, || NO_ID - 1), number);
            }
        }
    }
}
