//! How large a link is.

use crate::link::bounds::{RESERVE_BYTES, UNIT_BYTES, claim_max};
use crate::link::{SMALL_BYTES_MAX, SMALL_QUEUED_MAX};
use crate::segment::{Pages, Shape};

/// The smallest arena, in bytes: a smaller one would be little more than what is kept for small
/// messages.
pub const ARENA_BYTES_MIN: usize = 4 * RESERVE_BYTES;

/// The largest arena, in bytes: offsets in it and lengths fit into half a word.
pub const ARENA_BYTES_MAX: usize = 1 << 30;

/// The most messages in flight that may be asked for: more don't make a link faster.
pub const MESSAGES_MAX: usize = 1 << 16;

const _: () = assert!(ARENA_BYTES_MAX / UNIT_BYTES < u32::MAX as usize);
const _: () = assert!(claim_max(ARENA_BYTES_MAX) < u32::MAX as usize);
const _: () = assert!(claim_max(ARENA_BYTES_MIN) >= SMALL_BYTES_MAX);

/// How large the link is that a producer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bytes for payloads: [`ARENA_BYTES_MIN`] (256 KiB) to [`ARENA_BYTES_MAX`] (1 GiB), or the
    /// nearer of the two, rounded up to pages. Default: 4 MiB.
    pub arena_bytes: usize,
    /// How many messages may be in flight: 1 to [`MESSAGES_MAX`] (65536), or the nearer of the
    /// two. Default: 1024.
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
        (self.messages_max() + 2 * (1 + SMALL_QUEUED_MAX)).next_power_of_two()
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
