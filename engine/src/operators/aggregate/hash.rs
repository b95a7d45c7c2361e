//! A fast hash for keys that live in one operator.

use std::hash::{BuildHasher, Hasher, RandomState};

/// An odd number whose bits are well spread: the golden ratio in 64 bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Builds hashers that fold a 128-bit product for each 8 bytes, from a random start, so
/// that keys from outside cannot be chosen to collide.
#[derive(Clone, Debug)]
pub(crate) struct FastHash {
    start: u64,
}

impl Default for FastHash {
    fn default() -> Self {
        Self {
            start: RandomState::new().hash_one(SPREAD),
        }
    }
}

impl BuildHasher for FastHash {
    type Hasher = FastHasher;

    fn build_hasher(&self) -> FastHasher {
        FastHasher(self.start)
    }
}

/// See [`FastHash`].
pub(crate) struct FastHasher(u64);

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.write_u64(u64::from_le_bytes(chunk.try_into().expect("8 bytes")));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(last));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(SPREAD);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn small_integers_and_short_texts_do_not_collide() {
        let hash = FastHash::default();
        let numbers: HashSet<u64> = (0..100_000_i64).map(|n| hash.hash_one(n)).collect();
        assert_eq!(numbers.len(), 100_000);
        let texts: HashSet<u64> = (0..100_000)
            .map(|n| hash.hash_one(n.to_string().as_bytes()))
            .collect();
        assert_eq!(texts.len(), 100_000);
    }

    #[test]
    fn the_low_bits_and_the_high_bits_are_spread() {
        let hash = FastHash::default();
        let low: HashSet<u64> = (0..4096_i64)
            .map(|n| hash.hash_one(n << 20) & 0xfff)
            .collect();
        let high: HashSet<u64> = (0..4096_i64).map(|n| hash.hash_one(n) >> 57).collect();
        assert!(low.len() > 2000, "{}", low.len());
        assert_eq!(high.len(), 128);
    }
}
