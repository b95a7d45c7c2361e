//! The receiving side of an endpoint, until it has its receiver.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::batch::Payload;
use crate::clock::Clock;
use crate::edge::remote::LinksHandle;
use crate::edge::{Bell, EdgeOptions, Receiver, look_twice};

use super::endpoint::Endpoint;
use super::names::{self, Names};
use super::{AcceptError, DataPlane};

/// A registered endpoint. It gives one receiver in its life; dropping it unregisters it, and
/// leaves a receiver that was taken as it is.
pub struct Listener<B: Payload> {
    plane: DataPlane,
    names: Names,
    endpoint: Arc<Endpoint<B>>,
    /// Whose thread accepts connections, where others than this process may connect.
    accepting: Option<LinksHandle>,
}

impl<B: Payload> Listener<B> {
    pub(super) fn new(
        plane: DataPlane,
        names: Names,
        endpoint: Arc<Endpoint<B>>,
        accepting: Option<LinksHandle>,
    ) -> Self {
        Self {
            plane,
            names,
            endpoint,
            accepting,
        }
    }

    /// Takes the receiver, if a sender has connected and it was not taken before. A worker
    /// calls this when its bell has rung.
    pub fn try_accept(&self) -> Option<Receiver<B>> {
        self.endpoint.take()
    }

    /// Takes the receiver, waiting for a sender without limit. Parks the calling thread on the
    /// receiver's bell, which nothing else may be parking on meanwhile.
    ///
    /// # Errors
    /// [`AcceptError::Failed`]: nobody can connect any more; the text says why.
    /// [`AcceptError::AlreadyTaken`]: there is one receiver, and it was taken before.
    pub fn accept(&self) -> Result<Receiver<B>, AcceptError> {
        self.accept_within(None)
    }

    /// Takes the receiver, waiting for a sender for at most `timeout`. Parks as
    /// [`Listener::accept`] does.
    ///
    /// # Errors
    /// [`AcceptError::TimedOut`]: no sender connected in all that time.
    /// [`AcceptError::Failed`]: nobody can connect any more; the text says why.
    /// [`AcceptError::AlreadyTaken`]: there is one receiver, and it was taken before.
    pub fn accept_timeout(&self, timeout: Duration) -> Result<Receiver<B>, AcceptError> {
        self.accept_within(Some(timeout))
    }

    /// Takes the receiver, waiting for a sender without limit. The task sleeps meanwhile and
    /// is woken through the receiver's bell, which nothing else may be waiting on. Dropping
    /// the future takes nothing.
    ///
    /// # Errors
    /// [`AcceptError::Failed`]: nobody can connect any more; the text says why.
    /// [`AcceptError::AlreadyTaken`]: there is one receiver, and it was taken before.
    pub fn accept_async(&self) -> impl Future<Output = Result<Receiver<B>, AcceptError>> + '_ {
        let registered = Registered(self.endpoint.receiver_bell());
        poll_fn(move |cx| {
            let attempt = || self.answer();
            look_twice(registered.0, cx, attempt).map_or(Poll::Pending, Poll::Ready)
        })
    }

    /// The port; the one that was chosen where 0 was asked for. Where only senders of this
    /// process may connect it is a number in the registry, and says nothing about ports of the
    /// kernel.
    pub fn port(&self) -> u16 {
        self.names.port()
    }

    /// Every host under which senders find this endpoint, the bind host first.
    pub fn hosts(&self) -> &[String] {
        self.names.hosts()
    }

    /// What the edge is opened with.
    pub fn edge(&self) -> &EdgeOptions {
        self.endpoint.edge()
    }

    /// Whether a sender has connected, even if it is gone since.
    pub fn is_connected(&self) -> bool {
        self.endpoint.is_connected()
    }

    fn accept_within(&self, timeout: Option<Duration>) -> Result<Receiver<B>, AcceptError> {
        let bell = self.endpoint.receiver_bell();
        let clock = Clock::start();
        loop {
            bell.arm();
            let answer = self.answer();
            let remaining = timeout.map(|timeout| timeout.saturating_sub(clock.now().0));
            let is_over = remaining.is_some_and(|remaining| remaining.is_zero());
            let answer = answer.or(is_over.then_some(Err(AcceptError::TimedOut)));
            if let Some(answer) = answer {
                bell.disarm();
                return answer;
            }
            bell.park(remaining);
        }
    }

    /// What accepting gives, if it need not wait.
    fn answer(&self) -> Option<Result<Receiver<B>, AcceptError>> {
        if let Some(receiver) = self.try_accept() {
            return Some(Ok(receiver));
        }
        if self.endpoint.is_taken() {
            return Some(Err(AcceptError::AlreadyTaken));
        }
        let failure = self.endpoint.failure()?;
        Some(Err(AcceptError::Failed(failure)))
    }
}

/// Takes the waker back when the wait is over, or given up.
struct Registered<'a>(&'a Bell);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

impl<B: Payload> Drop for Listener<B> {
    fn drop(&mut self) {
        self.plane.lock().unregister(&self.names);
        self.endpoint.close();
        if let Some(accepting) = &self.accepting {
            accepting.bell().ring();
        }
    }
}

impl<B: Payload> fmt::Debug for Listener<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = names::display(&self.hosts()[0], self.port());
        f.debug_struct("Listener")
            .field("endpoint", &endpoint)
            .field("edge", &self.edge().name)
            .field("is_connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}
