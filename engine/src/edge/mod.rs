//! The path from one subtask to another: one sender, one receiver, elements in one order.
//!
//! Whatever carries an edge, it keeps the same promises:
//!
//! - elements come out in the order they went in, control elements among the data;
//! - a rejected element comes back to the sender, with the reason;
//! - data waits where the edge is full, in elements or in bytes; control elements do not wait
//!   for room of data, but at most [`CONTROL_ELEMENTS_MAX`](crate::limits::CONTROL_ELEMENTS_MAX)
//!   of them go beyond it;
//! - the receiver takes everything that was accepted before it learns how the stream ended;
//! - a sender that is dropped has failed: it never looks like an end of the stream.

/// Calls the same of whatever carries a half.
macro_rules! each {
    ($self:expr, $edge:ident => $call:expr) => {
        match $self {
            Self::Local($edge) => $call,
            Self::Remote($edge) => $call,
            Self::Shared($edge) => $call,
        }
    };
}

mod awaiting;
mod blocking;
mod carried;
mod ending;
pub mod local;
mod metrics;
mod options;
pub mod remote;
pub mod shared;
mod stream;
mod turn;

pub use awaiting::{Pop, Push, Ready};
pub use ending::{Ending, Failure, FailureKind};
pub use metrics::EdgeMetrics;
pub use options::{EdgeOptions, Transport};
pub use ringway_shm::Bell;
pub use stream::{ElementSink, Elements};

pub(crate) use awaiting::look_twice;

use std::fmt;
use std::time::Duration;

use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::element::{Barrier, StreamElement};

use turn::Turn;

/// The sending half of an edge.
#[derive(Debug)]
pub enum Sender<B: Payload> {
    /// A lock-free ring between two subtasks of this process.
    Local(local::Sender<B>),
    /// A connection to another process, or one of which that is not known yet.
    Remote(remote::Sender<B>),
    /// Memory that is shared with another process of this host.
    Shared(Box<shared::Sender<B>>),
}

/// The receiving half of an edge.
#[derive(Debug)]
pub enum Receiver<B: Payload> {
    /// A lock-free ring between two subtasks of this process.
    Local(local::Receiver<B>),
    /// A connection to another process, or one of which that is not known yet.
    Remote(remote::Receiver<B>),
    /// Memory that is shared with another process of this host.
    Shared(Box<shared::Receiver<B>>),
}

/// An element that the edge did not take. It comes back unharmed.
#[must_use]
pub struct Rejected<B> {
    /// The element.
    pub element: StreamElement<B>,
    /// Why it was not taken.
    pub reason: RejectReason,
}

/// Why an edge did not take an element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// No room now: push again later. This is back-pressure, not a failure.
    #[error("the edge is full")]
    Full,
    /// The receiver wants no more and said so in order: stop sending.
    #[error("the receiver has closed the edge")]
    Closed,
    /// The receiver is gone: what was accepted may not have been processed.
    #[error("{0}")]
    Failed(Failure),
}

/// What a receiver got.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Popped<B> {
    /// The next element.
    Element(StreamElement<B>),
    /// Nothing now.
    Empty,
    /// Everything was taken, and the stream is over in this way. It is said again on every
    /// further call.
    Ended(Ending),
}

impl<B: Payload> Sender<B> {
    /// Puts an element at the end of the edge and wakes the receiver if it sleeps.
    ///
    /// # Errors
    /// [`RejectReason::Full`]: keep the element and push it again. [`RejectReason::Closed`]:
    /// stop, nothing is wrong. [`RejectReason::Failed`]: stop, and report the failure.
    #[inline]
    pub fn try_push(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        self.upgrade();
        each!(self, edge => edge.try_push(element))
    }

    /// As [`Sender::try_push`], but the receiver is not woken until [`Sender::flush`]: a step
    /// that pushes many elements checks once whether the receiver sleeps.
    ///
    /// # Errors
    /// As for `try_push`.
    #[inline]
    pub fn try_push_quiet(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        self.upgrade();
        each!(self, edge => edge.try_push_quiet(element))
    }

    /// Wakes the receiver if it sleeps and something was pushed quietly.
    #[inline]
    pub fn flush(&mut self) {
        each!(self, edge => edge.flush());
    }

    /// Sends a barrier ahead of what is queued. The receiver learns the position that it was
    /// pushed at, and so what it overtook. One barrier may be under way at a time.
    ///
    /// # Errors
    /// As for `try_push`; `Full` means that the last one was not yet taken.
    pub fn try_push_priority(&mut self, barrier: Barrier) -> Result<(), Rejected<B>> {
        self.upgrade();
        if let Self::Remote(edge) = self
            && edge.is_undecided()
        {
            // It would be lost on the way from one half to the other.
            return Err(Rejected {
                element: StreamElement::Barrier(barrier),
                reason: RejectReason::Full,
            });
        }
        each!(self, edge => edge.try_push_priority(barrier))
    }

    /// Sets the time at which what is pushed from now on entered the job. The receiver reads
    /// it back with [`Receiver::origin`]; latency is measured from it.
    pub fn set_origin(&mut self, origin: Monotonic) {
        each!(self, edge => edge.set_origin(origin));
    }

    /// Ends the stream: the receiver takes what is queued, then learns that the stream ended
    /// (or was stopped, if the last element is a drain marker with target parallelism 0).
    ///
    /// # Errors
    /// The receiver went before it could learn of the end. [`RejectReason::Closed`]: it wanted
    /// no more, nothing is wrong. [`RejectReason::Failed`]: report the failure; what was
    /// accepted may not have been processed. A receiver that goes later is not seen here.
    pub fn finish(mut self) -> Result<(), RejectReason> {
        self.upgrade();
        each!(self, edge => edge.finish())
    }

    /// As [`Sender::finish`], and waits until the peer has everything, at most for `timeout`:
    /// for a process that is about to exit, which would take what is still to be sent with it.
    /// Over a ring nothing is on the way, so it does not wait.
    ///
    /// In version 1 of the wire the peer's host having everything is all that can be known.
    ///
    /// # Errors
    /// [`FinishError`](remote::FinishError): the receiver went, or did not take everything in
    /// that time.
    pub fn finish_and_wait(self, timeout: Duration) -> Result<(), remote::FinishError> {
        match self {
            Self::Local(edge) => edge.finish().map_err(remote::FinishError::Rejected),
            Self::Remote(edge) => edge.finish_and_wait(timeout),
            Self::Shared(edge) => edge.finish_and_wait(timeout),
        }
    }

    /// Cancels the stream: no end. The receiver takes what is queued, then learns of it.
    pub fn cancel(self) {
        each!(self, edge => edge.close_with(Ending::Cancelled));
    }

    /// Fails the stream: no end. The receiver takes what is queued, then learns why.
    pub fn fail(self, reason: impl Into<String>) {
        each!(self, edge => edge.fail(reason.into()));
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        each!(self, edge => edge.is_closed())
    }

    /// What has gone through the edge, as the sender knows it.
    pub fn metrics(&self) -> EdgeMetrics {
        each!(self, edge => edge.metrics())
    }

    /// Tells the edge that an element has been waiting for room at `now`. Blocked time is
    /// counted from the first call until [`Sender::unblocked`]; a sender that waits longer
    /// than [`STUCK_AFTER`](crate::limits::STUCK_AFTER) is reported once in a warning.
    pub fn blocked(&mut self, now: Monotonic) {
        each!(self, edge => edge.blocked(now));
    }

    /// Tells the edge that nothing waits for room any more.
    pub fn unblocked(&mut self, now: Monotonic) {
        each!(self, edge => edge.unblocked(now));
    }

    /// Why the receiver takes nothing more, if that is known.
    pub(crate) fn check(&mut self) -> Result<(), RejectReason> {
        self.upgrade();
        each!(self, edge => edge.check())
    }

    /// Whether the edge would take this element now; the reason if not.
    fn admits(&mut self, element: &StreamElement<B>) -> Result<(), RejectReason> {
        self.upgrade();
        each!(self, edge => edge.admits(element))
    }

    /// Becomes the half over shared memory, as soon as it is known to be one.
    #[inline]
    fn upgrade(&mut self) {
        if let Self::Remote(edge) = self
            && let Some(shared) = edge.upgraded()
        {
            *self = Self::Shared(Box::new(shared));
        }
    }

    fn turn(&mut self) -> &mut Turn {
        each!(self, edge => edge.turn())
    }

    /// What wakes the owner of this half.
    pub(crate) fn bell(&self) -> &Bell {
        each!(self, edge => edge.bell())
    }
}

impl<B: Payload> Receiver<B> {
    /// Takes the next element, if there is one.
    #[inline]
    pub fn try_pop(&mut self) -> Popped<B> {
        self.upgrade();
        each!(self, edge => edge.try_pop())
    }

    /// Takes the barrier that was sent ahead of what is queued, with the position it was
    /// pushed at: elements with a smaller position were overtaken. Over a connection some of
    /// them may be queued later only; what is popped while [`position`](Self::position) is
    /// below that of the barrier came before it, however it is queued.
    pub fn poll_priority(&mut self) -> Option<(Barrier, u64)> {
        self.upgrade();
        each!(self, edge => edge.poll_priority())
    }

    /// Whether a barrier waits in [`Receiver::poll_priority`].
    pub fn has_priority(&self) -> bool {
        each!(self, edge => edge.has_priority())
    }

    /// Calls `each` with the queued elements before `position`, oldest first, without taking
    /// them.
    pub fn peek_until(&self, position: u64, each: impl FnMut(&StreamElement<B>)) {
        each!(self, edge => edge.peek_until(position, each));
    }

    /// The position of the next element that [`Receiver::try_pop`] returns: elements taken so
    /// far. It stays what it is when the stream has ended.
    pub fn position(&self) -> u64 {
        each!(self, edge => edge.position())
    }

    /// When the element that was taken last entered the job.
    pub fn origin(&self) -> Monotonic {
        each!(self, edge => edge.origin())
    }

    /// Wants no more: the sender's next push says `Closed`, which is no failure.
    pub fn close(mut self) {
        self.upgrade();
        each!(self, edge => edge.close());
    }

    /// Cannot go on: the sender's next push says `Failed` with this reason.
    pub fn fail(mut self, reason: impl Into<String>) {
        self.upgrade();
        each!(self, edge => edge.fail(reason.into()));
    }

    /// Becomes the half over shared memory, as soon as it is known to be one.
    #[inline]
    fn upgrade(&mut self) {
        if let Self::Remote(edge) = self
            && let Some(shared) = edge.upgraded()
        {
            *self = Self::Shared(shared);
        }
    }

    fn turn(&mut self) -> &mut Turn {
        each!(self, edge => edge.turn())
    }

    fn bell(&self) -> Option<&Bell> {
        each!(self, edge => edge.bell())
    }
}

impl<B> fmt::Debug for Rejected<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<B> fmt::Display for Rejected<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)
    }
}

impl<B> std::error::Error for Rejected<B> {}
