//! Keys of typed rows, hashed as the same values are in columns.

use super::fnv::Fnv1a;

/// A value that rows can be keyed by.
///
/// Its bytes are those of the column that would hold it: integers of any width as 8
/// little-endian bytes, text as UTF-8, a pair as [`Fnv1a`] composes it. So rows and columns
/// with the same keys meet on the same subtask.
pub trait Key: Clone + Eq + std::hash::Hash + Send + 'static {
    /// The number of bytes that [`Key::write_to`] hashes.
    fn len_bytes(&self) -> usize;

    /// Hashes the key's bytes.
    fn write_to(&self, hash: &mut Fnv1a);

    /// The key's hash.
    fn key_hash(&self) -> u64 {
        let mut hash = Fnv1a::new();
        self.write_to(&mut hash);
        hash.finish()
    }
}

macro_rules! integer_keys {
    ($($integer:ty => $wide:ty),*) => {$(
        impl Key for $integer {
            fn len_bytes(&self) -> usize {
                8
            }

            fn write_to(&self, hash: &mut Fnv1a) {
                hash.write(&<$wide>::from(*self).to_le_bytes());
            }
        }
    )*};
}

integer_keys!(i8 => i64, i16 => i64, i32 => i64, i64 => i64);
integer_keys!(u8 => u64, u16 => u64, u32 => u64, u64 => u64);

impl Key for String {
    fn len_bytes(&self) -> usize {
        self.len()
    }

    fn write_to(&self, hash: &mut Fnv1a) {
        hash.write(self.as_bytes());
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    fn len_bytes(&self) -> usize {
        4 + self.0.len_bytes() + self.1.len_bytes()
    }

    fn write_to(&self, hash: &mut Fnv1a) {
        hash.write_u32(u32::try_from(self.0.len_bytes()).unwrap_or(u32::MAX));
        self.0.write_to(hash);
        self.1.write_to(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{key_hash_i64, key_hash_parts};
    use super::*;

    #[test]
    fn a_key_is_hashed_as_its_column_is() {
        assert_eq!(42_i64.key_hash(), key_hash_i64(42));
        assert_eq!((-1_i32).key_hash(), key_hash_i64(-1));
        assert_eq!(u64::MAX.key_hash(), key_hash_i64(-1));
        let (carrier, origin) = ("UA".to_owned(), "EWR".to_owned());
        assert_eq!(
            (carrier, origin).key_hash(),
            key_hash_parts(&[b"UA", b"EWR"])
        );
        let nested = ("a".to_owned(), ("b".to_owned(), "c".to_owned()));
        assert_eq!(nested.key_hash(), key_hash_parts(&[b"a", b"b", b"c"]));
    }
}
