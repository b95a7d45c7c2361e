//! What was done.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;

use super::chunk_pool::Lent as Pooled;
use super::uring::RingChunk;
use super::{ConnectionId, ListenerId, Socket};
use crate::buffer::Body;

/// What a driver has done, or has found.
#[derive(Debug)]
pub enum Completion {
    /// A peer has connected.
    Accepted {
        /// Where.
        listener: ListenerId,
        /// The connection, not attached to any driver.
        socket: Socket,
        /// Who, where that has an address.
        peer: Option<SocketAddr>,
    },
    /// A peer that connects has to wait, since the process or the host lacks descriptors or
    /// memory. Accepting goes on by itself; this comes once until a peer is accepted again.
    AcceptDelayed {
        /// Where.
        listener: ListenerId,
        /// Why, such as too many open files: raise the limit, or close something.
        error: io::Error,
    },
    /// Accepting failed, and nobody can connect any more unless the listener is made anew.
    ListenerFailed {
        /// Which.
        listener: ListenerId,
        /// Why.
        error: io::Error,
    },
    /// The kernel has all segments of the last send.
    Sent {
        /// On which connection.
        connection: ConnectionId,
        /// How many bytes.
        bytes: usize,
    },
    /// Bytes have come.
    Read {
        /// From where.
        connection: ConnectionId,
        /// They go back to the driver's pool when this is dropped: use them and let go.
        chunk: Chunk,
    },
    /// More of a body has come.
    BodyProgress {
        /// From where.
        connection: ConnectionId,
        /// How many bytes more.
        bytes: usize,
    },
    /// A body is full, or its connection is over.
    Body {
        /// From where.
        connection: ConnectionId,
        /// How many bytes more, since the last progress.
        bytes: usize,
        /// The body.
        body: Body,
    },
    /// The peer has ended its sending direction, in order.
    Eof {
        /// Which.
        connection: ConnectionId,
    },
    /// The connection is broken, or could not be written to.
    Lost {
        /// Which.
        connection: ConnectionId,
        /// Why.
        error: io::Error,
    },
    /// The socket is the caller's again.
    Detached {
        /// Which connection it was.
        connection: ConnectionId,
        /// The socket.
        socket: Socket,
    },
    /// Nothing is left of the connection.
    Closed {
        /// Which.
        connection: ConnectionId,
    },
    /// The watched descriptor is readable.
    Woken,
}

impl Completion {
    /// The connection that it is of.
    pub(super) fn connection(&self) -> Option<ConnectionId> {
        match self {
            Self::Sent { connection, .. }
            | Self::Read { connection, .. }
            | Self::BodyProgress { connection, .. }
            | Self::Body { connection, .. }
            | Self::Eof { connection }
            | Self::Lost { connection, .. }
            | Self::Detached { connection, .. }
            | Self::Closed { connection } => Some(*connection),
            Self::Accepted { .. }
            | Self::AcceptDelayed { .. }
            | Self::ListenerFailed { .. }
            | Self::Woken => None,
        }
    }
}

/// Bytes in a buffer of a driver's pool.
pub struct Chunk {
    bytes: Lent,
}

enum Lent {
    Ring(RingChunk),
    Pooled(Pooled),
    Other(Box<dyn Deref<Target = [u8]>>),
}

impl Chunk {
    /// Bytes that `bytes` holds and gives back when it is dropped.
    pub(crate) fn new(bytes: impl Deref<Target = [u8]> + 'static) -> Self {
        Self {
            bytes: Lent::Other(Box::new(bytes)),
        }
    }
}

impl Chunk {
    /// Whether its driver has so many others that this one may wait for a while without another
    /// connection going without.
    pub fn is_spare(&self) -> bool {
        match &self.bytes {
            Lent::Ring(chunk) => chunk.is_spare(),
            Lent::Pooled(chunk) => chunk.is_spare(),
            Lent::Other(_) => false,
        }
    }
}

impl From<RingChunk> for Chunk {
    fn from(chunk: RingChunk) -> Self {
        Self {
            bytes: Lent::Ring(chunk),
        }
    }
}

impl From<Pooled> for Chunk {
    fn from(chunk: Pooled) -> Self {
        Self {
            bytes: Lent::Pooled(chunk),
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Lent::Ring(chunk) => chunk,
            Lent::Pooled(chunk) => chunk,
            Lent::Other(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk").field("bytes", &self.len()).finish()
    }
}
