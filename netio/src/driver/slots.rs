//! Places with names that are never used twice.

use super::{ConnectionId, ListenerId};

/// The name of a place, as long as the same thing is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// Things under names. A name whose thing is gone leads nowhere, even when its place is used
/// again.
#[derive(Debug)]
pub(super) struct Slots<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The name that the next insertion will give.
    pub(super) fn next_key(&self) -> Key {
        let slot = self.free.last().copied();
        let slot = slot.unwrap_or(self.entries.len() as u32);
        let entry = self.entries.get(slot as usize);
        Key {
            slot,
            generation: entry.map_or(0, |entry| entry.generation),
        }
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        let key = self.next_key();
        if self.free.pop().is_none() {
            self.entries.push(Entry {
                generation: 0,
                value: None,
            });
        }
        self.entries[key.slot as usize].value = Some(value);
        key
    }

    pub(super) fn at(&self, key: Key) -> Option<&T> {
        let entry = self.entries.get(key.slot as usize)?;
        entry
            .value
            .as_ref()
            .filter(|_| entry.generation == key.generation)
    }

    pub(super) fn at_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        let current = entry.generation == key.generation;
        entry.value.as_mut().filter(|_| current)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(value)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.value.as_ref())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.entries
            .iter_mut()
            .enumerate()
            .filter_map(|(slot, entry)| {
                let key = Key {
                    slot: slot as u32,
                    generation: entry.generation,
                };
                Some((key, entry.value.as_mut()?))
            })
    }
}

impl From<ConnectionId> for Key {
    fn from(id: ConnectionId) -> Self {
        Self {
            slot: id.slot,
            generation: id.generation,
        }
    }
}

impl From<ListenerId> for Key {
    fn from(id: ListenerId) -> Self {
        Self {
            slot: id.slot,
            generation: id.generation,
        }
    }
}

impl From<Key> for ConnectionId {
    fn from(key: Key) -> Self {
        Self {
            slot: key.slot,
            generation: key.generation,
        }
    }
}

impl From<Key> for ListenerId {
    fn from(key: Key) -> Self {
        Self {
            slot: key.slot,
            generation: key.generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_what_is_gone_leads_nowhere_even_when_its_place_is_used_again() {
        let mut slots = Slots::new();
        let first = slots.insert("first");
        assert_eq!(slots.remove(first), Some("first"));
        assert_eq!(slots.remove(first), None);
        let announced = slots.next_key();
        let second = slots.insert("second");
        assert_eq!(announced, second);
        assert_eq!((first.slot, first == second), (second.slot, false));
        assert_eq!(slots.at(first), None);
        assert_eq!(slots.at_mut(first), None);
        assert_eq!(slots.at(second), Some(&"second"));
        assert_eq!((slots.iter().count(), slots.iter_mut().count()), (1, 1));
    }
}
