//! What a session is told when it begins.

use std::time::Duration;

use super::{INBOX_ELEMENTS, STALLED_AFTER};
use crate::credit::{PIECE_BYTES, PIECES_PER_WINDOW, V1_WINDOW_ROWS, WINDOW_BYTES, WINDOW_ROWS};
use crate::frame::{Extensions, FRAME_BYTES_MAX, HEAD_BYTES, Identity};

/// Whether the negotiated form is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Negotiation {
    /// Version 1 only, as a peer that knows no other.
    Off,
    /// With peers that speak it too.
    #[default]
    Prefer,
    /// With nobody else. A session with an identity always requires it.
    Require,
}

/// The options of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// Whether the negotiated form is offered.
    pub negotiation: Negotiation,
    /// What is offered; [`Extensions::CORE`] always is. All by default.
    pub extensions: Extensions,
    /// Random, new for each connection.
    pub token: u128,
    /// Who this side is. Then only a sender that fits is listened to.
    pub identity: Option<Identity>,
    /// The first grant in version 1. 2048 by default.
    pub v1_window_rows: u32,
    /// The window in the negotiated form, in rows. 1,048,576 by default.
    pub window_rows: u32,
    /// What this side holds at most, in bytes of bodies, in both forms. 64 MiB by default.
    pub window_bytes: u64,
    /// How many elements wait here before reading stops. 256 by default.
    pub inbox_elements: usize,
    /// The patience with a silent peer. 10 s by default.
    pub stalled_after: Duration,
}

impl ReceiverOptions {
    /// The longest frame that is taken: one of a whole window, where the wire allows it.
    pub fn frame_bytes_max(&self) -> u32 {
        let body = self.window_bytes.saturating_add(HEAD_BYTES as u64 + 1);
        u32::try_from(body).map_or(FRAME_BYTES_MAX, |bytes| bytes.min(FRAME_BYTES_MAX))
    }

    /// Whether peers that speak version 1 are refused.
    pub fn requires_negotiation(&self) -> bool {
        self.negotiation == Negotiation::Require || self.identity.is_some()
    }

    /// # Panics
    /// If nothing could ever be received.
    pub(super) fn check(&self) {
        assert!(self.v1_window_rows >= PIECES_PER_WINDOW, "no window");
        assert!(self.window_rows >= PIECES_PER_WINDOW, "no window");
        assert!(self.window_bytes > 0, "no window");
        assert!(self.inbox_elements > 0, "no inbox");
        let off_with_identity = self.negotiation == Negotiation::Off && self.identity.is_some();
        assert!(!off_with_identity, "version 1 has no identity");
    }
}

impl Default for ReceiverOptions {
    fn default() -> Self {
        Self {
            negotiation: Negotiation::default(),
            extensions: Extensions::ALL,
            token: 0,
            identity: None,
            v1_window_rows: V1_WINDOW_ROWS,
            window_rows: WINDOW_ROWS,
            window_bytes: WINDOW_BYTES,
            inbox_elements: INBOX_ELEMENTS,
            stalled_after: STALLED_AFTER,
        }
    }
}

/// The options of a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderOptions {
    /// Whether an offer is answered.
    pub negotiation: Negotiation,
    /// What is accepted of an offer; [`Extensions::CORE`] always is. All by default.
    pub extensions: Extensions,
    /// Who this side is. Then only a receiver that fits is sent to.
    pub identity: Option<Identity>,
    /// What waits here to be sent at most, in bytes of bodies. 64 MiB by default.
    pub queue_bytes: u64,
    /// The size of pieces in the negotiated form, where the peer's window allows it. 4 MiB by
    /// default.
    pub piece_bytes: u64,
    /// The patience with a silent peer. 10 s by default.
    pub stalled_after: Duration,
}

impl SenderOptions {
    /// Whether peers that speak version 1 are refused.
    pub fn requires_negotiation(&self) -> bool {
        self.negotiation == Negotiation::Require || self.identity.is_some()
    }

    /// # Panics
    /// If nothing could ever be sent.
    pub(super) fn check(&self) {
        assert!(self.queue_bytes > 0, "no queue");
        let off_with_identity = self.negotiation == Negotiation::Off && self.identity.is_some();
        assert!(!off_with_identity, "version 1 has no identity");
    }
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            negotiation: Negotiation::default(),
            extensions: Extensions::ALL,
            identity: None,
            queue_bytes: WINDOW_BYTES,
            piece_bytes: PIECE_BYTES,
            stalled_after: STALLED_AFTER,
        }
    }
}
