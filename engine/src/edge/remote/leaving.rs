//! Giving a connection up without losing what the peer has not read yet.

use std::time::Duration;

use ringway_netio::session::ABORT_LINGER;

use super::links::Io;

/// How far a connection is from being gone.
///
/// Closing a socket while the peer still sends to it resets the connection, and a reset throws
/// away what the peer's host has received and nobody has read there. So the sending direction
/// ends first, and the socket goes when the peer's has ended too, or has had a second to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Leaving {
    /// It is in use.
    #[default]
    Staying,
    /// Its sending direction has ended, and at this time it goes.
    Until(Duration),
    /// It is gone.
    Gone,
}

impl Leaving {
    /// Whether it is not in use any more.
    pub(super) fn has_begun(self) -> bool {
        self != Self::Staying
    }

    pub(super) fn is_gone(self) -> bool {
        self == Self::Gone
    }

    pub(super) fn timeout(self) -> Option<Duration> {
        match self {
            Self::Until(until) => Some(until),
            Self::Staying | Self::Gone => None,
        }
    }

    /// Ends the sending direction, after the send in flight.
    pub(super) fn begin(&mut self, io: &mut Io<'_>, peer_has_ended: bool) {
        if self.has_begun() {
            return;
        }
        io.driver.shutdown_write(io.connection);
        // What the peer still sends is read and thrown away.
        io.driver.set_reading(io.connection, true);
        *self = Self::Until(io.now + ABORT_LINGER);
        if peer_has_ended {
            self.finish(io);
        }
    }

    /// Lets the connection go when it is time.
    pub(super) fn poll(&mut self, io: &mut Io<'_>, peer_has_ended: bool) -> bool {
        match *self {
            Self::Until(until) if peer_has_ended || io.now >= until => {
                self.finish(io);
                true
            }
            _ => false,
        }
    }

    /// Lets the connection go.
    pub(super) fn finish(&mut self, io: &mut Io<'_>) {
        if !self.is_gone() {
            io.driver.close(io.connection);
            *self = Self::Gone;
        }
    }
}
