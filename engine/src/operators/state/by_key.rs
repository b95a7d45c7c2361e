//! State by key, for keys that are values and for keys that have small numbers.

use std::collections::HashMap;
use std::hash::Hash;
use std::marker::PhantomData;

use crate::operators::aggregate::FastHash;

/// How an operator tells keys apart.
pub(crate) trait KeyForm {
    /// What stands for a key.
    type Key: Clone;
    /// State by key.
    type Map<V>: KeyMap<Self::Key, V>;
}

/// Keys are values of a user's own.
pub(crate) struct Values<K>(PhantomData<K>);

/// Keys have numbers, which are given again when their key is gone.
pub(crate) struct Numbers;

impl<K: Eq + Hash + Clone> KeyForm for Values<K> {
    type Key = K;
    type Map<V> = HashMap<K, V, FastHash>;
}

impl KeyForm for Numbers {
    type Key = u32;
    type Map<V> = NumberMap<V>;
}

/// Keys have numbers and come to be very many, so that state must not be copied when it grows.
pub(crate) struct ManyNumbers;

impl KeyForm for ManyNumbers {
    type Key = u32;
    type Map<V> = PagedMap<V>;
}

/// A map by key.
pub(crate) trait KeyMap<K, V>: Default {
    /// The state of `key`, to change.
    fn state_mut(&mut self, key: &K) -> Option<&mut V>;

    /// Gives `key`, which has none, state.
    fn insert(&mut self, key: &K, state: V);

    /// Takes the state of `key`.
    fn remove(&mut self, key: &K) -> Option<V>;

    /// Forgets the state of so many keys at most; returns whether none is left.
    fn clear_some(&mut self, budget: &mut usize) -> bool;

    /// The sum over all state.
    #[cfg(test)]
    fn sum(&self, of: fn(&V) -> usize) -> usize;
}

impl<K: Eq + Hash + Clone, V> KeyMap<K, V> for HashMap<K, V, FastHash> {
    fn state_mut(&mut self, key: &K) -> Option<&mut V> {
        self.get_mut(key)
    }

    fn insert(&mut self, key: &K, state: V) {
        self.insert(key.clone(), state);
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.remove(key)
    }

    fn clear_some(&mut self, budget: &mut usize) -> bool {
        let mut extracted = self.extract_if(|_, _| true);
        while *budget > 0 && extracted.next().is_some() {
            *budget -= 1;
        }
        drop(extracted);
        self.is_empty()
    }

    #[cfg(test)]
    fn sum(&self, of: fn(&V) -> usize) -> usize {
        self.values().map(of).sum()
    }
}

/// A map by small numbers: an array.
pub(crate) struct NumberMap<V>(Vec<Option<V>>);

impl<V> Default for NumberMap<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> KeyMap<u32, V> for NumberMap<V> {
    #[inline]
    fn state_mut(&mut self, key: &u32) -> Option<&mut V> {
        self.0.get_mut(*key as usize)?.as_mut()
    }

    #[inline]
    fn insert(&mut self, key: &u32, state: V) {
        let at = *key as usize;
        if at == self.0.len() {
            return self.0.push(Some(state));
        }
        if at > self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(state);
    }

    #[inline]
    fn remove(&mut self, key: &u32) -> Option<V> {
        self.0.get_mut(*key as usize)?.take()
    }

    fn clear_some(&mut self, budget: &mut usize) -> bool {
        let keep = self.0.len().saturating_sub(*budget);
        *budget -= self.0.len() - keep;
        self.0.truncate(keep);
        keep == 0
    }

    #[cfg(test)]
    fn sum(&self, of: fn(&V) -> usize) -> usize {
        self.0.iter().flatten().map(of).sum()
    }
}

/// Keys of a page: enough that pages are few, and so few that an empty one is small.
const PAGE_KEYS: usize = 1024;

/// A map by small numbers, in pages.
pub(crate) struct PagedMap<V>(Vec<Box<[Option<V>]>>);

impl<V> PagedMap<V> {
    #[inline]
    fn place(&mut self, key: u32) -> Option<&mut Option<V>> {
        let page = self.0.get_mut(key as usize / PAGE_KEYS)?;
        page.get_mut(key as usize % PAGE_KEYS)
    }

    #[inline]
    fn place_or_make(&mut self, key: u32) -> &mut Option<V> {
        let at = key as usize / PAGE_KEYS;
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || {
                (0..PAGE_KEYS).map(|_| None).collect::<Box<[_]>>()
            });
        }
        &mut self.0[at][key as usize % PAGE_KEYS]
    }
}

impl<V> Default for PagedMap<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> KeyMap<u32, V> for PagedMap<V> {
    #[inline]
    fn state_mut(&mut self, key: &u32) -> Option<&mut V> {
        self.place(*key)?.as_mut()
    }

    #[inline]
    fn insert(&mut self, key: &u32, state: V) {
        *self.place_or_make(*key) = Some(state);
    }

    #[inline]
    fn remove(&mut self, key: &u32) -> Option<V> {
        self.place(*key)?.take()
    }

    fn clear_some(&mut self, budget: &mut usize) -> bool {
        let pages = self.0.len().min(budget.div_ceil(PAGE_KEYS));
        self.0.truncate(self.0.len() - pages);
        *budget = budget.saturating_sub(pages * PAGE_KEYS);
        self.0.is_empty()
    }

    #[cfg(test)]
    fn sum(&self, of: fn(&V) -> usize) -> usize {
        self.0.iter().flatten().flatten().map(of).sum()
    }
}
