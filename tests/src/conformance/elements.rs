//! Elements to send, and the few steps that every promise takes.

use std::sync::Arc;

use ringway::batch::{Payload, Row, Rows};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};

use crate::within::LONG;

/// The payload of most promises.
pub type Numbers = Rows<i64>;

/// A way for a sender to go.
pub type SenderGoes = fn(Sender<Numbers>);

/// A way for a receiver to go.
pub type ReceiverGoes = fn(Receiver<Numbers>);

/// A payload that counts how many of it are alive.
pub type Counted = Rows<Arc<()>>;

/// An edge named `edge`, with room for this many elements.
pub fn room_for(elements: usize) -> EdgeOptions {
    EdgeOptions::named("edge").capacity(elements)
}

/// A batch of one row.
pub fn number(value: i64) -> StreamElement<Numbers> {
    StreamElement::Data(Rows::from(vec![Row::at(value, value)]))
}

/// A batch of one row that is counted by `alive`.
pub fn counted(alive: &Arc<()>) -> StreamElement<Counted> {
    StreamElement::Data(Rows::from(vec![Row::untimed(Arc::clone(alive))]))
}

/// An active watermark.
pub fn watermark<B>(timestamp: i64) -> StreamElement<B> {
    StreamElement::Watermark(Watermark::active(timestamp))
}

/// An aligned barrier.
pub fn barrier<B>(id: u64) -> StreamElement<B> {
    StreamElement::Barrier(Barrier::aligned(id))
}

/// A drain marker that stops the stream.
pub fn stop<B>() -> StreamElement<B> {
    StreamElement::Drain(Drain::stop(0))
}

/// Pushes an element that must be accepted now.
#[track_caller]
pub fn push<B: Payload>(sender: &mut Sender<B>, element: StreamElement<B>) {
    sender
        .try_push(element)
        .expect("the edge has room and a receiver");
}

/// Pushes an element that must be rejected now; returns why and the element.
#[track_caller]
pub fn rejected<B: Payload>(
    sender: &mut Sender<B>,
    element: StreamElement<B>,
) -> (RejectReason, StreamElement<B>) {
    let rejected = sender
        .try_push(element)
        .expect_err("the edge cannot take it");
    (rejected.reason, rejected.element)
}

/// Takes the element that must come next.
#[track_caller]
pub fn next<B: Payload + std::fmt::Debug>(receiver: &mut Receiver<B>) -> StreamElement<B> {
    match receiver.pop_timeout(LONG) {
        Popped::Element(element) => element,
        other => panic!("an element comes next, not {other:?}"),
    }
}

/// Takes the ending that must come next.
#[track_caller]
pub fn ending<B: Payload + std::fmt::Debug>(receiver: &mut Receiver<B>) -> Ending {
    match receiver.pop_timeout(LONG) {
        Popped::Ended(ending) => ending,
        other => panic!("the stream is over, not {other:?}"),
    }
}

/// The one value of a batch of one row.
#[track_caller]
pub fn value_of(element: StreamElement<Numbers>) -> i64 {
    match element {
        StreamElement::Data(rows) if rows.len() == 1 => rows.into_vec()[0].value,
        other => panic!("one row, not {other:?}"),
    }
}
