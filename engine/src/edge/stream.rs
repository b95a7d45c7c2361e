//! The halves of an edge as the stream and the sink that combinators of others work on.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;

use crate::batch::Payload;
use crate::element::StreamElement;

use super::awaiting::Waits;
use super::{Ending, Popped, Receiver, RejectReason, Sender};

impl<B: Payload> Receiver<B> {
    /// The elements as a [`Stream`] that any library of combinators takes.
    pub fn into_stream(self) -> Elements<B> {
        Elements {
            receiver: self,
            waits: false,
            is_over: false,
        }
    }
}

impl<B: Payload> Sender<B> {
    /// The sending half as a [`Sink`] that any library of combinators takes.
    pub fn into_sink(self) -> ElementSink<B> {
        ElementSink {
            sender: Some(self),
            element: None,
            waits: Waits::default(),
        }
    }
}

/// The elements of an edge, as a stream. See [`Receiver::into_stream`].
///
/// It is over after [`Ending::End`] only. Every other ending is an error, said once: what
/// came so far may be incomplete. A barrier that overtakes comes as an element, before those
/// that it overtakes.
#[derive(Debug)]
pub struct Elements<B: Payload> {
    receiver: Receiver<B>,
    waits: bool,
    is_over: bool,
}

/// The sending half of an edge, as a sink. See [`Sender::into_sink`].
///
/// It keeps one element that found no room; flushing waits until the edge has taken it.
/// Closing it ends the stream as [`Sender::finish`] does. Dropping it does not: the receiver
/// learns that the stream failed, and the element that waits is dropped. The time that an
/// element waits for room counts as blocked.
#[derive(Debug)]
pub struct ElementSink<B: Payload> {
    /// None after the close.
    sender: Option<Sender<B>>,
    /// What found no room, or was rejected for another reason.
    element: Option<StreamElement<B>>,
    waits: Waits,
}

impl<B: Payload> Elements<B> {
    /// The receiving half again, with every element that the stream has not given.
    pub fn into_receiver(self) -> Receiver<B> {
        let Self {
            mut receiver,
            mut waits,
            ..
        } = self;
        receiver.stop_waiting(&mut waits);
        receiver
    }
}

impl<B: Payload> ElementSink<B> {
    /// Takes the element that the edge has not taken, if there is one: after an error, or
    /// when nobody wants to wait for it any more.
    pub fn take_element(&mut self) -> Option<StreamElement<B>> {
        self.element.take()
    }

    /// The sending half again, with the element that it has not taken. No sender after the
    /// close.
    pub fn into_parts(mut self) -> (Option<Sender<B>>, Option<StreamElement<B>>) {
        if let Some(sender) = &mut self.sender {
            sender.stop_waiting(&mut self.waits);
        }
        (self.sender, self.element)
    }

    fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let Self {
            sender,
            element,
            waits,
        } = self;
        let Some(sender) = sender else {
            return Poll::Ready(Err(RejectReason::Closed));
        };
        if element.is_none() {
            sender.stop_waiting(waits);
            return Poll::Ready(Ok(()));
        }
        sender.poll_room(waits, cx, |sender| push_kept(sender, element))
    }
}

/// Pushes what is kept; keeps it if the edge does not take it. None while there is no room.
fn push_kept<B: Payload>(
    sender: &mut Sender<B>,
    kept: &mut Option<StreamElement<B>>,
) -> Option<Result<(), RejectReason>> {
    match sender.try_push(kept.take()?) {
        Ok(()) => Some(Ok(())),
        Err(rejected) => {
            *kept = Some(rejected.element);
            (rejected.reason != RejectReason::Full).then_some(Err(rejected.reason))
        }
    }
}

impl<B: Payload> Stream for Elements<B> {
    type Item = Result<StreamElement<B>, Ending>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let elements = self.get_mut();
        if elements.is_over {
            return Poll::Ready(None);
        }
        loop {
            if let Some((barrier, _)) = elements.receiver.poll_priority() {
                return Poll::Ready(Some(Ok(StreamElement::Barrier(barrier))));
            }
            match ready!(elements.receiver.poll_element(&mut elements.waits, cx)) {
                Popped::Element(element) => return Poll::Ready(Some(Ok(element))),
                // Another barrier overtakes.
                Popped::Empty => {}
                Popped::Ended(ending) => {
                    elements.is_over = true;
                    return Poll::Ready((ending != Ending::End).then_some(Err(ending)));
                }
            }
        }
    }
}

/// No element is ever pinned in its place.
impl<B: Payload> Unpin for Elements<B> {}

/// No element is ever pinned in its place.
impl<B: Payload> Unpin for ElementSink<B> {}

impl<B: Payload> Sink<StreamElement<B>> for ElementSink<B> {
    type Error = RejectReason;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        self.get_mut().poll_empty(cx)
    }

    /// # Panics
    /// If it was not ready for an element.
    fn start_send(self: Pin<&mut Self>, element: StreamElement<B>) -> Result<(), RejectReason> {
        let sink = self.get_mut();
        assert!(sink.element.is_none(), "sent before it was ready");
        sink.element = Some(element);
        match &mut sink.sender {
            Some(sender) => push_kept(sender, &mut sink.element).unwrap_or(Ok(())),
            None => Err(RejectReason::Closed),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        self.get_mut().poll_empty(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), RejectReason>> {
        let sink = self.get_mut();
        if sink.sender.is_none() {
            return Poll::Ready(Ok(()));
        }
        ready!(sink.poll_empty(cx))?;
        let finished = sink.sender.take().map_or(Ok(()), Sender::finish);
        Poll::Ready(finished)
    }
}
