//! What an edge over shared memory is opened with.

use ringway_shm::link::LinkConfig;
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
    /// Bytes of the largest segment of a peer that is taken (receiver). Default: 1 GiB.
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
            segment_bytes_max: 1 << 30,
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
