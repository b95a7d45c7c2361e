//! What the half of an edge over shared memory knows of the connection that it began with.

use std::sync::Arc;
use std::time::Duration;

use ringway_shm::Bell;

use super::reasons::Names;
use super::sender::FinishError;
use super::shared::{RemoteStats, Shared};
use crate::edge::RejectReason;
use crate::edge::shared::Gone;

/// A connection that carries nothing: while it is open the other end lives.
#[derive(Clone, Debug)]
pub(in crate::edge) struct Connection {
    shared: Arc<Shared>,
    gone: Gone,
    names: Arc<Names>,
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, gone: Gone, names: Arc<Names>) -> Self {
        Self {
            shared,
            gone,
            names,
        }
    }

    /// One that nobody looks after.
    #[cfg(test)]
    pub(in crate::edge) fn alone(edge: &str, bell: Bell) -> Self {
        let names = Names {
            edge: edge.to_owned(),
            peer: "peer".to_owned(),
        };
        let shared = Arc::new(Shared::new(bell));
        Self::new(shared, Gone::default(), Arc::new(names))
    }

    /// Whether the other end is gone.
    pub(in crate::edge) fn is_gone(&self) -> bool {
        self.gone.get().is_some()
    }

    /// Why the stream has failed while the thread of the connection had it, if it did.
    pub(in crate::edge) fn failure(&self) -> Option<RejectReason> {
        self.shared.outcome()?.as_ref().err().cloned()
    }

    /// Says why, once it is.
    pub(in crate::edge) fn gone(&self) -> &Gone {
        &self.gone
    }

    pub(in crate::edge) fn names(&self) -> &Names {
        &self.names
    }

    /// What wakes the owner of the half.
    pub(in crate::edge) fn bell(&self) -> &Bell {
        self.shared.bell()
    }

    pub(in crate::edge) fn stats(&self) -> RemoteStats {
        self.shared.stats()
    }

    /// Waits until the thread of the connection has brought everything to the receiver.
    pub(in crate::edge) fn wait_for_outcome(&self, timeout: Duration) -> Result<(), FinishError> {
        self.shared.wait_for_outcome(timeout)
    }
}
