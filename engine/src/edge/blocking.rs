//! Waiting forms, for a thread that has nothing else to do than this edge.

use std::time::Duration;

use crossbeam_utils::Backoff;
use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::{Clock, Monotonic};
use crate::element::StreamElement;
use crate::limits::STUCK_AFTER;

use super::{Popped, Receiver, RejectReason, Rejected, Sender};

impl<B: Payload> Sender<B> {
    /// Pushes an element, waiting for room without limit. Spins for some microseconds, then
    /// parks the calling thread.
    ///
    /// # Errors
    /// As for [`Sender::try_push`], but never `Full`.
    pub fn push(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        self.push_within(element, None)
    }

    /// Pushes an element, waiting for room for at most `timeout`.
    ///
    /// # Errors
    /// As for [`Sender::try_push`]; `Full` when there was no room in all that time.
    pub fn push_timeout(
        &mut self,
        element: StreamElement<B>,
        timeout: Duration,
    ) -> Result<(), Rejected<B>> {
        self.push_within(element, Some(timeout))
    }

    fn push_within(
        &mut self,
        element: StreamElement<B>,
        timeout: Option<Duration>,
    ) -> Result<(), Rejected<B>> {
        let mut waiting = match self.try_push(element) {
            Err(rejected) if rejected.reason == RejectReason::Full => Some(rejected.element),
            other => return other,
        };
        let clock = Clock::start();
        let bell = self.bell().clone();
        self.blocked(clock.now());
        let result = wait(&bell, &clock, timeout, |now, last| {
            self.blocked(now);
            match self.try_push(waiting.take()?) {
                Err(rejected) if rejected.reason == RejectReason::Full && !last => {
                    waiting = Some(rejected.element);
                    None
                }
                other => Some(other),
            }
        });
        self.unblocked(clock.now());
        result
    }
}

impl<B: Payload> Receiver<B> {
    /// Takes the next element, waiting for one without limit. Returns `Empty` only to say that
    /// a barrier waits in [`Receiver::poll_priority`].
    pub fn pop(&mut self) -> Popped<B> {
        self.pop_within(None)
    }

    /// Takes the next element, waiting for one for at most `timeout`. Returns `Empty` at once
    /// when a barrier waits in [`Receiver::poll_priority`].
    pub fn pop_timeout(&mut self, timeout: Duration) -> Popped<B> {
        self.pop_within(Some(timeout))
    }

    fn pop_within(&mut self, timeout: Option<Duration>) -> Popped<B> {
        let popped = self.try_pop();
        let bell = match (&popped, self.bell()) {
            (Popped::Empty, Some(bell)) if !self.has_priority() => bell.clone(),
            _ => return popped,
        };
        wait(&bell, &Clock::start(), timeout, |_, last| {
            match self.try_pop() {
                Popped::Empty if !last && !self.has_priority() => None,
                other => Some(other),
            }
        })
    }
}

/// Calls `attempt` until it has an answer: first spinning, since a peer on another core
/// usually answers sooner than a wake-up takes, then each time the bell rings. `attempt` is
/// told the time, and whether it is the last call, which must have an answer.
fn wait<T>(
    bell: &Bell,
    clock: &Clock,
    timeout: Option<Duration>,
    mut attempt: impl FnMut(Monotonic, bool) -> Option<T>,
) -> T {
    let backoff = Backoff::new();
    loop {
        let now = clock.now();
        let remaining = timeout.map_or(STUCK_AFTER, |timeout| timeout.saturating_sub(now.0));
        let parks = backoff.is_completed();
        if parks {
            bell.arm();
        }
        let answer = attempt(now, remaining.is_zero());
        match (answer, parks) {
            (Some(answer), true) => {
                bell.disarm();
                return answer;
            }
            (Some(answer), false) => return answer,
            (None, true) => {
                bell.park(Some(remaining.min(STUCK_AFTER)));
            }
            (None, false) => backoff.snooze(),
        }
    }
}
