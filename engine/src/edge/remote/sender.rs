//! The sending half of an edge over a connection, as its user holds it.

use std::sync::Arc;
use std::time::Duration;

use ringway_shm::Bell;

use super::shared::{RemoteStats, Shared};
use crate::batch::Payload;
use crate::clock::{Clock, Monotonic};
use crate::edge::turn::Turn;
use crate::edge::{EdgeMetrics, EdgeOptions, Ending, RejectReason, Rejected, local};
use crate::element::{Barrier, StreamElement};

/// The sending half of an edge over a connection: the outer end of a ring to the link that
/// encodes and sends. It is `Send`, and pushing takes no lock.
#[derive(Debug)]
pub struct Sender<B: Payload> {
    ring: local::Sender<B>,
    shared: Arc<Shared>,
}

impl<B: Payload> Sender<B> {
    pub(super) fn new(ring: local::Sender<B>, shared: Arc<Shared>) -> Self {
        Self { ring, shared }
    }

    #[inline]
    pub(in crate::edge) fn try_push(
        &mut self,
        element: StreamElement<B>,
    ) -> Result<(), Rejected<B>> {
        self.ring.try_push(element)
    }

    #[inline]
    pub(in crate::edge) fn try_push_quiet(
        &mut self,
        element: StreamElement<B>,
    ) -> Result<(), Rejected<B>> {
        self.ring.try_push_quiet(element)
    }

    #[inline]
    pub(in crate::edge) fn flush(&mut self) {
        self.ring.flush();
    }

    pub(in crate::edge) fn try_push_priority(
        &mut self,
        barrier: Barrier,
    ) -> Result<(), Rejected<B>> {
        self.ring.try_push_priority(barrier)
    }

    pub(in crate::edge) fn admits(
        &mut self,
        element: &StreamElement<B>,
    ) -> Result<(), RejectReason> {
        self.ring.admits(element)
    }

    pub(in crate::edge) fn turn(&mut self) -> &mut Turn {
        self.ring.turn()
    }

    pub(in crate::edge) fn set_origin(&mut self, origin: Monotonic) {
        self.ring.set_origin(origin);
    }

    pub(in crate::edge) fn finish(self) -> Result<(), RejectReason> {
        self.ring.finish()
    }

    pub(in crate::edge) fn finish_and_wait(self, timeout: Duration) -> Result<(), FinishError> {
        let bell = self.ring.bell().clone();
        let shared = Arc::clone(&self.shared);
        self.ring.finish().map_err(FinishError::Rejected)?;
        let clock = Clock::start();
        loop {
            bell.arm();
            let remaining = timeout.saturating_sub(clock.now().0);
            let outcome = shared.outcome().cloned();
            if outcome.is_some() || remaining.is_zero() {
                bell.disarm();
                return match outcome {
                    Some(outcome) => outcome.map_err(FinishError::Rejected),
                    None => Err(FinishError::TimedOut),
                };
            }
            bell.park(Some(remaining));
        }
    }

    pub(in crate::edge) fn close_with(self, ending: Ending) {
        self.ring.close_with(ending);
    }

    pub(in crate::edge) fn fail(self, reason: String) {
        self.ring.fail(reason);
    }

    pub(in crate::edge) fn is_closed(&self) -> bool {
        self.ring.is_closed()
    }

    pub(in crate::edge) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(in crate::edge) fn options(&self) -> &EdgeOptions {
        self.ring.options()
    }

    pub(in crate::edge) fn metrics(&self) -> EdgeMetrics {
        self.ring.metrics()
    }

    pub(in crate::edge) fn remote_stats(&self) -> RemoteStats {
        self.shared.stats()
    }

    pub(in crate::edge) fn blocked(&mut self, now: Monotonic) {
        self.ring.blocked(now);
    }

    pub(in crate::edge) fn unblocked(&mut self, now: Monotonic) {
        self.ring.unblocked(now);
    }

    pub(in crate::edge) fn bell(&self) -> &Bell {
        self.ring.bell()
    }
}

/// Why a stream that was finished is not known to have arrived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// The receiver went, or never got all of it: report the failure.
    #[error("{0}")]
    Rejected(RejectReason),
    /// It did not arrive in that time. It is still sent as long as the process lives.
    #[error("the peer did not take everything in time")]
    TimedOut,
}
