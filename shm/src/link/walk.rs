//! Reading the words of messages one after the other, and believing none of them.

use crate::link::arena::{Cursor, padded};
use crate::link::bounds::UNIT_BYTES;
use crate::link::error::{Corrupt, within};
use crate::link::side::ProducerSide;
use crate::link::words::{KIND_GAP, newest_if, parts_of};
use crate::sync::Ordering;

/// Where a reader is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    /// The number of the next slot.
    pub(crate) slot: u64,
    /// The number of the next message.
    pub(crate) message: u64,
    /// Where the next message lies, unless a gap is before it.
    pub(crate) place: Cursor,
}

/// How far a reader may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many slots are published.
    pub(crate) tail: u64,
    /// The position that no message may pass, because the producer has no room there.
    pub(crate) end: u64,
    pub(crate) claim_max: usize,
    /// What the producer said beside the tail of the slot that was its last then.
    pub(crate) newest: u64,
}

/// A message that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) kind: u32,
    pub(crate) position: u64,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Walk {
    /// Goes on by one message; the caller knows that one is published. What it returns is
    /// within the arena, whatever the producer wrote.
    #[inline]
    pub(crate) fn step(&mut self, side: &ProducerSide, limits: &Limits) -> Result<Found, Corrupt> {
        debug_assert!(self.slot < limits.tail);
        let word = match newest_if(self.slot, limits.newest) {
            Some(word) => word,
            // Relaxed: whoever sees the tail sees the slots below it.
            None => side.slot(self.slot).load(Ordering::Relaxed),
        };
        let (mut kind, mut len) = parts_of(word);
        if kind == KIND_GAP {
            (kind, len) = self.pass(side, limits, len)?;
        }
        within(
            "length of a message",
            len as u64,
            0,
            limits.claim_max as u64,
        )?;
        let found = Found {
            kind,
            position: self.message,
            offset: self.place.offset,
            len,
        };
        self.advance(side, limits, padded(len))?;
        self.slot += 1;
        self.message += 1;
        Ok(found)
    }

    /// Goes on behind a gap to the word of the message that must follow it.
    #[cold]
    fn pass(
        &mut self,
        side: &ProducerSide,
        limits: &Limits,
        gap: usize,
    ) -> Result<(u32, usize), Corrupt> {
        let arena_bytes = side.arena_bytes() as u64;
        within("gap between messages", gap as u64, 1, arena_bytes)?;
        within("rest of a gap", (gap % UNIT_BYTES) as u64, 0, 0)?;
        self.advance(side, limits, gap)?;
        self.slot += 1;
        within("gap before the end", self.slot, 0, limits.tail - 1)?;
        let (kind, len) = parts_of(side.slot(self.slot).load(Ordering::Relaxed));
        within("kind behind a gap", kind.into(), 0, (KIND_GAP - 1).into())?;
        Ok((kind, len))
    }

    #[inline]
    fn advance(
        &mut self,
        side: &ProducerSide,
        limits: &Limits,
        bytes: usize,
    ) -> Result<(), Corrupt> {
        let end = self.place.position + bytes as u64;
        within("end of a message", end, 0, limits.end)?;
        self.place.advance(bytes, side.arena_bytes());
        Ok(())
    }
}
