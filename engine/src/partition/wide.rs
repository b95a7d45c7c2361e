//! The key groups of many integers at once.
//!
//! A group is the lowest bits of a hash, and the lowest bits of a product or of an exclusive or
//! are made of the lowest bits of its operands alone. So 16 bits of FNV-1a suffice, of which a
//! register holds eight or more rows, and where a whole hash makes each step wait for the one
//! before, here the steps of many rows go side by side.

use super::fnv::{OFFSET_BASIS, PRIME};
use super::{key_group_of_hash, key_hash_i64};
use crate::limits::KEY_GROUPS;

const _: () = assert!(KEY_GROUPS.is_power_of_two() && KEY_GROUPS <= 1 << 16);

/// Rows that are hashed side by side.
const ROWS: usize = 64;

const BASIS: u16 = OFFSET_BASIS as u16;
const FACTOR: u16 = PRIME as u16;

/// What four bytes of zero multiply a hash by.
const FACTOR_OF_ZEROES: u16 = FACTOR
    .wrapping_mul(FACTOR)
    .wrapping_mul(FACTOR)
    .wrapping_mul(FACTOR);

/// Appends the key group of each of `keys`, as [`key_group_of_hash`] of [`key_hash_i64`] has it.
pub(crate) fn extend_with_key_groups(groups: &mut Vec<u32>, keys: &[i64]) {
    let (chunks, rest) = keys.as_chunks();
    groups.reserve(keys.len());
    for chunk in chunks {
        groups.extend_from_slice(&of_chunk(chunk));
    }
    groups.extend(rest.iter().map(|key| key_group_of_hash(key_hash_i64(*key))));
}

#[inline]
fn of_chunk(keys: &[i64; ROWS]) -> [u32; ROWS] {
    let mut hashes = [BASIS; ROWS];
    write(&mut hashes, &keys.map(|key| key as u32));
    let any = keys.iter().fold(0, |any, key| any | key.cast_unsigned());
    if any >> 32 == 0 {
        hashes = hashes.map(|hash| hash.wrapping_mul(FACTOR_OF_ZEROES));
    } else {
        write(&mut hashes, &keys.map(|key| (key >> 32) as u32));
    }
    hashes.map(|hash| u32::from(hash) % KEY_GROUPS)
}

/// Takes the bytes of a word into the hash of each row, the lowest first.
#[inline]
fn write(hashes: &mut [u16; ROWS], words: &[u32; ROWS]) {
    for shift in [0, 8, 16, 24] {
        for (hash, word) in hashes.iter_mut().zip(words) {
            let byte = (word >> shift) as u16 & 0xff;
            *hash = (*hash ^ byte).wrapping_mul(FACTOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_integers_have_the_groups_that_each_has_alone() {
        let edges = [i64::MIN, i64::MAX, -1, 0, 1 << 31, 1 << 32, (1 << 32) - 1];
        let near = edges
            .into_iter()
            .flat_map(|edge| (-70..70).map(move |d| edge.wrapping_add(d)));
        let spread = (0..1000).map(|n: i64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
        let keys: Vec<i64> = near.chain(0..300).chain(spread).collect();
        for len in [0, 1, 63, 64, 65, 200, keys.len()] {
            let mut groups = vec![7];
            extend_with_key_groups(&mut groups, &keys[..len]);
            let alone = keys[..len]
                .iter()
                .map(|key| key_group_of_hash(key_hash_i64(*key)));
            assert!(groups.into_iter().eq([7].into_iter().chain(alone)), "{len}");
        }
    }
}
