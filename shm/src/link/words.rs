//! The words by which the two sides of a link tell each other where they are.

use crate::link::SMALL_BYTES_MAX;
use crate::link::error::{Corrupt, within};
use crate::sync::{AtomicU64, Ordering};

/// What stands in place of a kind where a word is no message but a gap in the arena.
pub(crate) const KIND_GAP: u32 = u32::MAX;

const NEWEST_KIND_BITS: u32 = 8;
const NEWEST_LEN_BITS: u32 = 24;

/// Turned in the half of a tail, it makes that of a slot 2^31 away: far beyond all that can be in
/// flight.
const NEWEST_FOR_NONE: u64 = 1 << 31;

const LETTER_WORDS: usize = SMALL_BYTES_MAX / 8;

/// Written by the producer. The letter lies apart from the positions, because those are polled.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct ProducerWords {
    /// How many slots were published.
    pub(crate) tail: AtomicU64,
    /// How many letters were put.
    pub(crate) letters: AtomicU64,
    /// Whether the producer waits for room.
    pub(crate) waiting: AtomicU64,
    /// The last slot that was published: see [`newest_of`].
    pub(crate) newest: AtomicU64,
    apart: [u64; 12],
    pub(crate) letter: LetterWords,
}

/// Written by the consumer.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct ConsumerWords {
    /// How many slots were taken.
    pub(crate) head: AtomicU64,
    /// Up to where the arena was given back, in bytes since the start.
    pub(crate) freed: AtomicU64,
    /// What leases keep of it all the same: see [`Pin`].
    pub(crate) pin: AtomicU64,
    /// How many letters were taken.
    pub(crate) letters_taken: AtomicU64,
    apart: [u64; 476],
    /// Whether the consumer takes no more, for the reason in the letter. It is written once, and
    /// looked at for every message, so it lies in a page of its own: where it did not, the
    /// processor fetched the words above ahead with it, and the consumer had to take them back.
    pub(crate) closed: AtomicU64,
    pub(crate) letter: LetterWords,
}

/// The message beside the queue. It belongs to the producer until it is put and to the consumer
/// until it is taken.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LetterWords {
    slot: AtomicU64,
    position: AtomicU64,
    bytes: [AtomicU64; LETTER_WORDS],
}

#[cfg(not(loom))]
const _: () = {
    use crate::segment::{Header, RETURNS_BYTES, SLOTS_OFFSET, WORDS_OFFSET};
    use core::mem::offset_of;
    assert!(SMALL_BYTES_MAX.is_multiple_of(8));
    assert!(offset_of!(ProducerWords, tail) == 0);
    assert!(offset_of!(ProducerWords, letters) == 8);
    assert!(offset_of!(ProducerWords, waiting) == 16);
    assert!(offset_of!(ProducerWords, newest) == 24);
    assert!(offset_of!(ProducerWords, letter) == 128);
    assert!(offset_of!(LetterWords, slot) == 0);
    assert!(offset_of!(LetterWords, position) == 8);
    assert!(offset_of!(LetterWords, bytes) == 16);
    assert!(offset_of!(ConsumerWords, head) == 0);
    assert!(offset_of!(ConsumerWords, freed) == 8);
    assert!(offset_of!(ConsumerWords, pin) == 16);
    assert!(offset_of!(ConsumerWords, letters_taken) == 24);
    assert!(WORDS_OFFSET + offset_of!(ConsumerWords, closed) == 4096);
    assert!(WORDS_OFFSET + offset_of!(ConsumerWords, letter) == 4104);
    assert!(WORDS_OFFSET + size_of::<ConsumerWords>() <= RETURNS_BYTES);
    assert!(WORDS_OFFSET.is_multiple_of(align_of::<ProducerWords>()));
    assert!(WORDS_OFFSET >= size_of::<Header>());
    assert!(WORDS_OFFSET + size_of::<ProducerWords>() <= SLOTS_OFFSET);
};

impl LetterWords {
    /// Writes the letter. The caller is the producer and knows that the last one was taken.
    pub(crate) fn write(&self, kind: u32, position: u64, bytes: &[u8]) {
        // All Relaxed: the count of letters is published behind them.
        self.slot
            .store(slot_of(kind, bytes.len()), Ordering::Relaxed);
        self.position.store(position, Ordering::Relaxed);
        for (word, piece) in self.bytes.iter().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..piece.len()].copy_from_slice(piece);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
    }

    /// The position of the letter. The caller is the consumer and has seen that it was put.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Copies the letter out: its kind and how long it is. The caller is as above.
    pub(crate) fn read(&self, bytes: &mut [u8; SMALL_BYTES_MAX]) -> Result<(u32, usize), Corrupt> {
        let (kind, len) = parts_of(self.slot.load(Ordering::Relaxed));
        within(
            "length of a priority message",
            len as u64,
            0,
            SMALL_BYTES_MAX as u64,
        )?;
        let (pieces, _) = bytes.as_chunks_mut::<8>();
        for (word, piece) in self.bytes.iter().zip(pieces).take(len.div_ceil(8)) {
            *piece = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Ok((kind, len))
    }
}

/// The word of a message: its kind and its length in bytes.
#[inline]
pub(crate) fn slot_of(kind: u32, len: usize) -> u64 {
    debug_assert!(u32::try_from(len).is_ok());
    u64::from(kind) << 32 | len as u64
}

/// The reverse of [`slot_of`].
#[inline]
pub(crate) fn parts_of(slot: u64) -> (u32, usize) {
    ((slot >> 32) as u32, (slot & 0xffff_ffff) as usize)
}

/// The word of the last slot below `tail`, for the line of the tail: who reads one message at a
/// time finds it there, and the line of the slots stays with the producer. The lower half of the
/// tail is above it, so that it is known for which slot it is. A kind or a length that has no room
/// here is left to the slot: then it is for none that is in flight.
#[inline]
pub(crate) fn newest_of(tail: u64, slot: u64) -> u64 {
    let (kind, len) = parts_of(slot);
    if kind < 1 << NEWEST_KIND_BITS && len < 1 << NEWEST_LEN_BITS {
        tail << 32 | u64::from(kind) << NEWEST_LEN_BITS | len as u64
    } else {
        (tail ^ NEWEST_FOR_NONE) << 32
    }
}

/// The reverse of [`newest_of`], if it is for the slot with this number. What it says is to be
/// checked as that of a slot is.
#[inline]
pub(crate) fn newest_if(number: u64, newest: u64) -> Option<u64> {
    let kind = newest >> NEWEST_LEN_BITS & ((1 << NEWEST_KIND_BITS) - 1);
    let len = newest & ((1 << NEWEST_LEN_BITS) - 1);
    let tail = number.wrapping_add(1);
    ((newest >> 32) as u32 == tail as u32).then_some(kind << 32 | len)
}

#[cfg(loom)]
impl ProducerWords {
    pub(crate) fn new() -> ProducerWords {
        ProducerWords {
            tail: AtomicU64::new(0),
            letters: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            apart: [0; 12],
            letter: LetterWords::new(),
        }
    }
}

#[cfg(loom)]
impl LetterWords {
    fn new() -> LetterWords {
        LetterWords {
            slot: AtomicU64::new(0),
            position: AtomicU64::new(0),
            bytes: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

#[cfg(loom)]
impl ConsumerWords {
    pub(crate) fn new() -> ConsumerWords {
        ConsumerWords {
            head: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            pin: AtomicU64::new(0),
            letters_taken: AtomicU64::new(0),
            apart: [0; 476],
            closed: AtomicU64::new(0),
            letter: LetterWords::new(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_newest_slot_is_told_beside_the_tail_for_that_slot_alone() {
        for number in [0, 1, 77, u64::from(u32::MAX), u64::from(u32::MAX) + 1] {
            for (kind, len) in [(0, 0), (1, 64), (255, (1 << 24) - 1)] {
                let slot = slot_of(kind, len);
                let newest = newest_of(number + 1, slot);
                assert_eq!(newest_if(number, newest), Some(slot));
                for other in [number + 1, number + 2, number.wrapping_sub(1)] {
                    assert_eq!(newest_if(other, newest), None, "{other}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_room_beside_the_tail_is_told_for_no_slot_in_flight() {
        // No link has so many slots.
        const SLOTS: u64 = 1 << 18;
        for turn in [SLOTS, 1 << 31, u64::from(u32::MAX), 1 << 32, 5 << 31] {
            for tail in turn - 3..=turn + 3 {
                for (kind, len) in [(256, 0), (0, 1 << 24), (KIND_GAP, 64)] {
                    let newest = newest_of(tail, slot_of(kind, len));
                    for number in tail.saturating_sub(SLOTS)..tail {
                        assert_eq!(newest_if(number, newest), None, "{number} at {tail}");
                    }
                }
            }
        }
    }
}
