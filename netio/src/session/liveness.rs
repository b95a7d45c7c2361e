//! When silence becomes an error.

use std::time::Duration;

/// Watches over the silence of a peer while this side listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Liveness {
    opened: Duration,
    heard: Duration,
    /// Since when this side listens; nothing while it does not.
    listening: Option<Duration>,
    patience: Duration,
}

impl Liveness {
    pub(super) fn new(now: Duration, patience: Duration) -> Self {
        Self {
            opened: now,
            heard: now,
            listening: Some(now),
            patience,
        }
    }

    /// Something came.
    pub(super) fn handle_bytes(&mut self, now: Duration) {
        self.heard = self.heard.max(now);
    }

    /// This side begins to listen, or stops.
    pub(super) fn handle_listening(&mut self, now: Duration, listening: bool) {
        match listening {
            true => self.listening = self.listening.or(Some(now)),
            false => self.listening = None,
        }
    }

    /// When silence inside of a frame is too long.
    pub(super) fn stalled_at(&self) -> Option<Duration> {
        self.listening
            .map(|since| since.max(self.heard).saturating_add(self.patience))
    }

    /// When the beginning of a connection is overdue.
    pub(super) fn overdue_at(&self) -> Duration {
        self.opened.saturating_add(self.patience)
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }
}
