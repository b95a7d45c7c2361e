//! What a link leaves for the halves that users hold.

use std::sync::{Mutex, OnceLock, PoisonError};

use ringway_netio::driver::DriverKind;
use ringway_netio::session::Mode;
use ringway_shm::Bell;

use crate::edge::RejectReason;

/// What an edge over a connection has done, as its link knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteStats {
    /// What moves the bytes; nothing before the link has begun.
    pub driver: Option<DriverKind>,
    /// Which form of the wire is spoken; nothing before that is decided.
    pub mode: Option<Mode>,
    /// Frames of data sent, or received.
    pub frames: u64,
    /// Bytes handed to the kernel, or read from it, frames of the other direction not counted.
    pub wire_bytes: u64,
    /// Bytes of data that were copied once more than they had to.
    pub copied_bytes: u64,
    /// Rows that may be sent now (sender).
    pub credit_rows: u32,
    /// Grants that have come (sender).
    pub grants: u64,
    /// How often a batch had to wait for credit (sender).
    pub saturations: u64,
}

/// One link and the half that its user holds. The link writes, the user reads.
#[derive(Debug)]
pub(super) struct Shared {
    /// Wakes the user.
    bell: Bell,
    stats: Mutex<RemoteStats>,
    /// Whether the peer has everything (sender).
    outcome: OnceLock<Result<(), RejectReason>>,
}

impl Shared {
    pub(super) fn new(bell: Bell) -> Self {
        Self {
            bell,
            stats: Mutex::default(),
            outcome: OnceLock::new(),
        }
    }

    pub(super) fn stats(&self) -> RemoteStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes figures, unless somebody reads them right now. Returns whether it did.
    pub(super) fn publish(&self, stats: RemoteStats) -> bool {
        let Ok(mut published) = self.stats.try_lock() else {
            return false;
        };
        *published = stats;
        true
    }

    pub(super) fn outcome(&self) -> Option<&Result<(), RejectReason>> {
        self.outcome.get()
    }

    /// Says once how the stream arrived.
    pub(super) fn conclude(&self, outcome: Result<(), RejectReason>) {
        if self.outcome.set(outcome).is_ok() {
            self.bell.ring();
        }
    }
}
