//! Where in the arena the next message goes.
//!
//! Pure arithmetic over positions. A position counts the bytes since the start
//! and never wraps; an offset is where that lies in the arena.

use crate::link::bounds::UNIT_BYTES;
use crate::link::error::{Corrupt, within};

/// A position in the arena and its offset, so that no division finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) position: u64,
    pub(crate) offset: usize,
}

impl Cursor {
    /// Goes on by so many bytes, at most the arena.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize, arena_bytes: usize) {
        debug_assert!(bytes <= arena_bytes);
        self.position += bytes as u64;
        self.offset += bytes;
        if self.offset >= arena_bytes {
            self.offset -= arena_bytes;
        }
    }
}

/// The part of the arena that leases keep: from the first to the last of them, going on at the
/// beginning where it passes the end. Both in bytes, multiples of the unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Pin {
    /// As the word that the consumer publishes.
    pub(crate) fn to_word(self) -> u64 {
        (self.offset / UNIT_BYTES) as u64 | ((self.len / UNIT_BYTES) as u64) << 32
    }

    /// Reads that word, and checks what a producer relies on.
    pub(crate) fn from_word(word: u64, arena_bytes: usize) -> Result<Pin, Corrupt> {
        let units = (arena_bytes / UNIT_BYTES) as u64;
        let (offset, len) = (word & 0xffff_ffff, word >> 32);
        within("leased offset", offset, 0, units - 1)?;
        within("leased length", len, 0, units / 2)?;
        Ok(Pin {
            offset: offset as usize * UNIT_BYTES,
            len: len as usize * UNIT_BYTES,
        })
    }

    /// How far to go from `offset` on to be behind it, where `len` bytes there would touch it;
    /// else 0.
    fn gap_before(&self, offset: usize, len: usize, arena_bytes: usize) -> usize {
        if self.len == 0 || len == 0 {
            return 0;
        }
        let ahead = distance(offset, self.offset, arena_bytes);
        let within = distance(self.offset, offset, arena_bytes) < self.len;
        if within || ahead < len {
            let end = (self.offset + self.len) % arena_bytes;
            distance(offset, end, arena_bytes)
        } else {
            0
        }
    }
}

/// How far it is from one offset forward to another.
pub(crate) fn distance(from: usize, to: usize, arena_bytes: usize) -> usize {
    if to >= from {
        to - from
    } else {
        to + arena_bytes - from
    }
}

/// What a message takes of the arena.
#[inline]
pub(crate) fn padded(len: usize) -> usize {
    len.next_multiple_of(UNIT_BYTES)
}

/// The producer's account of its arena.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) arena_bytes: usize,
    /// The next byte to be written.
    pub(crate) write: Cursor,
    /// Up to where the consumer has given back, as far as is known.
    freed: u64,
    pin: Pin,
}

impl Space {
    pub(crate) fn new(arena_bytes: usize) -> Space {
        Space {
            arena_bytes,
            write: Cursor::default(),
            freed: 0,
            pin: Pin::default(),
        }
    }

    /// The gap to leave before a message of so many bytes, after which at least `reserve` bytes
    /// are left; none if there is no room.
    ///
    /// What begins below `freed` plus the arena overlaps nothing that is queued, and what leases
    /// keep of the rest is gone around.
    #[inline]
    pub(crate) fn place(&self, len: usize, reserve: usize) -> Option<usize> {
        let len = padded(len);
        let mut gap = 0;
        if self.pin.len > 0 {
            gap = self
                .pin
                .gap_before(self.write.offset, len, self.arena_bytes);
        }
        let needed = gap + len + reserve;
        (self.in_flight() + needed <= self.arena_bytes).then_some(gap)
    }

    /// Learns what the consumer gave back.
    pub(crate) fn free(&mut self, freed: u64, pin: Pin) {
        debug_assert!(freed >= self.freed && freed <= self.write.position);
        self.freed = freed;
        self.pin = pin;
    }

    pub(crate) fn freed(&self) -> u64 {
        self.freed
    }

    /// The bytes from the oldest message to the next one.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        (self.write.position - self.freed) as usize
    }

    /// The bytes that neither messages in flight nor leases use.
    pub(crate) fn unused(&self) -> usize {
        (self.arena_bytes - self.in_flight()).saturating_sub(self.pin.len)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ARENA: usize = 64 * UNIT_BYTES;

    fn pin(unit: usize, units: usize) -> Pin {
        Pin {
            offset: unit * UNIT_BYTES,
            len: units * UNIT_BYTES,
        }
    }

    /// Which units a piece touches.
    fn units(offset: usize, len: usize) -> Vec<usize> {
        let touched = offset / UNIT_BYTES..(offset + len).div_ceil(UNIT_BYTES);
        touched.map(|unit| unit % 64).collect()
    }

    #[test]
    fn a_place_never_touches_what_is_queued_or_leased_and_is_the_first_that_does_not() {
        for start in 0..64 {
            for pinned in 0..64 {
                for (units_pinned, len) in [(0, 64), (1, 64), (5, 200), (32, 1024), (32, 1)] {
                    let mut space = Space::new(ARENA);
                    space.write.advance(start * UNIT_BYTES, ARENA);
                    space.free(space.write.position, pin(pinned, units_pinned));
                    // With everything popped there is room, whatever is leased.
                    let gap = space.place(len, 0).unwrap();
                    let place = units(space.write.offset + gap, len);
                    let leased = units(pinned * UNIT_BYTES, units_pinned * UNIT_BYTES);
                    assert!(place.iter().all(|unit| !leased.contains(unit)));
                    let at_once = units(space.write.offset, len);
                    let touches = at_once.iter().any(|unit| leased.contains(unit));
                    assert_eq!(gap > 0, touches, "{start} {pinned} {units_pinned} {len}");
                }
            }
        }
    }

    #[test]
    fn a_place_ends_where_the_oldest_message_begins() {
        let mut space = Space::new(ARENA);
        space.write.advance(ARENA - 2 * UNIT_BYTES, ARENA);
        assert_eq!(space.place(2 * UNIT_BYTES, 0), Some(0));
        assert_eq!(space.place(2 * UNIT_BYTES + 1, 0), None);
        assert_eq!(space.place(UNIT_BYTES, 2 * UNIT_BYTES), None);
        assert_eq!(space.unused(), 2 * UNIT_BYTES);
    }

    #[test]
    fn a_pin_survives_its_word_and_one_that_can_not_be_is_refused() {
        for pin in [pin(0, 0), pin(63, 32), pin(5, 1)] {
            assert_eq!(Pin::from_word(pin.to_word(), ARENA), Ok(pin));
        }
        for wrong in [64, 33 << 32, u64::MAX] {
            assert!(Pin::from_word(wrong, ARENA).is_err());
        }
    }
}
