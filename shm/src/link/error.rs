//! Why a message was not pushed or not popped.

/// The memory of the peer holds what no peer of ours writes there. The link is dead: report the
/// edge as failed and drop it; what was leased stays readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the peer of a shared-memory edge wrote {found} as its {field}, which must be within {least} and {most}: \
     it is broken or hostile, drop the edge"
)]
pub struct Corrupt {
    /// What was read.
    pub field: &'static str,
    /// The value found.
    pub found: u64,
    /// The least value that it may have had.
    pub least: u64,
    /// The greatest value that it may have had.
    pub most: u64,
}

/// There is no place for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// There is no room now. Try again when the producer's bell has rung. What was committed has
    /// been published.
    #[error(
        "the shared-memory edge is full, {free_bytes} bytes are free: try again when there is room"
    )]
    Full {
        /// How many bytes of the arena nobody uses; they need not be in one piece.
        free_bytes: usize,
    },
    /// No message of this size ever fits. Split it.
    #[error("a message of a shared-memory edge has at most {max_bytes} bytes: split it")]
    TooLarge {
        /// The largest that fits.
        max_bytes: usize,
    },
    /// The consumer's process is gone. Stop pushing.
    #[error("the consumer of the shared-memory edge is gone: stop pushing")]
    PeerGone,
    /// The consumer's memory is not to be believed. Stop pushing.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// No message was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// Nothing is queued now. Pop again when the consumer's bell has rung.
    #[error("the shared-memory edge is empty: pop again when the producer has pushed")]
    Empty,
    /// The producer's process is gone and all that it published was popped.
    #[error("the producer of the shared-memory edge is gone")]
    PeerGone,
    /// The producer's memory is not to be believed. Drop the edge.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
}

/// Checks a value of the peer.
#[inline]
pub(crate) fn within(
    field: &'static str,
    found: u64,
    least: u64,
    most: u64,
) -> Result<u64, Corrupt> {
    if least <= found && found <= most {
        return Ok(found);
    }
    Err(Corrupt {
        field,
        found,
        least,
        most,
    })
}
