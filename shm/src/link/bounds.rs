//! What both halves of a link keep to, and the peer must.

#[cfg(not(loom))]
use crate::link::{SMALL_BYTES_MAX, SMALL_QUEUED_MAX};

/// Payloads begin at multiples of this: a cache line, which is also what Arrow recommends.
pub(crate) const UNIT_BYTES: usize = 64;

/// What of the arena is kept for small messages.
#[cfg(not(loom))]
pub(crate) const RESERVE_BYTES: usize =
    SMALL_QUEUED_MAX * SMALL_BYTES_MAX.next_multiple_of(UNIT_BYTES);

/// What both halves of a link keep to, and the peer must.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How many slots may be in flight for a message that is not small.
    pub(crate) messages_max: u64,
    /// What of the arena is kept for small messages.
    pub(crate) reserve: usize,
    /// The largest message.
    pub(crate) claim_max: usize,
}

#[cfg(not(loom))]
impl Bounds {
    pub(crate) fn new(messages_max: usize, arena_bytes: usize) -> Bounds {
        Bounds {
            messages_max: messages_max as u64,
            reserve: RESERVE_BYTES,
            claim_max: claim_max(arena_bytes),
        }
    }
}

/// The largest message in an arena of so many bytes. With half of the arena leased and the reserve
/// kept, a message of this size fits behind the leases even if as much is lost in front of them.
#[cfg(not(loom))]
pub(crate) const fn claim_max(arena_bytes: usize) -> usize {
    let rest = arena_bytes / 2 - RESERVE_BYTES;
    rest / 2 / UNIT_BYTES * UNIT_BYTES
}
