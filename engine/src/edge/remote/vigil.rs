//! Whether the other end of an edge over shared memory lives.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use super::leaving::Leaving;
use super::links::{Event, Io};
use super::shared::Shared;
use super::sharing::Relay;
use crate::edge::shared::Gone;

/// Watches the connection that an edge over shared memory began with. It carries nothing more; the
/// kernel closes it when the other process ends, however that ends.
pub(super) struct Vigil {
    gone: Gone,
    shared: Arc<Shared>,
    relay: Option<Relay>,
    _stream: OwnedFd,
    leaving: Leaving,
    peer_has_ended: bool,
}

impl Vigil {
    /// `gone` and `shared` are what the user's half learns it by, `stream` is where the two met.
    pub(super) fn new(
        gone: Gone,
        shared: Arc<Shared>,
        relay: Option<Relay>,
        stream: OwnedFd,
    ) -> Self {
        Self {
            gone,
            shared,
            relay,
            _stream: stream,
            leaving: Leaving::default(),
            peer_has_ended: false,
        }
    }

    /// What its user sees of it.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Something was done on the connection.
    pub(super) fn handle(&mut self, event: Event) {
        let why = match event {
            Event::Eof => None,
            Event::Lost(why) => Some(why),
            // Nothing is due on it.
            Event::Sent(_) | Event::Read(_) | Event::BodyProgress(_) | Event::Body(..) => return,
        };
        self.peer_has_ended = true;
        self.lose(why);
    }

    /// Goes on leaving, and returns how much work that was; nothing while the connection is in use.
    pub(super) fn poll(&mut self, io: &mut Io<'_>) -> Option<usize> {
        let has_begun = self.leaving.has_begun();
        has_begun.then(|| usize::from(self.leaving.poll(io, self.peer_has_ended)))
    }

    /// Wakes the user, where the other end has done something and nobody else says so.
    pub(super) fn relay(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.pump();
        }
    }

    /// Nobody needs the connection any more.
    pub(super) fn leave(&mut self, io: &mut Io<'_>) {
        self.leaving.begin(io, self.peer_has_ended);
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.leaving.timeout()
    }

    pub(super) fn is_needed(&self) -> bool {
        !self.leaving.has_begun()
    }

    pub(super) fn is_over(&self) -> bool {
        self.leaving.is_gone()
    }

    /// Says that the other end is gone, or that nobody looks after it any more.
    pub(super) fn lose(&self, why: Option<String>) {
        if self.gone.set(why).is_ok() {
            self.shared.bell().ring();
        }
    }
}

impl Drop for Vigil {
    /// Nobody looks after the other end any more.
    fn drop(&mut self) {
        self.lose(None);
    }
}
