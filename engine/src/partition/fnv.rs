//! 64-bit FNV-1a.

pub(super) const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
pub(super) const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a over bytes that are written one piece after the other.
///
/// A key of one column is its value's bytes: an integer's 8 (or 4) in little-endian order,
/// a string's UTF-8. A key of several columns is composed as nested pairs: every column but
/// the last is preceded by its length in bytes as a little-endian `u32`
/// ([`Fnv1a::write_part`]), the last one is not ([`Fnv1a::write`]). So `("a", "bc")` and
/// `("ab", "c")` differ, and a key of one column is hashed as its bytes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Fnv1a {
    /// A hash of nothing so far.
    pub const fn new() -> Self {
        Self(OFFSET_BASIS)
    }

    /// Hashes bytes as they are.
    #[inline]
    pub const fn write(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            self.0 = (self.0 ^ bytes[at] as u64).wrapping_mul(PRIME);
            at += 1;
        }
    }

    /// Hashes the 4 little-endian bytes of an integer.
    pub const fn write_u32(&mut self, value: u32) {
        self.write(&value.to_le_bytes());
    }

    /// Hashes the 8 little-endian bytes of an integer.
    pub const fn write_u64(&mut self, value: u64) {
        self.write(&value.to_le_bytes());
    }

    /// Hashes the 8 little-endian bytes of an integer.
    pub const fn write_i64(&mut self, value: i64) {
        self.write(&value.to_le_bytes());
    }

    /// Hashes a column of a composed key that is not the last one: its length, then its
    /// bytes. Of a length above `u32::MAX` only the low 32 bits count.
    #[inline]
    pub const fn write_part(&mut self, bytes: &[u8]) {
        self.write_u32(bytes.len() as u32);
        self.write(bytes);
    }

    /// The hash of what was written.
    pub const fn finish(self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Self {
        Self::new()
    }
}

/// The hash of a key of one column that is given as bytes.
pub const fn fnv1a64(bytes: &[u8]) -> u64 {
    let mut hash = Fnv1a::new();
    hash.write(bytes);
    hash.finish()
}

/// The hash of a key of one `i64` column: that of its 8 little-endian bytes.
pub const fn key_hash_i64(key: i64) -> u64 {
    fnv1a64(&key.to_le_bytes())
}

/// The hash of a key of several columns, composed as [`Fnv1a`] says.
pub fn key_hash_parts(parts: &[&[u8]]) -> u64 {
    let mut hash = Fnv1a::new();
    if let Some((last, before)) = parts.split_last() {
        for part in before {
            hash.write_part(part);
        }
        hash.write(last);
    }
    hash.finish()
}
