//! The memory of either side, mapped.

use core::ptr::NonNull;
use core::slice;

use crate::link::words::{ConsumerWords, ProducerWords};
use crate::segment::{Map, SLOTS_OFFSET, Shape, WORDS_OFFSET};
use crate::sync::AtomicU64;

/// The producer's segment, in either process.
#[derive(Debug)]
pub(crate) struct ProducerSide {
    words: NonNull<ProducerWords>,
    slots: NonNull<AtomicU64>,
    slot_mask: u64,
    arena: NonNull<u8>,
    arena_bytes: usize,
    /// Keeps all of the above in place.
    _map: Map,
}

// SAFETY: the pointers are into the mapping, which belongs to the process. Words and slots are
// atomics; the arena is accessed by the contracts of `bytes` and `bytes_mut`.
unsafe impl Send for ProducerSide {}
// SAFETY: as for Send.
unsafe impl Sync for ProducerSide {}

impl ProducerSide {
    /// The shape is that of the mapping: `Own` and `inspect` give both together.
    pub(crate) fn new(map: Map, shape: &Shape) -> ProducerSide {
        assert!(shape.slots.is_power_of_two() && shape.arena_bytes > 0);
        ProducerSide {
            words: map.at(WORDS_OFFSET).cast(),
            slots: map.at(SLOTS_OFFSET).cast(),
            slot_mask: shape.slots as u64 - 1,
            arena: map.at(shape.arena_offset),
            arena_bytes: shape.arena_bytes,
            _map: map,
        }
    }

    #[inline]
    pub(crate) fn words(&self) -> &ProducerWords {
        // SAFETY: the words lie below the slots, aligned, and are all atomics.
        unsafe { self.words.as_ref() }
    }

    pub(crate) fn slots(&self) -> u64 {
        self.slot_mask + 1
    }

    /// The word of the message with this number, counted from the start.
    #[inline]
    pub(crate) fn slot(&self, number: u64) -> &AtomicU64 {
        let index = (number & self.slot_mask) as usize;
        // SAFETY: there are mask + 1 slots, aligned, and they are atomics.
        unsafe { self.slots.add(index).as_ref() }
    }

    pub(crate) fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// Asks for the bytes at `offset`, which are looked at soon.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = self.arena.as_ptr().wrapping_add(offset);
            // SAFETY: a prefetch accesses nothing, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Where the message at `offset` lies: in one piece, also where it passes the end of the
    /// arena.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<[u8]> {
        assert!(offset < self.arena_bytes && len <= self.arena_bytes);
        // SAFETY: the arena is mapped twice, one behind the other, so that all of the arena
        // follows whatever offset in it.
        let first = unsafe { self.arena.add(offset) };
        NonNull::slice_from_raw_parts(first, len)
    }

    /// A message for reading.
    ///
    /// # Safety
    ///
    /// The caller is the consumer, has seen that the message was published, and does not give its
    /// space back while the bytes are in use; or it is the producer and may write there. A
    /// producer that writes there all the same breaks the rules of the language, too:
    /// `docs/SHARED_MEMORY.md` says what that can do.
    #[inline]
    pub(crate) unsafe fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let at = self.at(offset, len);
        // SAFETY: `at` is within the mapping, which `self` keeps; by the contract nobody writes.
        unsafe { slice::from_raw_parts(at.as_ptr().cast(), len) }
    }

    /// A message for writing.
    ///
    /// # Safety
    ///
    /// The caller is the producer, this is the mapping of its own segment, nothing else in its
    /// process refers to these bytes, and the consumer has given them back.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "the contract makes it the only reference"
    )]
    pub(crate) unsafe fn bytes_mut(&self, offset: usize, len: usize) -> &mut [u8] {
        let at = self.at(offset, len);
        // SAFETY: as in `bytes`, and by the contract this is the only reference.
        unsafe { slice::from_raw_parts_mut(at.as_ptr().cast(), len) }
    }
}

/// The consumer's segment, in either process.
#[derive(Debug)]
pub(crate) struct ConsumerSide {
    words: NonNull<ConsumerWords>,
    /// Keeps the words in place.
    _map: Map,
}

// SAFETY: the pointer is into the mapping, which belongs to the process, and to atomics.
unsafe impl Send for ConsumerSide {}
// SAFETY: as for Send; all its words are atomics.
unsafe impl Sync for ConsumerSide {}

impl ConsumerSide {
    pub(crate) fn new(map: Map) -> ConsumerSide {
        ConsumerSide {
            words: map.at(WORDS_OFFSET).cast(),
            _map: map,
        }
    }

    #[inline]
    pub(crate) fn words(&self) -> &ConsumerWords {
        // SAFETY: a segment of this role holds the words, aligned, and they are all atomics.
        unsafe { self.words.as_ref() }
    }
}
