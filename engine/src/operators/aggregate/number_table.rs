//! The numbers of keys that are integers.

use super::hashed_numbers::HashedNumbers;

/// Stands for a key without a number.
pub(super) const NO_ID: u32 = u32::MAX;

/// An array of numbers may be so many times longer than the keys in it are many, and this longer
/// still: what a hash table takes that is mostly a quarter full.
const ROOM_A_KEY: usize = 8;
const ROOM_MIN: usize = 1024;

/// A map from integers to numbers.
///
/// Keys are often numbers in a row, as those of users and orders are: those that lie close
/// together have an array in which each is at its place, and only the others are hashed.
#[derive(Default)]
pub(super) struct NumberTable {
    /// The key whose number is first in the array.
    base: i64,
    array: Vec<u32>,
    /// Keys in the array.
    array_keys: usize,
    others: HashedNumbers,
    /// With fewer others than this, extending the array is not tried again.
    retry_at: usize,
}

impl NumberTable {
    /// The number of `key`, that of `make` if it has none.
    #[inline]
    pub(super) fn number_of(&mut self, key: i64, make: impl FnOnce() -> u32) -> u32 {
        match self.array.get(self.place(key)) {
            Some(&id) if id != NO_ID => id,
            _ => self.number_of_other(key, make),
        }
    }

    /// Forgets `key`.
    pub(super) fn remove(&mut self, key: i64) {
        let place = self.place(key);
        match self.array.get_mut(place) {
            Some(id) if *id != NO_ID => {
                *id = NO_ID;
                self.array_keys -= 1;
            }
            _ => self.others.remove(key),
        }
    }

    /// Where `key` is in the array, if it is long enough.
    #[inline]
    fn place(&self, key: i64) -> usize {
        key.wrapping_sub(self.base) as usize
    }

    #[cold]
    fn number_of_other(&mut self, key: i64, make: impl FnOnce() -> u32) -> u32 {
        // What has a place in the array is not among the others.
        let has_place = self.place(key) < self.array.len();
        if !has_place && let Some(id) = self.others.get(key) {
            return id;
        }
        let id = make();
        assert!(id != NO_ID, "memory ends before the numbers do");
        if !has_place && !self.extend_to(key) {
            self.others.insert(key, id);
            return id;
        }
        let place = self.place(key);
        self.array[place] = id;
        self.array_keys += 1;
        id
    }

    /// Makes the array so long that `key` has a place in it, unless it would be mostly empty.
    fn extend_to(&mut self, key: i64) -> bool {
        let others = self.others.len();
        let room = ROOM_A_KEY * (self.array_keys + others + 1) + ROOM_MIN;
        let (first, key) = (i128::from(self.base), i128::from(key));
        let reach = (key - first).max(first + self.array.len() as i128 - key);
        let is_far = self.array_keys > 0 && reach > 2 * room as i128;
        let is_tried = others < self.retry_at || others == 0;
        if is_far && others > 2 * self.array_keys && !is_tried {
            return self.move_to_most(key as i64);
        }
        if is_far || (others > 0 && is_tried) {
            return false;
        }
        let is_used = |id: &u32| *id != NO_ID;
        let (mut low, mut high) = (key, key);
        if let Some(from) = self.array.iter().position(is_used) {
            low = low.min(first + from as i128);
        }
        if let Some(to) = self.array.iter().rposition(is_used) {
            high = high.max(first + to as i128);
        }
        let span = high - low + 1;
        if span > room as i128 {
            self.retry_at = 2 * others + 1;
            return false;
        }
        // Keys mostly go on in the direction in which they went beyond the array.
        let len = (2 * span as usize).max(ROOM_MIN);
        let goes_down = self.array_keys > 0 && low == key;
        let base = if goes_down {
            high - len as i128 + 1
        } else {
            low
        };
        let base = base.clamp(i64::MIN.into(), i128::from(i64::MAX) - len as i128 + 1);
        self.rebase(base as i64, len);
        true
    }

    /// Makes the array that of the keys that lie close together around the median, if they are
    /// many more than those in it now, such as a stray first key. Returns whether `key`, which is
    /// to come, has a place in it.
    fn move_to_most(&mut self, key: i64) -> bool {
        self.retry_at = 2 * self.others.len() + 1;
        let mut keys = self.others.keys();
        keys.push(key);
        keys.sort_unstable();
        let mut close = &keys[..];
        let span = |close: &[i64]| i128::from(close[close.len() - 1]) - i128::from(close[0]) + 1;
        while span(close) > (ROOM_A_KEY * close.len() + ROOM_MIN) as i128 {
            let middle = close.len() / 2;
            close = match span(&close[..=middle]) > span(&close[middle..]) {
                true => &close[1..],
                false => &close[..close.len() - 1],
            };
        }
        if close.len() <= 2 * self.array_keys {
            return false;
        }
        let len = (2 * span(close) as usize).max(ROOM_MIN);
        let base = i128::from(close[0]).min(i128::from(i64::MAX) - len as i128 + 1);
        self.rebase(base as i64, len);
        self.place(key) < self.array.len()
    }

    /// Makes an array of `len` places from `base` on, which has the keys that have a place in it.
    fn rebase(&mut self, base: i64, len: usize) {
        let before = (
            self.base,
            std::mem::replace(&mut self.array, vec![NO_ID; len]),
        );
        self.base = base;
        for (place, id) in before.1.iter().enumerate() {
            if *id != NO_ID {
                let key = before.0.wrapping_add_unsigned(place as u64);
                let place = self.place(key);
                match self.array.get_mut(place) {
                    Some(place) => *place = *id,
                    None => {
                        self.others.insert(key, *id);
                        self.array_keys -= 1;
                    }
                }
            }
        }
        for key in self.others.keys() {
            let place = self.place(key);
            if place < len
                && let Some(id) = self.others.get(key)
            {
                self.others.remove(key);
                self.array[place] = id;
                self.array_keys += 1;
            }
        }
        self.retry_at = 2 * self.others.len();
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
            for (step, gap, start) in [
                (0, 0, 0),
                (1, 0, 0),
                (-1, 0, 0),
                (2, 40, 0),
                (1, 0, i64::MAX - 90_000),
            ] {
                let (mut table, mut model) = (NumberTable::default(), HashMap::new());
                for number in 0..20_000_u32 {
                    let around = start + i64::from(number) * step;
                    let key = random.between(-keys, keys) << (random.below(2) * gap);
                    let key = around.saturating_add(key);
                    if random.below(3) == 0 {
                        table.remove(key);
                        model.remove(&key);
                    } else {
                        let expected = *model.entry(key).or_insert(number);
                        assert_eq!(table.number_of(key, || number), expected);
                    }
                    assert_eq!(table.array_keys + table.others.len(), model.len());
                    let room = ROOM_A_KEY * 20_000 + ROOM_MIN;
                    assert!(table.array.len() <= 2 * room);
                }
                for (key, number) in model {
                    assert_eq!(table.number_of(key, || NO_ID - 1), number);
                }
            }
        }
    }

    #[test]
    fn keys_in_a_row_have_an_array_and_keys_far_apart_have_none() {
        let mut table = NumberTable::default();
        for number in 0..100_000 {
            table.number_of(1_000_000 + i64::from(number), || number);
            if number >= 500 {
                table.remove(1_000_000 + i64::from(number) - 500);
            }
        }
        assert_eq!((table.array_keys, table.others.len()), (500, 0));
        assert!(table.array.len() < 20_000, "{}", table.array.len());
        // A key that lies far from all others takes their place once only.
        for (strays, down) in [(1, false), (20, true)] {
            let mut table = NumberTable::default();
            for stray in 0..strays {
                table.number_of(i64::MIN + (i64::from(stray) << 40), || stray);
            }
            for number in strays..20_000 {
                let key = match down {
                    true => -i64::from(number),
                    false => 1_000_000 + i64::from(number),
                };
                table.number_of(key, || number);
                assert_eq!(table.number_of(key, || NO_ID - 1), number);
            }
            assert_eq!(table.others.len(), strays as usize);
            assert!(table.array.len() < 8 * 20_000, "{}", table.array.len());
            for stray in 0..strays {
                let key = i64::MIN + (i64::from(stray) << 40);
                assert_eq!(table.number_of(key, || NO_ID - 1), stray);
            }
        }
        let mut table = NumberTable::default();
        for number in 0..10_000 {
            table.number_of(i64::from(number) << 40, || number);
        }
        assert!(table.others.len() > 9_900);
        assert!(table.array.len() <= 2 * ROOM_MIN);
    }
}
