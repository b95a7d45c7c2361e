//! Why an edge was not opened.

use super::{OffReason, SharedDisabled};

/// Why an endpoint was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Another listener of this registry has this name: drop it first, or choose another port.
    #[error("cannot listen at {endpoint}: another listener of this process has that name")]
    InUse {
        /// The host and port that both want.
        endpoint: String,
    },
    /// Port 0 was asked for and every number is taken: give listeners up, or name the port.
    #[error("cannot listen: all {ports} port numbers that port 0 chooses from are in use")]
    NoFreePort {
        /// How many there are.
        ports: usize,
    },
    /// The system does not let this process listen there; the text says why and what to do.
    #[error("{0}")]
    Bind(String),
    /// Nobody can drive connections; the text says why and what to do.
    #[error("cannot listen: {0}")]
    NoLinks(String),
    /// Shared memory was asked for, and is switched off.
    #[error("cannot listen: {0}")]
    NotShared(#[from] SharedDisabled),
}

/// Why a sender did not get its edge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Nothing of this process listens there, and no other was to be asked: listen first,
    /// correct host and port, or allow sockets.
    #[error("cannot connect to {endpoint}: nothing listens there in this process")]
    NotListening {
        /// The host and port that were asked for.
        endpoint: String,
    },
    /// The local transport is off, and no other was allowed: switch it on where it was
    /// switched off, or allow sockets.
    #[error(
        "cannot connect to {endpoint}: the local transport is switched off {by}, and no other \
         transport is allowed"
    )]
    LocalDisabled {
        /// The host and port that were asked for.
        endpoint: String,
        /// Who switched it off.
        by: OffReason,
    },
    /// The two ends speak of different payloads: make them the same type.
    #[error("cannot connect to {endpoint}: it takes {expected}, the sender sends {sent}")]
    PayloadMismatch {
        /// The host and port that were asked for.
        endpoint: String,
        /// The payload type of the listener.
        expected: &'static str,
        /// The payload type of the sender.
        sent: &'static str,
    },
    /// The endpoint has had its sender; there is one in its life. Listen at one endpoint for
    /// each sender.
    #[error("cannot connect to {endpoint}: it already has its one sender")]
    AlreadyConnected {
        /// The host and port that were asked for.
        endpoint: String,
    },
    /// Shared memory was asked for, and can't be; the text says why. Mend that, or allow another
    /// transport.
    #[error("cannot connect to {endpoint} over shared memory: {why}")]
    NotShared {
        /// The host and port that were asked for.
        endpoint: String,
        /// Why.
        why: String,
    },
    /// Nobody answered in time; the text lists each address with the reason.
    #[error("{0}")]
    Unreachable(String),
    /// Nobody can drive connections; the text says why and what to do.
    #[error("cannot connect: {0}")]
    NoLinks(String),
}

/// Why a listener gave no receiver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// No sender connected in that time: wait on, or give up.
    #[error("no sender connected in time")]
    TimedOut,
    /// Nobody can connect any more; the text says why. Listen again, once that is mended.
    #[error("nobody can connect any more: {0}")]
    Failed(String),
    /// The one receiver was taken before; no other comes.
    #[error("the receiver of this endpoint was already taken")]
    AlreadyTaken,
}
