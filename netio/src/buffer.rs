//! Buffers for the bodies of frames: aligned, filled as bytes arrive, reused.
//!
//! A peer says how long a body is before it sends it, and may be lying. So a large body takes
//! only address space when it is made, and memory page by page as it is filled; nothing is
//! copied when it grows. A [`BodyPool`] keeps what bodies leave behind, up to a bound, because
//! a page of the kernel costs more than its filling.

pub(crate) mod memory;
mod pool;

pub use pool::BodyPool;

use std::fmt;

use bytes::Bytes;

use memory::Memory;
use pool::{Home, Lent};

/// Every body begins at a multiple of this, so that Arrow decodes it where it lies.
pub const BODY_ALIGNMENT: usize = 64;

/// The most that is allocated ahead of the bytes received, in bytes; also the longest body that
/// lies on the heap, since more address space than that is only worth reserving for large ones.
pub const AHEAD_BYTES_MAX: usize = 256 << 10;

/// A body of a pool from this length on has room for [`BEYOND_BYTES_MAX`] bytes behind it.
const BEYOND_FROM: usize = 32 << 10;

/// Bytes that may be received behind a body together with its end: the header of the next
/// frame, so that the body of that one can be received where it belongs too.
pub(crate) const BEYOND_BYTES_MAX: usize = 512;

/// A buffer for one body, of a length that is known before its bytes are there.
///
/// Memory is taken as it is filled: a peer that only claims a length costs address space.
pub struct Body {
    lent: Lent,
    capacity: usize,
}

impl Body {
    /// A buffer for a body of `bytes` bytes, that goes back to the system.
    /// [`BodyPool::body`] makes those that are reused.
    pub fn new(bytes: usize) -> Self {
        Self::of(Memory::ahead(bytes), bytes, Home::none())
    }

    pub(in crate::buffer) fn of(memory: Memory, bytes: usize, home: Home) -> Self {
        Self {
            lent: Lent::new(memory, home),
            capacity: bytes,
        }
    }

    /// The length of the body.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What has been filled.
    pub fn filled(&self) -> &[u8] {
        self.lent.as_ref()
    }

    /// How many bytes are missing.
    pub fn remaining(&self) -> usize {
        self.capacity - self.lent.filled
    }

    /// Appends bytes.
    ///
    /// # Panics
    /// If they are more than are missing.
    pub fn extend_from_slice(&mut self, mut bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "beyond the body");
        while !bytes.is_empty() {
            let spare = self.spare();
            let taken = spare.len().min(bytes.len());
            spare[..taken].copy_from_slice(&bytes[..taken]);
            self.advance(taken);
            bytes = &bytes[taken..];
        }
    }

    /// Where the next bytes belong: what is missing, or, where address space could not be
    /// reserved, the part of it that there is room for. Empty only when nothing is missing.
    ///
    /// Its content means nothing; what a driver puts there counts after [`Body::advance`].
    /// It stays where it is until then, also when the body is moved.
    pub fn spare(&mut self) -> &mut [u8] {
        let filled = self.lent.filled;
        if filled == self.lent.memory.len() && filled < self.capacity {
            self.lent.memory.grow(filled, self.capacity);
        }
        let end = self.lent.memory.len().min(self.capacity);
        &mut self.lent.memory.as_mut_slice()[filled..end]
    }

    /// The first `bytes` bytes of [`Body::spare`] have been filled.
    ///
    /// # Panics
    /// If there was no room for as many.
    pub fn advance(&mut self, bytes: usize) {
        let end = self.lent.memory.len().min(self.capacity);
        assert!(bytes <= end - self.lent.filled, "beyond the body");
        self.lent.filled += bytes;
    }

    /// As [`Body::spare`], with some room behind the body for what follows it, where its memory
    /// has such.
    pub(crate) fn spare_and_beyond(&mut self) -> &mut [u8] {
        let (filled, missing) = (self.lent.filled, self.remaining());
        let spare = self.spare().len();
        let beyond = match spare == missing {
            true => (self.lent.memory.len() - self.capacity).min(BEYOND_BYTES_MAX),
            false => 0,
        };
        &mut self.lent.memory.as_mut_slice()[filled..filled + spare + beyond]
    }

    /// The first `bytes` bytes of [`Body::spare_and_beyond`] have been filled. Returns those
    /// that are no part of the body.
    ///
    /// # Panics
    /// If there was no room for as many.
    pub(crate) fn advance_beyond(&mut self, bytes: usize) -> &[u8] {
        let own = bytes.min(self.remaining());
        self.advance(own);
        self.lent.touch(self.lent.filled + bytes - own);
        &self.lent.memory.as_slice()[self.lent.filled..self.lent.filled + bytes - own]
    }

    /// The complete body, which goes back to its pool when the last that refers to it is
    /// dropped, on whatever thread.
    ///
    /// # Panics
    /// If bytes are missing.
    pub fn freeze(self) -> Bytes {
        assert_eq!(self.remaining(), 0, "an incomplete body");
        if self.capacity == 0 {
            return Bytes::new();
        }
        Bytes::from_owner(self.lent)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("filled", &self.lent.filled)
            .field("capacity", &self.capacity)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resident memory of the process, in bytes.
    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * rustix::param::page_size()
    }

    fn is_aligned(bytes: &[u8]) -> bool {
        bytes.as_ptr().addr().is_multiple_of(BODY_ALIGNMENT)
    }

    #[test]
    fn a_body_of_any_length_is_aligned_and_holds_what_was_put_into_it() {
        let pool = BodyPool::new(1 << 20);
        for len in [
            1,
            63,
            64,
            4095,
            4097,
            100_000,
            AHEAD_BYTES_MAX,
            300_000,
            5 << 20,
        ] {
            for mut body in [Body::new(len), pool.body(len)] {
                assert_eq!((body.capacity(), body.remaining()), (len, len));
                let pattern: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
                for part in pattern.chunks(70_000) {
                    body.extend_from_slice(part);
                }
                assert_eq!(body.filled(), pattern);
                assert!(body.spare().is_empty());
                let address = body.filled().as_ptr();
                let frozen = body.freeze();
                assert_eq!(frozen, pattern);
                assert!(is_aligned(&frozen), "{len}");
                assert_eq!(frozen.as_ptr(), address, "frozen without a copy");
            }
        }
    }

    #[test]
    fn a_body_of_nothing_is_complete() {
        let mut body = Body::new(0);
        assert!(body.spare().is_empty());
        assert!(body.freeze().is_empty());
    }

    #[test]
    fn a_large_body_does_not_move_when_it_grows() {
        let mut body = Body::new(8 << 20);
        let first = body.spare().as_ptr();
        assert_eq!(body.spare().len(), 8 << 20);
        for _ in 0..8 {
            body.extend_from_slice(&vec![7; 1 << 20]);
        }
        assert_eq!(body.freeze().as_ptr(), first);
    }

    #[test]
    fn a_claimed_length_takes_no_memory_ahead_of_its_bytes() {
        const CLAIMED: usize = 256 << 20;
        let mut bodies = Vec::new();
        for _ in 0..8 {
            let mut body = Body::new(CLAIMED);
            body.extend_from_slice(b"ten bytes!");
            bodies.push(body);
        }
        for body in &bodies {
            let touched = memory::tests::resident_bytes_of(&body.lent.memory);
            assert!(touched <= AHEAD_BYTES_MAX, "{touched} bytes for ten");
        }
        // The other tests of this process take some, but not what eight such claims are.
        assert!(resident_bytes() < CLAIMED);
    }

    #[test]
    fn filling_straight_into_the_spare_part_counts_after_the_advance() {
        let mut body = Body::new(300_000);
        body.spare()[..3].copy_from_slice(b"abc");
        assert_eq!(body.filled(), b"");
        body.advance(2);
        assert_eq!(body.filled(), b"ab");
        assert_eq!(body.remaining(), 299_998);
        body.extend_from_slice(b"xyz");
        assert_eq!(body.filled(), b"abxyz");
    }

    #[test]
    #[should_panic(expected = "beyond the body")]
    fn more_than_the_length_is_refused() {
        Body::new(3).extend_from_slice(b"four");
    }

    #[test]
    #[should_panic(expected = "an incomplete body")]
    fn an_incomplete_body_is_not_given_out() {
        let mut body = Body::new(3);
        body.extend_from_slice(b"ab");
        body.freeze();
    }

    #[test]
    fn without_address_space_a_body_grows_by_copying_and_still_takes_little_ahead() {
        let len = 3 << 20;
        let mut body = Body::of(Memory::heap(AHEAD_BYTES_MAX), len, Home::none());
        let pattern: Vec<u8> = (0..len).map(|index| (index % 241) as u8).collect();
        for part in pattern.chunks(100_000) {
            body.extend_from_slice(part);
            let ahead = body.lent.memory.len() - body.filled().len();
            assert!(ahead <= AHEAD_BYTES_MAX, "{ahead} bytes ahead");
            assert!(is_aligned(body.filled()));
        }
        assert_eq!(body.freeze(), pattern);
    }
}
