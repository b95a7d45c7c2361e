//! Waiting forms for a thread that has nothing else to do than this ring.
#![allow(clippy::disallowed_methods, reason = "a timed wait measures itself")]

use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::consumer::Consumer;
use crate::error::{PopError, PushError};
use crate::producer::Producer;

impl<T> Producer<T> {
    /// Pushes one element, waiting for room for at most `timeout`, without
    /// limit if that is `None`. Spins for some microseconds, then parks on
    /// [`producer_bell`](Producer::producer_bell), which nothing else may be
    /// parking on meanwhile.
    ///
    /// # Errors
    ///
    /// Both give the value back. [`PushError::Full`]: the time is over, push it
    /// again or give up. [`PushError::Abandoned`]: the consumer is gone, stop.
    pub fn push_blocking(
        &mut self,
        value: T,
        timeout: Option<Duration>,
    ) -> Result<(), PushError<T>> {
        let mut rejected = match self.try_push(value) {
            Err(PushError::Full(value)) => value,
            other => return other,
        };
        let deadline = deadline(timeout);
        loop {
            let ready = wait(self.producer_bell(), deadline, || self.is_ready());
            rejected = match self.try_push(rejected) {
                Err(PushError::Full(value)) if ready => value,
                other => return other,
            };
        }
    }
}

impl<T> Consumer<T> {
    /// Pops the oldest element, waiting for one for at most `timeout`, without
    /// limit if that is `None`. Spins for some microseconds, then parks on
    /// [`consumer_bell`](Consumer::consumer_bell), which nothing else may be
    /// parking on meanwhile.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`]: the time is over, or a priority value arrived and
    /// can be taken. [`PopError::Finished`] and [`PopError::Abandoned`] at
    /// once, as for [`try_pop`](Consumer::try_pop).
    pub fn pop_blocking(&mut self, timeout: Option<Duration>) -> Result<T, PopError> {
        match self.try_pop() {
            Err(PopError::Empty) if self.peek_priority().is_none() => {}
            other => return other,
        }
        wait(self.consumer_bell(), deadline(timeout), || self.is_ready());
        self.try_pop()
    }
}

/// The instant `timeout` from now; none if the clock can't hold it.
fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// Spins, then parks, until `ready` or the deadline. Returns whether it is ready.
fn wait(bell: &Bell, deadline: Option<Instant>, ready: impl Fn() -> bool) -> bool {
    if spin(&ready) {
        return true;
    }
    loop {
        bell.arm();
        if ready() {
            bell.disarm();
            return true;
        }
        let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        bell.park(remaining);
        if ready() {
            return true;
        }
        if remaining == Some(Duration::ZERO) {
            return false;
        }
    }
}

/// Looks a few times before the kernel is asked, with growing pauses, because
/// a peer on another core usually answers sooner than a wake-up takes.
#[cfg(not(loom))]
fn spin(ready: impl Fn() -> bool) -> bool {
    let backoff = crossbeam_utils::Backoff::new();
    while !backoff.is_completed() {
        if ready() {
            return true;
        }
        backoff.snooze();
    }
    false
}

/// The model explores every order anyway; spinning would only add to them.
#[cfg(loom)]
fn spin(_ready: impl Fn() -> bool) -> bool {
    false
}
