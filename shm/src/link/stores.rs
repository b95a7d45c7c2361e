//! Copying into a segment, through the caches or past them.
//!
//! A plain store into a line that the reader has read must first take the line
//! back from it, which is what limits a ring. A streaming store does not, but
//! sends the bytes to memory, from where the reader fetches them: faster where
//! the reader's core shares no cache with the writer's, or where the segment
//! is so small that each of its lines was just read.

use std::fs;
use std::sync::OnceLock;

use crate::sync::AtomicU64;
#[cfg(any(not(target_arch = "x86_64"), loom))]
use crate::sync::Ordering;

/// How bytes are copied into the segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stores {
    /// By the size and the [placement](crate::link::Placement), whichever is faster.
    #[default]
    Auto,
    /// Through the caches.
    Plain,
    /// Past the caches, where the machine has such stores.
    Streaming,
}

/// Where the reader is near and the segment fits the cache, streaming saves more than the fence
/// behind it costs from here on.
pub(crate) const STREAMED_NEAR_BYTES_MIN: usize = 4096;

/// Where the reader is far, every whole line is worth it.
pub(crate) const STREAMED_FAR_BYTES_MIN: usize = LINE_BYTES;

/// Where the kernel tells the size of the cache that a core has for itself.
const CACHE_SIZE_PATH: &str = "/sys/devices/system/cpu/cpu0/cache/index2/size";

/// Assumed where it doesn't.
const CACHE_BYTES: usize = 1 << 20;

/// What is streamed is whole cache lines: a part of one would be sent as a part, and again when
/// the rest of it is stored.
const LINE_BYTES: usize = 64;

/// What one streaming store holds.
#[cfg(target_arch = "x86_64")]
const LANE_BYTES: usize = 16;

/// The size of the cache that a core has for itself.
pub(crate) fn cache_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let text = fs::read_to_string(CACHE_SIZE_PATH).unwrap_or_default();
        parse_size(text.trim()).unwrap_or(CACHE_BYTES)
    })
}

/// Copies past the caches. The caller executes [`settle`] before it publishes.
///
/// # Panics
///
/// If the slices differ in length.
pub(crate) fn copy_streaming(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len());
    let head = to.as_ptr().align_offset(LINE_BYTES).min(to.len());
    let (to_head, to_rest) = to.split_at_mut(head);
    let (from_head, from_rest) = from.split_at(head);
    to_head.copy_from_slice(from_head);
    let body = to_rest.len() / LINE_BYTES * LINE_BYTES;
    let (to_body, to_tail) = to_rest.split_at_mut(body);
    let (from_body, from_tail) = from_rest.split_at(body);
    stream_lines(to_body, from_body);
    to_tail.copy_from_slice(from_tail);
}

/// Stores a word past the caches. The caller executes [`settle`] before it publishes.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline]
pub(crate) fn stream_word(to: &AtomicU64, word: u64) {
    use core::arch::x86_64::_mm_stream_si64;
    // SAFETY: it is one aligned store of eight bytes, as an atomic one is; `settle` orders it.
    unsafe { _mm_stream_si64(to.as_ptr().cast(), word as i64) };
}

#[cfg(any(not(target_arch = "x86_64"), loom))]
pub(crate) fn stream_word(to: &AtomicU64, word: u64) {
    to.store(word, Ordering::Relaxed);
}

/// Makes streaming stores visible before what is stored next.
#[inline]
pub(crate) fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has it, and it accesses nothing.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    };
}

/// Both are of whole lines, and the destination is aligned.
#[cfg(target_arch = "x86_64")]
fn stream_lines(to: &mut [u8], from: &[u8]) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    debug_assert!(to.is_empty() || to.as_ptr().cast::<__m128i>().is_aligned());
    let (to_lanes, _) = to.as_chunks_mut::<LANE_BYTES>();
    let (from_lanes, _) = from.as_chunks::<LANE_BYTES>();
    for (to, from) in to_lanes.iter_mut().zip(from_lanes) {
        // SAFETY: each is a lane long, and the first lane is aligned, so all are. Until `settle`
        // nobody but this thread reads what is stored.
        unsafe {
            let lane = _mm_loadu_si128(from.as_ptr().cast());
            _mm_stream_si128(to.as_mut_ptr().cast(), lane);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn stream_lines(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

/// A size as the kernel writes it: `1024K`.
fn parse_size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_are_read_as_the_kernel_writes_them() {
        let sizes = [
            "1024K",
            "1M",
            "512",
            "",
            "K",
            "-1K",
            "99999999999999999999M",
        ];
        let read = sizes.map(parse_size);
        let (mebibyte, none) = (Some(1 << 20), None);
        assert_eq!(
            read,
            [mebibyte, mebibyte, Some(512), none, none, none, none]
        );
        assert!(cache_bytes() > 0);
    }
}
