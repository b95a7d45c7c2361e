//! What has gone through an edge.

use std::time::Duration;

use crate::clock::Monotonic;
use crate::limits::STUCK_AFTER;

/// What has gone through an edge, as the sender knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeMetrics {
    /// Elements accepted, data and control.
    pub elements: u64,
    /// Rows of the data accepted.
    pub rows: u64,
    /// Bytes of memory of the data accepted.
    pub bytes: u64,
    /// Elements queued now.
    pub depth: usize,
    /// The largest number of elements that was ever queued. Never decreases.
    pub high_water: usize,
    /// Time for which an element waited for room.
    pub blocked: Duration,
    /// How often an element began to wait for room.
    pub blocked_times: u64,
}

/// Counts the time that a sender waits for room, and says once a wait that it is stuck.
#[derive(Debug, Default)]
pub(crate) struct BlockedTime {
    since: Option<Monotonic>,
    warned: bool,
    total: Duration,
    times: u64,
}

impl BlockedTime {
    /// An element waits at `now`. Returns the time waited if it is to be reported now.
    pub(crate) fn blocked(&mut self, now: Monotonic) -> Option<Duration> {
        let Some(since) = self.since else {
            self.since = Some(now);
            self.times += 1;
            return None;
        };
        let waited = now.since(since);
        if waited < STUCK_AFTER || self.warned {
            return None;
        }
        self.warned = true;
        Some(waited)
    }

    /// Nothing waits any more at `now`.
    pub(crate) fn unblocked(&mut self, now: Monotonic) {
        if let Some(since) = self.since.take() {
            self.total += now.since(since);
            self.warned = false;
        }
    }

    /// All time waited up to the last call.
    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    /// How often a wait began.
    pub(crate) fn times(&self) -> u64 {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Monotonic {
        Monotonic(Duration::from_millis(ms))
    }

    #[test]
    fn a_stuck_sender_is_reported_once_a_wait() {
        let mut blocked = BlockedTime::default();
        assert_eq!(blocked.blocked(at(0)), None);
        assert_eq!(blocked.blocked(at(2999)), None);
        assert_eq!(blocked.blocked(at(3000)), Some(Duration::from_secs(3)));
        assert_eq!(blocked.blocked(at(9000)), None);
        blocked.unblocked(at(10_000));
        assert_eq!(blocked.blocked(at(10_000)), None);
        assert_eq!(blocked.blocked(at(14_000)), Some(Duration::from_secs(4)));
        blocked.unblocked(at(15_000));
        assert_eq!(
            (blocked.total(), blocked.times()),
            (Duration::from_secs(15), 2)
        );
    }
}
