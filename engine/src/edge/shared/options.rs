//! What an edge over shared memory is opened with.

use ringway_shm::link::{ARENA_BYTES_MAX, LinkConfig};
use ringway_shm::segment::Pages;

use crate::edge::EdgeOptions;

/// Messages in flight beyond the data of an edge: control elements have room of their own, and
/// large batches become several messages.
const MESSAGES_MORE: usize = 64;

/// The environment variable that switches shared memory off for the whole process, if it is set
/// to anything but the empty text and `0`: edges between processes go over sockets then.
pub const DISABLE_SHARED_VARIABLE: &str = "RINGWAY_DISABLE_SHARED";

/// Whether the environment of this process switches shared memory off.
pub(crate) fn is_disabled() -> bool {
    let value = std::env::var_os(DISABLE_SHARED_VARIABLE);
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Bytes of a segment that nobody has chosen: with less, rows of usual sizes would be copied.
const SEGMENT_BYTES_MIN: usize = 1 << 20;

/// The largest segment that there is: an arena, and as much again for what tells of its messages.
/// That takes a megabyte, but a page where pages are larger, and those are of 1 GiB at most.
const PEER_SEGMENT_BYTES_MAX: usize = 2 * ARENA_BYTES_MAX;

/// Whether an edge may be over shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Never. The default of connections that are handed in.
    #[default]
    Off,
    /// Where the peer proves to be on this host, and both ends can.
    Prefer,
    /// Nothing else: an edge that can't fails, and says why.
    Require,
}

/// What an edge over shared memory is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedOptions {
    /// Whether it may be. Default: not.
    pub sharing: Sharing,
    /// Bytes of the segment that batches are written to (sender). It is taken from the system
    /// when the edge is opened. A row that takes more than a bit less than a quarter of it is copied
    /// on both sides, and may be as large as the receiver's edge holds. Default: as much as the edge
    /// holds, 1 MiB at least and 4 MiB at most.
    pub segment_bytes: Option<usize>,
    /// Bytes of the largest segment of a peer that is taken (receiver). It is a bit larger than
    /// the `segment_bytes` of the peer, by what tells of its messages, and by more with huge
    /// pages. Default: 2 GiB, so that any is taken.
    pub segment_bytes_max: usize,
    /// Whether to ask for huge pages (sender). Where there are none, normal ones are used, and
    /// a warning says so. Default: no.
    pub huge_pages: bool,
    /// Whether batches use no memory of the segment (receiver), so that not even numbers can
    /// change while they are computed with. Peers of other users are taken only so; they can still
    /// disturb the waking of the thread that has the edge. Default: no.
    pub copies: bool,
}

impl Default for SharedOptions {
    fn default() -> Self {
        Self {
            sharing: Sharing::default(),
            segment_bytes: None,
            segment_bytes_max: PEER_SEGMENT_BYTES_MAX,
            huge_pages: false,
            copies: false,
        }
    }
}

impl SharedOptions {
    /// The defaults, with shared memory wanted so.
    pub fn sharing(sharing: Sharing) -> Self {
        Self {
            sharing,
            ..Self::default()
        }
    }

    /// How large the link of an edge is.
    pub(in crate::edge) fn link(&self, edge: &EdgeOptions) -> LinkConfig {
        let default = LinkConfig::default();
        LinkConfig {
            arena_bytes: self
                .segment_bytes
                .unwrap_or_else(|| edge.bytes_max.clamp(SEGMENT_BYTES_MIN, default.arena_bytes)),
            messages_max: edge.capacity_elements.saturating_add(MESSAGES_MORE),
            pages: match self.huge_pages {
                true => Pages::Huge,
                false => Pages::Normal,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use ringway_shm::link::MESSAGES_MAX;

    use super::*;

    #[test]
    fn by_default_a_receiver_takes_the_largest_segment_that_a_sender_makes() {
        let options = SharedOptions {
            segment_bytes: Some(ARENA_BYTES_MAX),
            ..SharedOptions::default()
        };
        for messages in [1, MESSAGES_MAX, usize::MAX] {
            let link = options.link(&EdgeOptions::named("edge").capacity(messages));
            let bytes = link.segment_bytes();
            assert!(bytes > ARENA_BYTES_MAX, "there is more than the arena");
            assert!(bytes <= options.segment_bytes_max, "{bytes}");
            // Where pages are huge, each part is filled up to one.
            let beside = bytes - ARENA_BYTES_MAX;
            for page in [2 << 20, 32 << 20, 512 << 20, 1 << 30] {
                let huge = beside.next_multiple_of(page) + ARENA_BYTES_MAX.next_multiple_of(page);
                assert!(huge <= options.segment_bytes_max, "{huge}");
            }
        }
    }
}
