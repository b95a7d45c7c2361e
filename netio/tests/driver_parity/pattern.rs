//! Bytes that tell where in a stream they belong.

use std::collections::VecDeque;

use bytes::Bytes;

/// The byte at a place of the stream number `stream`.
pub(crate) fn byte(stream: u64, at: usize) -> u8 {
    // Neighbours, chunks and streams all differ.
    let word = (at as u64 / 8).wrapping_add(stream << 40);
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * (at % 8))) as u8
}

/// The bytes at `range` of a stream.
pub(crate) fn bytes(stream: u64, range: std::ops::Range<usize>) -> Bytes {
    range.map(|at| byte(stream, at)).collect()
}

/// A stream from its beginning, in segments of these lengths.
pub(crate) fn segments(stream: u64, lengths: &[usize]) -> VecDeque<Bytes> {
    let mut at = 0;
    let segment = |length: &usize| {
        at += length;
        bytes(stream, at - length..at)
    };
    lengths.iter().map(segment).collect()
}

/// Panics where `found` is not what the stream has from `at` on.
pub(crate) fn check(stream: u64, at: usize, found: &[u8]) {
    for (offset, value) in found.iter().enumerate() {
        let place = at + offset;
        assert_eq!(*value, byte(stream, place), "stream {stream}, byte {place}");
    }
}
