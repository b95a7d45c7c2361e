//! The receiving half of an edge over a connection, as its user holds it.

use std::sync::Arc;

use ringway_shm::Bell;

use super::shared::{RemoteStats, Shared};
use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::edge::turn::Turn;
use crate::edge::{EdgeOptions, Popped, local};
use crate::element::{Barrier, StreamElement};

/// The receiving half of an edge over a connection: the outer end of a ring from the link that
/// receives and decodes. It is `Send`, and popping takes no lock.
#[derive(Debug)]
pub struct Receiver<B: Payload> {
    ring: local::Receiver<B>,
    shared: Arc<Shared>,
}

impl<B: Payload> Receiver<B> {
    pub(super) fn new(ring: local::Receiver<B>, shared: Arc<Shared>) -> Self {
        Self { ring, shared }
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
