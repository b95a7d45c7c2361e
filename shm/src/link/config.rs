//! How large a link is.

use crate::link::{SMALL_BYTES_MAX, SMALL_QUEUED_MAX};
use crate::segment::{Pages, Shape};

/// Payloads begin at multiples of this: a cache line, which is also what Arrow recommends.
pub(crate) const UNIT_BYTES: usize = 64;

/// What of the arena is kept for small messages.
pub(crate) const RESERVE_BYTES: usize =
    SMALL_QUEUED_MAX * SMALL_BYTES_MAX.next_multiple_of(UNIT_BYTES);

/// A smaller arena would consist of the reserve alone.
const ARENA_BYTES_MIN: usize = 4 * RESERVE_BYTES;

/// A larger one could not be told of in units in half a word.
const ARENA_BYTES_MAX: usize = 1 << 30;

/// More messages than this in flight don't make a link faster.
const MESSAGES_MAX: usize = 1 << 16;

const _: () = assert!(ARENA_BYTES_MAX / UNIT_BYTES < u32::MAX as usize);
const _: () = assert!(claim_max(ARENA_BYTES_MAX) < u32::MAX as usize);
const _: () = assert!(claim_max(ARENA_BYTES_MIN) >= SMALL_BYTES_MAX);

/// How large the link is that a producer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bytes for payloads: 256 KiB to 1 GiB, rounded up to pages. Default: 4 MiB.
    pub arena_bytes: usize,
    /// How many messages may be in flight: 1 to 65536. Default: 1024.
    pub messages_max: usize,
    /// Which pages to ask for. Default: normal ones.
    pub pages: Pages,
}

impl LinkConfig {
    /// The bytes of the largest message. A bit less than a quarter of the arena: half may be
    /// leased, and what is left must hold the largest message wherever the leases lie.
    pub fn claim_max_bytes(&self) -> usize {
        claim_max(self.arena_bytes())
    }

    /// The memory that the producer's segment takes, in bytes, if it gets normal pages.
    pub fn segment_bytes(&self) -> usize {
        self.shape(rustix::param::page_size()).segment_bytes
    }

    /// Where the parts lie in a segment of such pages.
    pub(crate) fn shape(&self, page_bytes: usize) -> Shape {
        Shape::messages(page_bytes, self.slots(), self.arena_bytes())
    }

    /// How many messages may be in flight, within the bounds.
    pub(crate) fn messages_max(&self) -> usize {
        self.messages_max.clamp(1, MESSAGES_MAX)
    }

    fn arena_bytes(&self) -> usize {
        self.arena_bytes.clamp(ARENA_BYTES_MIN, ARENA_BYTES_MAX)
    }

    /// Each message takes a slot, and one more if it doesn't follow the last in the arena.
    fn slots(&self) -> usize {
        (2 * (self.messages_max() + SMALL_QUEUED_MAX)).next_power_of_two()
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            arena_bytes: 4 << 20,
            messages_max: 1024,
            pages: Pages::Normal,
        }
    }
}

/// The largest message in an arena of so many bytes. With half of the arena leased and the reserve
/// kept, a message of this size fits behind the leases even if as much is lost in front of them.
pub(crate) const fn claim_max(arena_bytes: usize) -> usize {
    let rest = arena_bytes / 2 - RESERVE_BYTES;
    rest / 2 / UNIT_BYTES * UNIT_BYTES
}
