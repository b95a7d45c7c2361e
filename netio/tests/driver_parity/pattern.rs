//! Bytes that tell where in a stream they belong.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

/// Eight bytes of the stream number `stream`. Neighbours, chunks and streams all differ.
fn word(stream: u64, index: usize) -> [u8; 8] {
    let word = (index as u64).wrapping_add(stream << 40);
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// The bytes at `range` of a stream.
pub(crate) fn bytes(stream: u64, range: Range<usize>) -> Bytes {
    let first = range.start / 8;
    let mut bytes = Vec::with_capacity(range.len() + 16);
    for index in first..range.end.div_ceil(8) {
        bytes.extend_from_slice(&word(stream, index));
    }
    Bytes::from(bytes).slice(range.start - first * 8..range.end - first * 8)
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
    let expected = bytes(stream, at..at + found.len());
    if expected != found {
        let differs = |(one, other)| one != other;
        let offset = expected.iter().zip(found).position(differs);
        panic!(
            "stream {stream}, byte {:?}",
            offset.map(|offset| at + offset)
        );
    }
}
