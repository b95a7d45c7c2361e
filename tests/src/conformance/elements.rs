//! Elements to send, and the few steps that every promise takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use ringway::batch::{Payload, Row, Rows};
use ringway::batcher::{Batchable, Batcher, BinaryBatcher, CodecError, Coded};
use ringway::edge::{
    EdgeOptions, Ending, Failure, FailureKind, Popped, Receiver, RejectReason, Sender, Transport,
};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};

use super::EdgeSubject;
use crate::within::{LONG, until};

/// How long an edge refuses before it counts as full for good: longer than a busy machine keeps
/// the thread from running that moves its bytes.
const STAYS: Duration = Duration::from_millis(300);

/// The payload of most promises.
pub type Numbers = Rows<i64>;

/// A way for a sender to go.
pub type SenderGoes = fn(Sender<Numbers>);

/// A way for a receiver to go.
pub type ReceiverGoes = fn(Receiver<Numbers>);

/// A payload that counts how many of it are alive.
pub type Counted = Rows<Alive>;

/// Something that is counted as long as it is alive, in whichever form it travels.
#[derive(Clone, Debug)]
pub struct Alive(pub Arc<()>);

/// What is counted, by the address of its count: an edge to another process carries the
/// address, and at the other end it counts there.
static COUNTS: Mutex<BTreeMap<usize, Weak<()>>> = Mutex::new(BTreeMap::new());

impl Alive {
    /// One more of those that `count` counts.
    pub fn new(count: &Arc<()>) -> Self {
        let address = Arc::as_ptr(count).addr();
        let mut counts = COUNTS.lock().unwrap();
        counts.insert(address, Arc::downgrade(count));
        Self(Arc::clone(count))
    }
}

impl Coded for Alive {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(&Arc::as_ptr(&self.0).addr().to_le_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let address = usize::from_le_bytes(bytes.try_into().expect("an address"));
        let counts = COUNTS.lock().unwrap();
        let count = counts.get(&address).and_then(Weak::upgrade);
        // Whose count is gone is counted by nobody.
        Ok(Self(count.unwrap_or_default()))
    }
}

impl Batchable for Alive {
    fn batcher() -> Arc<dyn Batcher<Self>> {
        Arc::new(BinaryBatcher::plain())
    }
}

/// An edge named `edge`, with room for this many elements.
pub fn room_for(elements: usize) -> EdgeOptions {
    EdgeOptions::named("edge").capacity(elements)
}

/// An edge with as little room in bytes as lets a batch of one row pass.
pub fn tight<S: EdgeSubject>(subject: &S) -> EdgeOptions {
    let bytes = if subject.is_instant() { 1 } else { 4096 };
    EdgeOptions::named("edge").bytes(bytes)
}

/// A batch of one row.
pub fn number(value: i64) -> StreamElement<Numbers> {
    StreamElement::Data(Rows::from(vec![Row::at(value, value)]))
}

/// A batch of one row that is counted by `alive`.
pub fn counted(alive: &Arc<()>) -> StreamElement<Counted> {
    StreamElement::Data(Rows::from(vec![Row::untimed(Alive::new(alive))]))
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

/// Pushes an element that must be accepted: now, where a pop is seen at once; else soon.
#[track_caller]
pub fn push<B: Payload>(sender: &mut Sender<B>, element: StreamElement<B>) {
    let pushed = match sender.transport() {
        Transport::Local | Transport::Shared => sender.try_push(element),
        Transport::Socket => sender.push_timeout(element, LONG),
    };
    pushed.expect("the edge has room and a receiver");
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
    (told(rejected.reason), rejected.element)
}

/// Pushes until the edge stays full; returns what it took. An edge whose halves see each other
/// at once takes exactly `room` elements; others also take what is on the way.
#[track_caller]
pub fn fill<S: EdgeSubject, B: Payload>(
    subject: &S,
    sender: &mut Sender<B>,
    room: usize,
    mut element: impl FnMut(usize) -> StreamElement<B>,
) -> Vec<StreamElement<B>> {
    let sent = |sender: &Sender<B>| sender.remote_stats().map(|stats| stats.wire_bytes);
    let mut taken = Vec::new();
    let since = Instant::now();
    loop {
        let next = element(taken.len());
        let before = sent(sender);
        let pushed = match subject.is_instant() {
            true => sender.try_push(next.clone()),
            false => sender.push_timeout(next.clone(), STAYS),
        };
        match pushed {
            Ok(()) => taken.push(next),
            Err(rejected) => {
                assert_eq!(rejected.reason, RejectReason::Full);
                // Who has not begun to send, or goes on, only has not had the time.
                let has_begun =
                    before.is_none_or(|bytes| bytes > 0) || sender.transport() == Transport::Shared;
                let still = has_begun && before == sent(sender);
                if still || since.elapsed() > LONG {
                    break;
                }
            }
        }
    }
    match subject.is_instant() {
        true => assert_eq!(taken.len(), room),
        false => assert!(taken.len() >= room, "{} of {room}", taken.len()),
    }
    taken
}

/// Waits until a sender sees that its receiver went: at once, or soon; and where a receiver
/// can't say that it goes, when it is sent to.
#[track_caller]
pub fn sees_the_end<S: EdgeSubject, B: Payload>(subject: &S, sender: &mut Sender<B>) {
    if subject.is_instant() {
        return assert!(sender.is_closed());
    }
    let start = Instant::now();
    while !sender.is_closed() {
        assert!(start.elapsed() < LONG, "the sender does not see the end");
        if !subject.tells_reasons() {
            let _ = sender.try_push(watermark(0));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until nothing is alive but what the caller holds: at once, or soon. On the way it may
/// seem so for a moment, since bytes are counted by nobody.
#[track_caller]
pub fn nobody_else_has<S: EdgeSubject>(subject: &S, alive: &Arc<()>) {
    let is_so = || Arc::strong_count(alive) == 1;
    match subject.is_instant() {
        true => assert!(is_so(), "an element leaked"),
        false => until(LONG, "what nobody takes is dropped", is_so),
    }
}

/// Why a push is rejected after the receiver went in this way, as far as the edge can say.
pub fn expected<S: EdgeSubject>(subject: &S, reason: RejectReason) -> RejectReason {
    match subject.tells_reasons() {
        true => reason,
        false => RejectReason::Failed(Failure::peer_lost("edge")),
    }
}

/// How a stream ended that was ended in this way, as far as the edge can say.
pub fn expected_ending<S: EdgeSubject>(subject: &S, ending: Ending) -> Ending {
    match subject.tells_reasons() || ending.is_orderly() {
        true => ending,
        false => Ending::Failed(Failure::peer_lost("edge")),
    }
}

/// A reason without what differs between transports: who the peer is, and how it was noticed
/// that it is gone.
pub fn told(reason: RejectReason) -> RejectReason {
    match reason {
        RejectReason::Failed(failure) => RejectReason::Failed(plain(failure)),
        other => other,
    }
}

/// An ending without what differs between transports, as [`told`].
pub fn told_ending(ending: Ending) -> Ending {
    match ending {
        Ending::Failed(failure) => Ending::Failed(plain(failure)),
        other => other,
    }
}

fn plain(mut failure: Failure) -> Failure {
    failure.peer = None;
    if let FailureKind::ConnectionLost(_) = failure.kind {
        failure.kind = FailureKind::PeerLost;
    }
    failure
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
        Popped::Ended(ending) => told_ending(ending),
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
