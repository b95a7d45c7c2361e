//! A value for each key.

use std::collections::HashMap;
use std::hash::Hash;

use crate::batcher::Codec;
use crate::error::OperatorError;
use crate::operator::{StateReader, StateWriter};
use crate::operators::aggregate::FastHash;
use crate::partition::key_group;

/// A value for each key of one operator. It holds what it is given until it is removed.
#[derive(Clone, Debug)]
pub struct KeyedState<K, V> {
    values: HashMap<K, V, FastHash>,
}

impl<K, V> Default for KeyedState<K, V> {
    fn default() -> Self {
        Self {
            values: HashMap::default(),
        }
    }
}

impl<K: Eq + Hash, V> KeyedState<K, V> {
    /// State without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `key`, if it has one.
    pub fn value(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    /// The value of `key` to change, if it has one.
    pub fn value_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key)
    }

    /// The value of `key` to change; `initial` if it has none.
    pub fn value_or_insert_with(&mut self, key: K, initial: impl FnOnce() -> V) -> &mut V {
        self.values.entry(key).or_insert_with(initial)
    }

    /// Gives `key` a value, and returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.values.insert(key, value)
    }

    /// Forgets `key`, and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.values.remove(key)
    }

    /// Keys that have a value.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no key has a value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Writes every key and value into `table`, under the key group of the key's bytes.
    ///
    /// # Errors
    /// When a key or value has no encoding, or the state cannot be stored.
    pub fn snapshot(
        &self,
        table: &str,
        keys: &dyn Codec<K>,
        values: &dyn Codec<V>,
        state: &mut dyn StateWriter,
    ) -> Result<(), OperatorError> {
        let (mut key_bytes, mut value_bytes) = (Vec::new(), Vec::new());
        for (key, value) in &self.values {
            key_bytes.clear();
            keys.encode(key, &mut key_bytes)?;
            value_bytes.clear();
            values.encode(value, &mut value_bytes)?;
            state.put_keyed(table, key_group(&key_bytes), &key_bytes, &value_bytes)?;
        }
        Ok(())
    }

    /// Reads back what [`KeyedState::snapshot`] wrote into `table`.
    ///
    /// # Errors
    /// When the state cannot be read or was written with other codecs.
    pub fn restore(
        &mut self,
        table: &str,
        keys: &dyn Codec<K>,
        values: &dyn Codec<V>,
        state: &mut dyn StateReader,
    ) -> Result<(), OperatorError> {
        state.for_each_keyed(table, &mut |key, value| {
            self.values.insert(keys.decode(key)?, values.decode(value)?);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batcher::Plain;
    use crate::operator::{EachKeyed, EachValue};

    #[derive(Default)]
    struct Memory(Vec<(String, u32, Vec<u8>, Vec<u8>)>);

    impl StateWriter for Memory {
        fn put_keyed(
            &mut self,
            table: &str,
            group: u32,
            key: &[u8],
            value: &[u8],
        ) -> Result<(), OperatorError> {
            self.0
                .push((table.to_owned(), group, key.to_vec(), value.to_vec()));
            Ok(())
        }

        fn put_operator(&mut self, _table: &str, _value: &[u8]) -> Result<(), OperatorError> {
            Err(OperatorError::new("keyed state is written by key"))
        }
    }

    impl StateReader for Memory {
        fn for_each_keyed(
            &mut self,
            table: &str,
            each: &mut EachKeyed<'_>,
        ) -> Result<(), OperatorError> {
            let of_table = self.0.iter().filter(|(of, ..)| of == table);
            of_table
                .into_iter()
                .try_for_each(|(_, _, key, value)| each(key, value))
        }

        fn for_each_operator(
            &mut self,
            _table: &str,
            _each: &mut EachValue<'_>,
        ) -> Result<(), OperatorError> {
            Ok(())
        }
    }

    #[test]
    fn what_is_written_at_a_checkpoint_comes_back_by_key() {
        let mut counts = KeyedState::new();
        for key in 0..300_i64 {
            *counts.value_or_insert_with(key, || "n".to_owned()) += &key.to_string();
        }
        counts.remove(&7);
        let mut memory = Memory::default();
        counts
            .snapshot("counts", &Plain, &Plain, &mut memory)
            .expect("plain types have codecs");
        assert!(
            memory
                .0
                .iter()
                .all(|(_, group, key, _)| *group == key_group(key)),
            "each key is in its own group"
        );
        let mut restored = KeyedState::<i64, String>::new();
        restored
            .restore("counts", &Plain, &Plain, &mut memory)
            .expect("the same codecs");
        assert_eq!(restored.len(), 299);
        assert_eq!(restored.value(&299).map(String::as_str), Some("n299"));
        assert_eq!(restored.value(&7), None);
    }
}
