//! What an edge over a connection is opened with, beside what every edge is.

use std::time::Duration;

use ringway_netio::credit::{PIECE_BYTES, V1_WINDOW_ROWS, WINDOW_ROWS};
use ringway_netio::frame::{Extensions, Identity};
use ringway_netio::session::{Negotiation, ReceiverOptions, STALLED_AFTER, SenderOptions};

use crate::edge::EdgeOptions;
use crate::edge::shared::{Door, SharedOptions, Sharing};
use crate::wire::Compression;

/// Elements that wait in a session beside those in the ring. Few, because the ring is what the
/// user sees; below the number at which watermarks would be merged.
const INBOX_ELEMENTS: usize = 64;

/// Bytes that the two ends of a connection may send each other before it is known that the edge
/// goes over shared memory.
const MEETING_BYTES: u64 = 4096;

const _: () = assert!(INBOX_ELEMENTS < ringway_netio::session::CONTROL_MERGE_FROM);

/// What an edge over a connection is opened with, beside what every edge is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Whether the negotiated form of the wire is spoken. Default: with peers that know it.
    pub negotiation: Negotiation,
    /// Who this end is. With one, the negotiated form is required, and a peer that does not
    /// fit is refused. Default: none.
    pub identity: Option<Identity>,
    /// How batches are compressed (sender), with peers that take it. Default: not.
    pub compression: Compression,
    /// Whether bodies are aligned so that no type needs a copy (receiver). Default: yes.
    pub aligned: bool,
    /// Rows that may be on the way in version 1 (receiver). Default: 2048.
    pub v1_window_rows: u32,
    /// Rows that may be on the way in the negotiated form (receiver). Default: 1,048,576.
    /// Bytes are bounded by [`EdgeOptions::bytes_max`].
    pub window_rows: u32,
    /// Whether the barriers of unaligned checkpoints overtake what waits at the receiver,
    /// however they were pushed, as the edges of a job need it (receiver). Default: no, they
    /// stay in order, also those that were pushed by priority.
    pub overtaking: bool,
    /// Bytes of the pieces that large batches are sent in (sender). Default: 4 MiB.
    pub piece_bytes: u64,
    /// How long a peer may be silent within a frame, or before it has shown who it is.
    /// Default: 10 s.
    pub stalled_after: Duration,
    /// Whether and how the edge goes over shared memory where both ends are on one host.
    /// Default: it does not.
    pub shared: SharedOptions,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            negotiation: Negotiation::default(),
            identity: None,
            compression: Compression::default(),
            aligned: true,
            v1_window_rows: V1_WINDOW_ROWS,
            window_rows: WINDOW_ROWS,
            overtaking: false,
            piece_bytes: PIECE_BYTES,
            stalled_after: STALLED_AFTER,
            shared: SharedOptions::default(),
        }
    }
}

impl RemoteOptions {
    /// Version 1 of the wire only, as other engines speak it.
    pub fn version_1() -> Self {
        Self {
            negotiation: Negotiation::Off,
            ..Self::default()
        }
    }

    /// Sets whether the negotiated form is spoken.
    pub fn negotiation(mut self, negotiation: Negotiation) -> Self {
        self.negotiation = negotiation;
        self
    }

    /// Sets who this end is.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Lets the barriers of unaligned checkpoints overtake.
    pub fn overtaking(mut self) -> Self {
        self.overtaking = true;
        self
    }

    /// Sets whether the edge goes over shared memory where both ends are on one host.
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.shared.sharing = sharing;
        self
    }

    /// Whether the edge may go over shared memory.
    pub(super) fn may_share(&self) -> bool {
        self.shared.sharing != Sharing::Off
    }

    /// Where a sender may come in that is on this host, and has got an offer with this token.
    pub(super) fn door(&self, token: u128) -> Option<Door> {
        self.may_share()
            .then(|| Door::open(token, self.shared, self.stalled_after))
    }

    /// Bytes that the session of an edge may hold. One that may turn out to go over shared memory
    /// has to get as far as that, however little the edge holds.
    fn window_bytes(&self, edge: &EdgeOptions) -> u64 {
        let least = if self.may_share() { MEETING_BYTES } else { 1 };
        (edge.bytes_max as u64).max(least)
    }

    pub(super) fn for_sender(&self, edge: &EdgeOptions) -> SenderOptions {
        SenderOptions {
            negotiation: self.negotiation,
            identity: self.identity,
            queue_bytes: self.window_bytes(edge),
            piece_bytes: self.piece_bytes,
            stalled_after: self.stalled_after,
            ..SenderOptions::default()
        }
    }

    pub(super) fn for_receiver(&self, edge: &EdgeOptions) -> ReceiverOptions {
        let extensions = match self.aligned {
            true => Extensions::ALL,
            false => Extensions::ALL.without(Extensions::ALIGNED),
        };
        ReceiverOptions {
            negotiation: self.negotiation,
            extensions,
            token: token(),
            identity: self.identity,
            v1_window_rows: self.v1_window_rows,
            window_rows: self.window_rows,
            window_bytes: self.window_bytes(edge),
            inbox_elements: INBOX_ELEMENTS,
            stalled_after: self.stalled_after,
        }
    }
}

/// A random number that names a connection.
fn token() -> u128 {
    let mut bytes = [0; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u128::from_be_bytes(bytes),
        // It ties an answer to its offer and is no secret, so an edge need not fail for it.
        Err(error) => {
            tracing::warn!(%error, "no random numbers: a connection is named by its time");
            super::links::Links::now().as_nanos()
        }
    }
}
