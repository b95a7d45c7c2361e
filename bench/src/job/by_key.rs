//! What the hand-written loops keep by key.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with a hash that costs next to nothing.
pub(crate) type ByKey<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// The hash that someone who knows the keys would take: short texts and a time that are
/// multiplied together, where the standard one guards against keys that are chosen to collide.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl KeyHasher {
    fn fold(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.fold(u64::from_le_bytes(word));
        }
    }

    fn write_i64(&mut self, value: i64) {
        self.fold(value.cast_unsigned());
    }

    fn write_u8(&mut self, _end_of_text: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
