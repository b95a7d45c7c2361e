//! Awaited forms, for a task of any asynchronous runtime.
//!
//! A half that is awaited needs a bell of its own: two futures that share one bell take each
//! other's wake-ups. [`local::pair`](super::local::pair) gives each half one.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::Clock;
use crate::element::StreamElement;

use super::{Popped, Receiver, RejectReason, Rejected, Sender};

impl<B: Payload> Sender<B> {
    /// Pushes an element, waiting for room without limit. The task sleeps meanwhile and is
    /// woken by the receiver.
    ///
    /// The element was accepted exactly if the future said so. Dropping it before that pushes
    /// nothing, and drops the element with it: keep the future, ask it for the element with
    /// [`Push::into_element`], or await [`Sender::ready`] where one of several futures wins.
    ///
    /// # Errors
    /// As for [`Sender::try_push`], but never `Full`.
    pub fn push_async(&mut self, element: StreamElement<B>) -> Push<'_, B> {
        Push {
            sender: self,
            element: Some(element),
            waits: Waits::default(),
        }
    }

    /// Waits until the edge has room for `element`. Nothing is pushed, so dropping the future
    /// loses nothing. Only this half takes room, so [`Sender::try_push`] of that element is
    /// not `Full` afterwards, whenever it comes.
    ///
    /// # Errors
    /// [`RejectReason::Closed`] and [`RejectReason::Failed`] as for [`Sender::try_push`],
    /// never `Full`.
    pub fn ready<'a>(&'a mut self, element: &'a StreamElement<B>) -> Ready<'a, B> {
        Ready {
            sender: self,
            element,
            waits: Waits::default(),
        }
    }

    /// One poll of a future that needs room, as `attempt` sees it.
    pub(super) fn poll_room<T>(
        &mut self,
        waits: &mut Waits,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Self) -> Option<T>,
    ) -> Poll<T> {
        if self.turn().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let bell = self.bell().clone();
        match look_twice(&bell, cx, || attempt(self)) {
            Some(answer) => {
                self.turn().took_one();
                self.stop_waiting(waits);
                Poll::Ready(answer)
            }
            None => {
                self.turn().begin();
                let clock = waits.since.get_or_insert_with(Clock::start);
                self.blocked(clock.now());
                Poll::Pending
            }
        }
    }

    /// A future that may have waited does so no more.
    pub(super) fn stop_waiting(&mut self, waits: &mut Waits) {
        if let Some(clock) = waits.since.take() {
            self.bell().withdraw();
            self.unblocked(clock.now());
        }
    }
}

impl<B: Payload> Receiver<B> {
    /// Takes the next element, waiting for one without limit. The task sleeps meanwhile and
    /// is woken by the sender. Returns `Empty` only to say that a barrier waits in
    /// [`Receiver::poll_priority`].
    ///
    /// Dropping the future before it is ready takes nothing.
    pub fn pop_async(&mut self) -> Pop<'_, B> {
        Pop {
            receiver: self,
            waits: false,
        }
    }

    /// One poll of a future that takes an element. `waits` says whether its waker is left.
    pub(super) fn poll_element(
        &mut self,
        waits: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Popped<B>> {
        if self.turn().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let bell = self.bell().cloned();
        let mut attempt = || match self.try_pop() {
            Popped::Empty if !self.has_priority() => None,
            popped => Some(popped),
        };
        let answer = match &bell {
            Some(bell) => look_twice(bell, cx, attempt),
            // Everything was taken: there is nothing to wait for.
            None => attempt(),
        };
        let Some(popped) = answer else {
            self.turn().begin();
            *waits = true;
            return Poll::Pending;
        };
        if let (true, Some(bell)) = (std::mem::take(waits), bell) {
            bell.withdraw();
        }
        self.turn().took_one();
        Poll::Ready(popped)
    }

    /// A future that may have waited does so no more.
    pub(super) fn stop_waiting(&mut self, waits: &mut bool) {
        if let (true, Some(bell)) = (std::mem::take(waits), self.bell()) {
            bell.withdraw();
        }
    }
}

/// Looks, leaves the waker, and looks again, since what came in between rang nobody.
pub(crate) fn look_twice<T>(
    bell: &Bell,
    cx: &mut Context<'_>,
    mut attempt: impl FnMut() -> Option<T>,
) -> Option<T> {
    let first = attempt();
    if first.is_some() {
        return first;
    }
    bell.register(cx.waker());
    let second = attempt();
    if second.is_some() {
        bell.withdraw();
    }
    second
}

/// Since when a future waits for room, if it does; its waker is left with the bell then.
#[derive(Debug, Default)]
pub(super) struct Waits {
    since: Option<Clock>,
}

/// The future of [`Sender::push_async`].
#[must_use = "nothing is pushed until it is awaited"]
pub struct Push<'a, B: Payload> {
    sender: &'a mut Sender<B>,
    /// None when it was accepted or given back.
    element: Option<StreamElement<B>>,
    waits: Waits,
}

/// The future of [`Sender::ready`].
#[must_use = "nothing waits until it is awaited"]
pub struct Ready<'a, B: Payload> {
    sender: &'a mut Sender<B>,
    element: &'a StreamElement<B>,
    waits: Waits,
}

/// The future of [`Receiver::pop_async`].
#[must_use = "nothing is taken until it is awaited"]
pub struct Pop<'a, B: Payload> {
    receiver: &'a mut Receiver<B>,
    waits: bool,
}

impl<B: Payload> Push<'_, B> {
    /// Waits no more and gives the element back; none if the future was ready.
    pub fn into_element(mut self) -> Option<StreamElement<B>> {
        self.element.take()
    }
}

impl<B: Payload> Future for Push<'_, B> {
    type Output = Result<(), Rejected<B>>;

    /// # Panics
    /// If it was ready before.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let push = self.get_mut();
        assert!(push.element.is_some(), "polled after it was ready");
        let element = &mut push.element;
        push.sender.poll_room(&mut push.waits, cx, |sender| {
            match sender.try_push(element.take()?) {
                Err(rejected) if rejected.reason == RejectReason::Full => {
                    *element = Some(rejected.element);
                    None
                }
                other => Some(other),
            }
        })
    }
}

impl<B: Payload> Future for Ready<'_, B> {
    type Output = Result<(), RejectReason>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ready = self.get_mut();
        let element = ready.element;
        ready.sender.poll_room(&mut ready.waits, cx, |sender| {
            match sender.admits(element) {
                Err(RejectReason::Full) => None,
                other => Some(other),
            }
        })
    }
}

impl<B: Payload> Future for Pop<'_, B> {
    type Output = Popped<B>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pop = self.get_mut();
        pop.receiver.poll_element(&mut pop.waits, cx)
    }
}

/// No element is ever pinned in its place.
impl<B: Payload> Unpin for Push<'_, B> {}

impl<B: Payload> Drop for Push<'_, B> {
    fn drop(&mut self) {
        self.sender.stop_waiting(&mut self.waits);
    }
}

impl<B: Payload> Drop for Ready<'_, B> {
    fn drop(&mut self) {
        self.sender.stop_waiting(&mut self.waits);
    }
}

impl<B: Payload> Drop for Pop<'_, B> {
    fn drop(&mut self) {
        self.receiver.stop_waiting(&mut self.waits);
    }
}

impl<B: Payload> fmt::Debug for Push<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Push")
            .field("edge", &self.sender.name())
            .field("is_done", &self.element.is_none())
            .finish_non_exhaustive()
    }
}

impl<B: Payload> fmt::Debug for Ready<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready")
            .field("edge", &self.sender.name())
            .finish_non_exhaustive()
    }
}

impl<B: Payload> fmt::Debug for Pop<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pop")
            .field("edge", &self.receiver.name())
            .finish_non_exhaustive()
    }
}
