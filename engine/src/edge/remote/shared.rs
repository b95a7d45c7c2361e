//! What a link leaves for the halves that users hold.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ringway_netio::driver::DriverKind;
use ringway_netio::session::Mode;
use ringway_shm::Bell;

use super::reasons::Names;
use super::sender::FinishError;
use crate::clock::Clock;
use crate::edge::shared::Gone;
use crate::edge::{RejectReason, Transport};

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
    /// Bytes that this end has copied in user space; what the kernel copies is not among them.
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
    /// What carries the edge, where that was not said before.
    carrier: OnceLock<Carrier>,
}

/// What carries an edge.
#[derive(Debug)]
pub(super) enum Carrier {
    /// Its connection; why it is not shared memory.
    Connection(String),
    /// Shared memory. What the half needs for that.
    Memory(Gone, Arc<Names>),
}

impl Shared {
    pub(super) fn new(bell: Bell) -> Self {
        Self {
            bell,
            stats: Mutex::default(),
            outcome: OnceLock::new(),
            carrier: OnceLock::new(),
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

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// What carries the edge, once that is known.
    pub(super) fn carrier(&self) -> Option<&Carrier> {
        self.carrier.get()
    }

    /// What carries the edge, as far as that is known.
    pub(super) fn transport(&self) -> Transport {
        match self.carrier.get() {
            Some(Carrier::Memory(..)) => Transport::Shared,
            Some(Carrier::Connection(_)) | None => Transport::Socket,
        }
    }

    /// Why it is not shared memory, though it might have been.
    pub(super) fn why_connection(&self) -> Option<&str> {
        match self.carrier.get()? {
            Carrier::Connection(why) => Some(why),
            Carrier::Memory(..) => None,
        }
    }

    /// Says once what carries the edge.
    pub(super) fn set_carrier(&self, carrier: Carrier) {
        if self.carrier.set(carrier).is_ok() {
            self.bell.ring();
        }
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

    /// Waits for the outcome, at most for `timeout`.
    pub(super) fn wait_for_outcome(&self, timeout: Duration) -> Result<(), FinishError> {
        let clock = Clock::start();
        loop {
            self.bell.arm();
            let remaining = timeout.saturating_sub(clock.now().0);
            let outcome = self.outcome().cloned();
            if outcome.is_some() || remaining.is_zero() {
                self.bell.disarm();
                return match outcome {
                    Some(outcome) => outcome.map_err(FinishError::Rejected),
                    None => Err(FinishError::TimedOut),
                };
            }
            self.bell.park(Some(remaining));
        }
    }
}
