//! The receiving half of an edge over a connection, as its user holds it.

use std::sync::{Arc, Mutex, PoisonError};

use ringway_shm::Bell;

use super::shared::{Carrier, RemoteStats, Shared};
use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::edge::turn::Turn;
use crate::edge::{EdgeOptions, Popped, Transport, local, shared};
use crate::element::{Barrier, StreamElement};

/// The receiving half of an edge over a connection: the outer end of a ring from the link that
/// receives and decodes. It is `Send`, and popping takes no lock.
pub struct Receiver<B: Payload> {
    ring: local::Receiver<B>,
    shared: Arc<Shared>,
    /// Where the half over shared memory is left that it becomes, if it becomes one.
    place: Option<ReceiverPlace<B>>,
}

/// Where the thread of a connection leaves a half for its user.
pub(super) type ReceiverPlace<B> = Arc<Mutex<Option<Box<shared::Receiver<B>>>>>;

impl<B: Payload> Receiver<B> {
    pub(super) fn new(
        ring: local::Receiver<B>,
        shared: Arc<Shared>,
        place: Option<ReceiverPlace<B>>,
    ) -> Self {
        Self {
            ring,
            shared,
            place,
        }
    }

    /// The half over shared memory that it becomes, if it is known to be one.
    #[inline]
    pub(in crate::edge) fn upgraded(&mut self) -> Option<Box<shared::Receiver<B>>> {
        match self.place {
            Some(_) => self.upgrade(),
            None => None,
        }
    }

    /// Whether it is not known yet what carries it.
    pub(in crate::edge) fn is_undecided(&self) -> bool {
        self.place.is_some()
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
    fn upgrade(&mut self) -> Option<Box<shared::Receiver<B>>> {
        if let Carrier::Connection(_) = self.shared.carrier()? {
            self.place = None;
            return None;
        }
        let place = self.place.take()?;
        let mut receiver = place.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.take()
    }

    #[inline]
    pub(in crate::edge) fn try_pop(&mut self) -> Popped<B> {
        self.ring.try_pop()
    }

    pub(in crate::edge) fn poll_priority(&mut self) -> Option<(Barrier, u64)> {
        self.ring.poll_priority()
    }

    pub(in crate::edge) fn has_priority(&self) -> bool {
        self.ring.has_priority()
    }

    pub(in crate::edge) fn peek_until(&self, position: u64, each: impl FnMut(&StreamElement<B>)) {
        self.ring.peek_until(position, each);
    }

    pub(in crate::edge) fn position(&self) -> u64 {
        self.ring.position()
    }

    pub(in crate::edge) fn origin(&self) -> Monotonic {
        self.ring.origin()
    }

    pub(in crate::edge) fn close(self) {
        self.ring.close();
    }

    pub(in crate::edge) fn fail(self, reason: String) {
        self.ring.fail(reason);
    }

    pub(in crate::edge) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(in crate::edge) fn options(&self) -> &EdgeOptions {
        self.ring.options()
    }

    pub(in crate::edge) fn remote_stats(&self) -> RemoteStats {
        self.shared.stats()
    }

    pub(in crate::edge) fn turn(&mut self) -> &mut Turn {
        self.ring.turn()
    }

    pub(in crate::edge) fn bell(&self) -> Option<&Bell> {
        self.ring.bell()
    }
}

impl<B: Payload> std::fmt::Debug for Receiver<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("remote::Receiver")
            .field("ring", &self.ring)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}
