//! What a segment begins with.

use crate::segment::error::OpenError;

/// The first bytes of every segment.
const MAGIC: u64 = u64::from_le_bytes(*b"RINGWAYM");

/// Raised with every change of what the bytes of a segment mean.
const LAYOUT_VERSION: u32 = 3;

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Role {
    /// Messages, and the position up to which they are there.
    Producer = 1,
    /// The position up to which they were taken.
    Consumer = 2,
    /// Whether an owner of edges sleeps.
    Bell = 3,
}

/// The header as it lies in memory. It is written once, before the descriptor is passed on.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) magic: u64,
    pub(crate) version: u32,
    pub(crate) role: u32,
    /// The size of the whole segment.
    pub(crate) segment_bytes: u64,
    /// The size of the pages that it consists of.
    pub(crate) page_bytes: u64,
    /// How many descriptors of messages it holds: a power of two, or 0.
    pub(crate) slots: u64,
    /// Where the payloads begin, or 0.
    pub(crate) arena_offset: u64,
    /// How many bytes of payloads it holds, or 0.
    pub(crate) arena_bytes: u64,
    /// Not used: 0.
    pub(crate) rest: u64,
}

/// The header as the words that it is copied in.
pub(crate) const HEADER_WORDS: usize = size_of::<Header>() / 8;

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Header>() == 64);
    assert!(offset_of!(Header, magic) == 0);
    assert!(offset_of!(Header, version) == 8);
    assert!(offset_of!(Header, role) == 12);
    assert!(offset_of!(Header, segment_bytes) == 16);
    assert!(offset_of!(Header, page_bytes) == 24);
    assert!(offset_of!(Header, slots) == 32);
    assert!(offset_of!(Header, arena_offset) == 40);
    assert!(offset_of!(Header, arena_bytes) == 48);
    assert!(offset_of!(Header, rest) == 56);
};

impl Header {
    pub(crate) fn new(role: Role) -> Header {
        Header {
            magic: MAGIC,
            version: LAYOUT_VERSION,
            role: role as u32,
            segment_bytes: 0,
            page_bytes: 0,
            slots: 0,
            arena_offset: 0,
            arena_bytes: 0,
            rest: 0,
        }
    }

    pub(crate) fn from_words(words: [u64; HEADER_WORDS]) -> Header {
        let (version, role) = halves(words[1]);
        Header {
            magic: words[0],
            version,
            role,
            segment_bytes: words[2],
            page_bytes: words[3],
            slots: words[4],
            arena_offset: words[5],
            arena_bytes: words[6],
            rest: words[7],
        }
    }

    /// Checks what every segment of a role has in common.
    pub(crate) fn check(&self, role: Role) -> Result<(), OpenError> {
        if self.magic != MAGIC {
            return Err(OpenError::NotASegment);
        }
        if self.version != LAYOUT_VERSION {
            return Err(OpenError::Version {
                theirs: self.version,
                ours: LAYOUT_VERSION,
            });
        }
        if self.role != role as u32 {
            return Err(wrong("role", self.role.into()));
        }
        if !self.page_bytes.is_power_of_two() || self.page_bytes > self.segment_bytes {
            return Err(wrong("page_bytes", self.page_bytes));
        }
        if !self.segment_bytes.is_multiple_of(self.page_bytes) {
            return Err(wrong("segment_bytes", self.segment_bytes));
        }
        Ok(())
    }
}

/// The error of a field that can't be as it is.
pub(crate) fn wrong(field: &'static str, found: u64) -> OpenError {
    OpenError::WrongHeader { field, found }
}

/// A word as the two of 32 bits that lie one behind the other in memory.
fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    )
}
