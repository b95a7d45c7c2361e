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

/// A map by key.
pub(crate) trait KeyMap<K, V>: Default {
    /// The state of `key`, to change.
    fn state_mut(&mut self, key: &K) -> Option<&mut V>;

    /// The state of `key`; where there is none, that of `make`, if that makes one.
    fn state_or_make(&mut self, key: &K, make: impl FnOnce() -> Option<V>) -> Option<&mut V>;

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

    fn state_or_make(&mut self, key: &K, make: impl FnOnce() -> Option<V>) -> Option<&mut V> {
        // A key is looked up twice, because a copy of it may cost more.
        if !self.contains_key(key) {
            self.insert(key.clone(), make()?);
        }
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
    fn state_or_make(&mut self, key: &u32, make: impl FnOnce() -> Option<V>) -> Option<&mut V> {
        let at = *key as usize;
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        let place = &mut self.0[at];
        if place.is_none() {
            *place = make();
        }
        place.as_mut()
    }

    #[inline]
    fn insert(&mut self, key: &u32, state: V) {
        let at = *key as usize;
        if at >= self.0.len() {
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
