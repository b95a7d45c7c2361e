//! The sending half of an edge over a connection, as its user holds it.

use std::sync::Arc;
use std::time::Duration;

use ringway_shm::Bell;

use super::connection::Connection;
use super::shared::{Carrier, RemoteStats, Shared};
use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::edge::shared::SenderSeed;
use crate::edge::turn::Turn;
use crate::edge::{
    EdgeMetrics, EdgeOptions, Ending, RejectReason, Rejected, Transport, local, shared,
};
use crate::element::{Barrier, StreamElement};

/// The sending half of an edge over a connection: the outer end of a ring to the link that
/// encodes and sends. It is `Send`, and pushing takes no lock.
pub struct Sender<B: Payload> {
    ring: local::Sender<B>,
    shared: Arc<Shared>,
    /// What it becomes of, if it turns out to go over shared memory.
    seed: Option<SenderSeed<B>>,
}

impl<B: Payload> Sender<B> {
    pub(super) fn new(
        ring: local::Sender<B>,
        shared: Arc<Shared>,
        seed: Option<SenderSeed<B>>,
    ) -> Self {
        Self { ring, shared, seed }
    }

    /// The half over shared memory that it becomes, if it is known to be one and everything
    /// that was pushed before has gone there.
    #[inline]
    pub(in crate::edge) fn upgraded(&mut self) -> Option<shared::Sender<B>> {
        match self.seed {
            Some(_) => self.upgrade(),
            None => None,
        }
    }

    /// Whether it is not known yet what carries it.
    pub(in crate::edge) fn is_undecided(&self) -> bool {
        self.seed.is_some()
    }

    /// What carries it, as far as that is known.
    pub(in crate::edge) fn transport(&self) -> Transport {
        self.shared.transport()
    }

    /// Why it does not go over shared memory, though it might have.
    pub(in crate::edge) fn why_connection(&self) -> Option<&str> {
        self.shared.why_connection()
    }

    #[cold]
    fn upgrade(&mut self) -> Option<shared::Sender<B>> {
        let connection = match self.shared.carrier()? {
            Carrier::Memory(gone, names) => Connection::new(
                Arc::clone(&self.shared),
                Arc::clone(gone),
                Arc::clone(names),
            ),
            Carrier::Connection(_) => {
                self.seed = None;
                return None;
            }
        };
        if self.ring.len() > 0 {
            return None;
        }
        let outlet = self.seed.as_ref()?.take_outlet()?;
        let seed = self.seed.take()?;
        let edge = self.ring.options().clone();
        Some(seed.grow(outlet, connection, edge, self.ring.take_before()))
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

    pub(in crate::edge) fn check(&mut self) -> Result<(), RejectReason> {
        self.ring.check()
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
        let shared = Arc::clone(&self.shared);
        self.ring.finish().map_err(FinishError::Rejected)?;
        shared.wait_for_outcome(timeout)
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

impl<B: Payload> std::fmt::Debug for Sender<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("remote::Sender")
            .field("ring", &self.ring)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
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
