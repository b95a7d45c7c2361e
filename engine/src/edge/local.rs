//! The edge between two subtasks of one process: a lock-free ring that moves elements.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ringway_shm::{Bell, Consumer, PopError, Producer, ring};

use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::element::{Barrier, StreamElement};
use crate::limits::{CONTROL_ELEMENTS_MAX, EDGE_CAPACITY_ELEMENTS};

use super::metrics::BlockedTime;
use super::shared::Before;
use super::turn::Turn;
use super::{EdgeMetrics, EdgeOptions, Ending, Failure, Popped, RejectReason, Rejected};

/// Opens a local edge. `sender_bell` and `receiver_bell` wake whoever owns the half.
///
/// # Panics
/// If the options leave no room for any data element.
pub fn open<B: Payload>(
    options: EdgeOptions,
    sender_bell: Bell,
    receiver_bell: Bell,
) -> (super::Sender<B>, super::Receiver<B>) {
    let (sender, receiver) = halves(options, sender_bell, receiver_bell);
    (
        super::Sender::Local(sender),
        super::Receiver::Local(receiver),
    )
}

/// The two halves of a local edge, of which one may be the inner end of another transport.
pub(super) fn halves<B: Payload>(
    options: EdgeOptions,
    sender_bell: Bell,
    receiver_bell: Bell,
) -> (Sender<B>, Receiver<B>) {
    assert!(
        options.capacity_elements > 0,
        "edge {} has no room for data",
        options.name
    );
    let slots = options.capacity_elements + CONTROL_ELEMENTS_MAX;
    let (producer, mut consumer) = ring(slots, sender_bell, receiver_bell);
    if options.capacity_elements < EDGE_CAPACITY_ELEMENTS {
        // Whoever asks for a small edge wants its sender to see each pop.
        consumer.give_back_every(1);
    }
    let shared = Arc::new(Shared {
        options,
        ending: OnceLock::new(),
        closing: OnceLock::new(),
    });
    let sender = Sender {
        producer: Some(producer),
        shared: Arc::clone(&shared),
        origin: Monotonic::default(),
        stops: false,
        unflushed: false,
        counts: Counts::default(),
        seen: Seen::default(),
        blocked: BlockedTime::default(),
        turn: Turn::default(),
    };
    let receiver = Receiver {
        consumer: Some(consumer),
        shared,
        origin: Monotonic::default(),
        ended: None,
        turn: Turn::default(),
    };
    (sender, receiver)
}

/// Opens a local edge whose halves have a bell of their own each: for a thread or a task on
/// either side that waits for nothing but this edge.
///
/// # Panics
/// As for [`open`].
pub fn pair<B: Payload>(options: EdgeOptions) -> (super::Sender<B>, super::Receiver<B>) {
    open(options, Bell::thread(), Bell::thread())
}

/// The sending half of a local edge.
pub struct Sender<B: Payload> {
    producer: Option<Producer<Slot<B>>>,
    shared: Arc<Shared>,
    origin: Monotonic,
    /// The last element was a drain marker that stops the stream.
    stops: bool,
    /// Something was pushed that the receiver was not woken for.
    unflushed: bool,
    counts: Counts,
    seen: Seen,
    blocked: BlockedTime,
    turn: Turn,
}

/// The receiving half of a local edge.
pub struct Receiver<B: Payload> {
    consumer: Option<Consumer<Slot<B>>>,
    shared: Arc<Shared>,
    origin: Monotonic,
    /// How the stream ended, and how many elements it had.
    ended: Option<(Ending, u64)>,
    turn: Turn,
}

/// One element on the way, with what the receiver gives back when it takes it.
struct Slot<B> {
    element: StreamElement<B>,
    bytes: usize,
    origin: Monotonic,
}

/// What one half leaves for the other when it goes. Written at most once a side, before the
/// ring tells the other that this side is gone.
struct Shared {
    options: EdgeOptions,
    ending: OnceLock<Ending>,
    closing: OnceLock<RejectReason>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    elements: u64,
    rows: u64,
    bytes: u64,
}

/// What the receiver had taken when the sender last looked: elements, and bytes of data.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    taken: u64,
    released: u64,
}

/// What a batch puts on an edge.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    rows: usize,
    bytes: usize,
}

impl<B: Payload> Sender<B> {
    #[inline]
    pub(super) fn try_push(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        self.try_push_quiet(element)?;
        self.flush();
        Ok(())
    }

    #[inline]
    pub(super) fn try_push_quiet(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        let load = match &element {
            StreamElement::Data(batch) => self.room_for(batch),
            _ => Some(Load::default()),
        };
        let Some(load) = load else {
            let reason = if self.is_closed() {
                self.closing()
            } else {
                RejectReason::Full
            };
            return Err(Rejected { element, reason });
        };
        let stops = matches!(&element, StreamElement::Drain(drain) if drain.stops());
        let slot = Slot {
            element,
            bytes: load.bytes,
            origin: self.origin,
        };
        if let Err(error) = self.producer().push_quiet(slot) {
            let reason = if error.is_full() {
                RejectReason::Full
            } else {
                self.closing()
            };
            let element = error.into_inner().element;
            return Err(Rejected { element, reason });
        }
        self.stops = stops;
        self.unflushed = true;
        self.counts.elements += 1;
        self.counts.rows += load.rows as u64;
        self.counts.bytes += load.bytes as u64;
        Ok(())
    }

    #[inline]
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.unflushed) {
            self.producer().wake();
        }
    }

    pub(super) fn try_push_priority(&mut self, barrier: Barrier) -> Result<(), Rejected<B>> {
        self.try_push_priority_at(barrier, self.position())
    }

    /// As [`try_push_priority`](Self::try_push_priority), where elements up to `position` that
    /// are not in the ring yet came before it.
    pub(super) fn try_push_priority_at(
        &mut self,
        barrier: Barrier,
        position: u64,
    ) -> Result<(), Rejected<B>> {
        let slot = Slot {
            element: StreamElement::Barrier(barrier),
            bytes: 0,
            origin: self.origin,
        };
        let pushed = self.producer().try_push_priority_at(slot, position);
        pushed.map_err(|error| {
            let reason = if error.is_full() {
                RejectReason::Full
            } else {
                self.closing()
            };
            Rejected {
                element: error.into_inner().element,
                reason,
            }
        })
    }

    pub(super) fn admits(&mut self, element: &StreamElement<B>) -> Result<(), RejectReason> {
        if self.is_closed() {
            return Err(self.closing());
        }
        let has_room = match element {
            StreamElement::Data(batch) => self.room_for(batch).is_some(),
            _ => self.producer().is_ready(),
        };
        has_room.then_some(()).ok_or(RejectReason::Full)
    }

    pub(super) fn check(&mut self) -> Result<(), RejectReason> {
        match self.is_closed() {
            true => Err(self.closing()),
            false => Ok(()),
        }
    }

    pub(super) fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }

    pub(super) fn set_origin(&mut self, origin: Monotonic) {
        self.origin = origin;
    }

    pub(super) fn finish(mut self) -> Result<(), RejectReason> {
        if self.stops {
            self.shared.ending.get_or_init(|| Ending::Stopped);
        }
        let is_closed = self.is_closed();
        if let Some(producer) = self.producer.take() {
            producer.finish();
        }
        if is_closed {
            Err(self.closing())
        } else {
            Ok(())
        }
    }

    pub(super) fn close_with(self, ending: Ending) {
        self.shared.ending.get_or_init(|| ending);
    }

    pub(super) fn fail(self, reason: String) {
        let failure = Failure::peer_failed(self.shared.options.name.clone(), reason);
        self.close_with(Ending::Failed(failure));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.producer.as_ref().is_none_or(Producer::is_abandoned)
    }

    pub(super) fn len(&self) -> usize {
        self.producer.as_ref().map_or(0, Producer::len)
    }

    pub(super) fn options(&self) -> &EdgeOptions {
        &self.shared.options
    }

    pub(super) fn metrics(&self) -> EdgeMetrics {
        EdgeMetrics {
            elements: self.counts.elements,
            rows: self.counts.rows,
            bytes: self.counts.bytes,
            depth: self.len(),
            high_water: self.producer.as_ref().map_or(0, Producer::high_water),
            blocked: self.blocked.total(),
            blocked_times: self.blocked.times(),
        }
    }

    pub(super) fn blocked(&mut self, now: Monotonic) {
        if let Some(waited) = self.blocked.blocked(now) {
            tracing::warn!(
                edge = %self.shared.options.name,
                depth = self.len(),
                capacity = self.shared.options.capacity_elements,
                waited_ms = waited.as_millis() as u64,
                "edge is stuck: its sender waits, its receiver does not take what is queued"
            );
        }
    }

    pub(super) fn unblocked(&mut self, now: Monotonic) {
        self.blocked.unblocked(now);
    }

    pub(super) fn bell(&self) -> &Bell {
        self.producer
            .as_ref()
            .expect("a sender has its ring until it is consumed")
            .producer_bell()
    }

    /// What has been done with this half, for another that goes on in its place.
    pub(super) fn take_before(&mut self) -> Before {
        Before {
            origin: self.origin,
            stops: self.stops,
            metrics: self.metrics(),
            blocked: std::mem::take(&mut self.blocked),
            turn: std::mem::take(&mut self.turn),
        }
    }

    /// Data and control elements that the receiver has taken.
    pub(super) fn taken(&self) -> u64 {
        self.position() - self.len() as u64
    }

    /// Elements that were pushed: the position of the next one.
    pub(super) fn pushed(&self) -> u64 {
        self.position()
    }

    /// Why the receiver is gone, which [`is_closed`](Self::is_closed) tells.
    pub(super) fn closed_because(&self) -> RejectReason {
        self.closing()
    }

    /// What a batch puts on the edge, if the bounds on data admit it. The control elements that
    /// are queued count as elements here: they took room from data.
    ///
    /// Looks at what the receiver has taken only when what was seen last does not suffice,
    /// because that line of memory belongs to the receiver's core; and counts the bytes of the
    /// batch only when there is a slot for it, because a sender that waits tries again and again.
    #[inline]
    fn room_for(&mut self, batch: &B) -> Option<Load> {
        let has_slot = self.has_slot() || self.look_again().has_slot();
        if !has_slot {
            return None;
        }
        let load = Load {
            rows: batch.rows(),
            bytes: batch.bytes(),
        };
        let has_room = self.has_bytes(load.bytes) || self.look_again().has_bytes(load.bytes);
        has_room.then_some(load)
    }

    #[inline]
    fn has_slot(&self) -> bool {
        let queued = self.position() - self.seen.taken;
        queued < self.shared.options.capacity_elements as u64
    }

    #[inline]
    fn has_bytes(&self, bytes: usize) -> bool {
        let in_flight = self.counts.bytes - self.seen.released;
        in_flight == 0 || in_flight + bytes as u64 <= self.shared.options.bytes_max as u64
    }

    #[cold]
    fn look_again(&mut self) -> &Self {
        let producer = self.producer();
        let taken = producer.position() - producer.len() as u64;
        let released = producer.released();
        self.seen = Seen { taken, released };
        self
    }

    #[inline]
    fn position(&self) -> u64 {
        self.producer.as_ref().map_or(0, Producer::position)
    }

    #[inline]
    fn producer(&mut self) -> &mut Producer<Slot<B>> {
        self.producer
            .as_mut()
            .expect("a sender has its ring until it is consumed")
    }

    #[cold]
    fn closing(&self) -> RejectReason {
        let lost = || RejectReason::Failed(Failure::peer_lost(self.shared.options.name.clone()));
        self.shared.closing.get().cloned().unwrap_or_else(lost)
    }
}

impl<B: Payload> Receiver<B> {
    #[inline]
    pub(super) fn try_pop(&mut self) -> Popped<B> {
        let Some(consumer) = self.consumer.as_mut() else {
            return self.ended();
        };
        match consumer.pop_quiet() {
            Ok(slot) => {
                if slot.bytes > 0 {
                    consumer.release(slot.bytes as u64);
                }
                consumer.wake();
                self.origin = slot.origin;
                Popped::Element(slot.element)
            }
            Err(PopError::Empty) => Popped::Empty,
            Err(closed) => self.close_ring(closed),
        }
    }

    /// As [`try_pop`](Self::try_pop), but the bytes of the element, which are returned beside
    /// it, stay in flight until [`release`](Self::release): whoever passes it on still has
    /// them.
    #[inline]
    pub(super) fn pop_held(&mut self) -> (Popped<B>, usize) {
        let Some(consumer) = self.consumer.as_mut() else {
            return (self.ended(), 0);
        };
        match consumer.try_pop() {
            Ok(slot) => {
                self.origin = slot.origin;
                (Popped::Element(slot.element), slot.bytes)
            }
            Err(PopError::Empty) => (Popped::Empty, 0),
            Err(closed) => (self.close_ring(closed), 0),
        }
    }

    /// Whether there is anything to take or to learn.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.consumer.as_ref().is_none_or(Consumer::is_ready)
    }

    /// Gives the sender back the room of bytes that were held.
    pub(super) fn release(&mut self, bytes: usize) {
        if let Some(consumer) = self.consumer.as_mut()
            && bytes > 0
        {
            consumer.release(bytes as u64);
        }
    }

    /// Whether there is something to take, the end included.
    pub(super) fn is_ready(&self) -> bool {
        self.consumer.as_ref().is_some_and(Consumer::is_ready)
    }

    /// The position of the barrier that waits in [`poll_priority`](Self::poll_priority).
    pub(super) fn priority_position(&self) -> Option<u64> {
        self.consumer.as_ref()?.peek_priority()
    }

    /// Takes no more, for this reason.
    pub(super) fn reject(self, reason: RejectReason) {
        self.shared.closing.get_or_init(|| reason);
    }

    pub(super) fn poll_priority(&mut self) -> Option<(Barrier, u64)> {
        let (slot, position) = self.consumer.as_mut()?.take_priority()?;
        match slot.element {
            StreamElement::Barrier(barrier) => Some((barrier, position)),
            _ => unreachable!("only barriers are pushed by priority"),
        }
    }

    pub(super) fn has_priority(&self) -> bool {
        self.consumer
            .as_ref()
            .is_some_and(|consumer| consumer.peek_priority().is_some())
    }

    pub(super) fn peek_until(&self, position: u64, mut each: impl FnMut(&StreamElement<B>)) {
        if let Some(consumer) = &self.consumer {
            consumer
                .peek_until(position)
                .for_each(|slot| each(&slot.element));
        }
    }

    pub(super) fn position(&self) -> u64 {
        match (&self.consumer, &self.ended) {
            (Some(consumer), _) => consumer.position(),
            (None, Some((_, elements))) => *elements,
            (None, None) => unreachable!("the ring goes only when the ending is known"),
        }
    }

    pub(super) fn origin(&self) -> Monotonic {
        self.origin
    }

    pub(super) fn close(self) {
        self.shared.closing.get_or_init(|| RejectReason::Closed);
    }

    pub(super) fn fail(self, reason: String) {
        let failure = Failure::peer_failed(self.shared.options.name.clone(), reason);
        self.shared
            .closing
            .get_or_init(|| RejectReason::Failed(failure));
    }

    pub(super) fn len(&self) -> usize {
        self.consumer.as_ref().map_or(0, Consumer::len)
    }

    pub(super) fn options(&self) -> &EdgeOptions {
        &self.shared.options
    }

    pub(super) fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }

    pub(super) fn bell(&self) -> Option<&Bell> {
        self.consumer.as_ref().map(Consumer::consumer_bell)
    }

    /// Everything was taken: the ring can go, and how the stream ended is known.
    #[cold]
    fn close_ring(&mut self, closed: PopError) -> Popped<B> {
        let said = self.shared.ending.get().cloned();
        let ending = match closed {
            PopError::Finished => said.unwrap_or(Ending::End),
            _ => said.unwrap_or_else(|| {
                Ending::Failed(Failure::peer_lost(self.shared.options.name.clone()))
            }),
        };
        self.ended = Some((ending, self.position()));
        self.consumer = None;
        self.ended()
    }

    fn ended(&self) -> Popped<B> {
        let (ending, _) = self
            .ended
            .as_ref()
            .expect("the ring goes only when the ending is known");
        Popped::Ended(ending.clone())
    }
}

impl<B: Payload> fmt::Debug for Sender<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("local::Sender")
            .field("edge", &self.shared.options.name)
            .field("depth", &self.len())
            .finish_non_exhaustive()
    }
}

impl<B: Payload> fmt::Debug for Receiver<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("local::Receiver")
            .field("edge", &self.shared.options.name)
            .field("depth", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Row, Rows};
    use crate::element::{Drain, Watermark};

    type Halves = (
        super::super::Sender<Rows<i64>>,
        super::super::Receiver<Rows<i64>>,
    );

    fn edge(options: EdgeOptions) -> Halves {
        open(options, Bell::thread(), Bell::thread())
    }

    fn data(value: i64) -> StreamElement<Rows<i64>> {
        StreamElement::Data(Rows::from(vec![Row::untimed(value)]))
    }

    #[test]
    fn data_waits_for_room_and_control_elements_do_not() {
        let (mut sender, mut receiver) = edge(EdgeOptions::named("e").capacity(2));
        sender.try_push(data(1)).unwrap();
        sender.try_push(data(2)).unwrap();
        assert_eq!(
            sender.try_push(data(3)).unwrap_err().reason,
            RejectReason::Full
        );
        let watermark = StreamElement::Watermark(Watermark::active(1));
        for _ in 0..CONTROL_ELEMENTS_MAX {
            sender.try_push(watermark.clone()).unwrap();
        }
        assert_eq!(
            sender.try_push(watermark).unwrap_err().reason,
            RejectReason::Full
        );
        assert_eq!(receiver.try_pop(), Popped::Element(data(1)));
        assert_eq!(
            sender.try_push(data(3)).unwrap_err().reason,
            RejectReason::Full
        );
    }

    #[test]
    fn bytes_in_flight_are_bounded_and_a_batch_above_the_bound_passes_alone() {
        let row_bytes = size_of::<Row<i64>>();
        let (mut sender, mut receiver) = edge(EdgeOptions::named("e").bytes(2 * row_bytes));
        sender.try_push(data(1)).unwrap();
        sender.try_push(data(2)).unwrap();
        assert_eq!(
            sender.try_push(data(3)).unwrap_err().reason,
            RejectReason::Full
        );
        assert_eq!(receiver.try_pop(), Popped::Element(data(1)));
        sender.try_push(data(3)).unwrap();
        assert_eq!(receiver.try_pop(), Popped::Element(data(2)));
        assert_eq!(receiver.try_pop(), Popped::Element(data(3)));
        let large: Rows<i64> = (0..100).map(Row::untimed).collect();
        sender.try_push(StreamElement::Data(large)).unwrap();
        assert_eq!(
            sender.try_push(data(4)).unwrap_err().reason,
            RejectReason::Full
        );
    }

    #[test]
    fn the_four_endings_are_told_apart_after_everything_was_taken() {
        let ending_of = |close: fn(super::super::Sender<Rows<i64>>)| {
            let (mut sender, mut receiver) = edge(EdgeOptions::named("e"));
            sender.try_push(data(1)).unwrap();
            close(sender);
            assert_eq!(receiver.try_pop(), Popped::Element(data(1)));
            let Popped::Ended(ending) = receiver.try_pop() else {
                panic!("the stream is over")
            };
            assert_eq!(
                receiver.try_pop(),
                Popped::Ended(ending.clone()),
                "it is said again"
            );
            ending
        };
        assert_eq!(ending_of(|sender| sender.finish().unwrap()), Ending::End);
        assert_eq!(ending_of(super::super::Sender::cancel), Ending::Cancelled);
        assert_eq!(ending_of(drop), Ending::Failed(Failure::peer_lost("e")));
        assert_eq!(
            ending_of(|sender| sender.fail("map[0] panicked")),
            Ending::Failed(Failure::peer_failed("e", "map[0] panicked"))
        );
    }

    #[test]
    fn a_drain_marker_that_stops_makes_the_close_a_stop() {
        let (mut sender, mut receiver) = edge(EdgeOptions::named("e"));
        let stop = StreamElement::Drain(Drain::stop(0));
        sender.try_push(stop.clone()).unwrap();
        sender.finish().unwrap();
        assert_eq!(receiver.try_pop(), Popped::Element(stop));
        assert_eq!(receiver.try_pop(), Popped::Ended(Ending::Stopped));
    }

    #[test]
    fn a_receiver_that_closes_is_told_apart_from_one_that_is_gone() {
        let (mut sender, receiver) = edge(EdgeOptions::named("e"));
        receiver.close();
        assert_eq!(
            sender.try_push(data(1)).unwrap_err().reason,
            RejectReason::Closed
        );
        let (mut sender, receiver) = edge(EdgeOptions::named("e"));
        drop(receiver);
        let rejected = sender.try_push(data(1)).unwrap_err();
        assert_eq!(
            rejected.reason,
            RejectReason::Failed(Failure::peer_lost("e"))
        );
        assert_eq!(rejected.element, data(1), "a rejected element comes back");
    }

    #[test]
    fn a_priority_barrier_overtakes_and_says_what_it_overtook() {
        let (mut sender, mut receiver) = edge(EdgeOptions::named("e"));
        sender.try_push(data(1)).unwrap();
        sender.try_push(data(2)).unwrap();
        sender.try_push_priority(Barrier::unaligned(7)).unwrap();
        sender.try_push(data(3)).unwrap();
        let second = sender.try_push_priority(Barrier::unaligned(8)).unwrap_err();
        assert_eq!(second.reason, RejectReason::Full);
        let (barrier, position) = receiver.poll_priority().unwrap();
        assert_eq!((barrier, position), (Barrier::unaligned(7), 2));
        let mut overtaken = Vec::new();
        receiver.peek_until(position, |element| overtaken.push(element.clone()));
        assert_eq!(overtaken, [data(1), data(2)]);
        assert_eq!(
            receiver.try_pop(),
            Popped::Element(data(1)),
            "peeking takes nothing"
        );
    }

    #[test]
    fn the_origin_travels_with_the_element() {
        let (mut sender, mut receiver) = edge(EdgeOptions::named("e"));
        let origin = Monotonic(std::time::Duration::from_nanos(5));
        sender.set_origin(origin);
        sender.try_push(data(1)).unwrap();
        assert_eq!(receiver.try_pop(), Popped::Element(data(1)));
        assert_eq!(receiver.origin(), origin);
    }
}
