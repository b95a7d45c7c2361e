//! The output of a subtask: what one step produced, on its way to the edges.
//!
//! An element goes straight to its edge while that has room, and otherwise waits in the
//! edge's outbox. Each edge has its own, so a broadcast goes on where it stopped, and one
//! full edge does not reorder another. A task takes no further input while an outbox holds
//! anything.

mod partitioners;
mod sides;

pub use partitioners::{Broadcast, ByKeyColumns, ByKeyHash, Forward, InTurn};
pub use sides::{OfLeft, OfRight};

use std::collections::VecDeque;

use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::edge::{EdgeMetrics, Failure, RejectReason, Sender, Transport};
use crate::element::{Barrier, StreamElement};
use crate::error::OperatorError;
use crate::limits::{CONTROL_ELEMENTS_MAX, OUTBOX_BATCHES_MAX, OUTBOX_BYTES_MAX};

/// Chooses the edges of a batch.
pub trait Partitioner<B: Payload>: Send {
    /// Hands every row of `batch` to `give` under the number of an edge below `edges`, rows
    /// for one edge in their order. A partitioner that copies a batch to every edge calls
    /// `give` with a clone.
    ///
    /// # Errors
    /// When the batch cannot be partitioned, such as for a key column of another type; the
    /// job fails.
    fn partition(
        &mut self,
        batch: B,
        edges: usize,
        give: &mut dyn FnMut(usize, B),
    ) -> Result<(), OperatorError>;

    /// Whether every edge gets a copy of every batch. Such edges are never overtaken: what a
    /// barrier overtakes is recorded once an edge, and would come back once a copy.
    fn is_broadcast(&self) -> bool {
        false
    }
}

/// All edges that leave one subtask.
#[derive(Default)]
pub struct Output<B: Payload> {
    groups: Vec<EdgeGroup<B>>,
    /// Edges whose outbox holds as many elements as it may.
    full: usize,
    /// Bytes of data in all outboxes.
    bytes: usize,
    /// Elements in all outboxes.
    waiting: usize,
    last_stops: bool,
    discarded_rows: u64,
}

/// The edges to all subtasks of one consumer.
struct EdgeGroup<B: Payload> {
    partitioner: Box<dyn Partitioner<B>>,
    edges: Vec<OutEdge<B>>,
}

struct OutEdge<B: Payload> {
    /// `None` once the receiver has closed the edge.
    sender: Option<Sender<B>>,
    outbox: VecDeque<(StreamElement<B>, Monotonic)>,
    batches: usize,
    controls: usize,
    is_full: bool,
    /// Something was pushed since the receiver was last woken. Waking it for nothing would make
    /// two idle workers wake each other for ever.
    pushed: bool,
    last: EdgeMetrics,
    name: String,
    /// What carried it when the sender went.
    last_transport: Transport,
    not_shared: Option<String>,
}

/// What an edge of an output has to report.
#[derive(Clone, Debug)]
pub struct EdgeReport {
    /// The edge's name.
    pub name: String,
    /// What carries it.
    pub transport: Transport,
    /// Why that is no shared memory, though it might have been.
    pub not_shared: Option<String>,
    /// What has gone through it.
    pub metrics: EdgeMetrics,
}

impl<B: Payload> Output<B> {
    /// An output without edges: what it is given is dropped, as the plan says.
    pub fn new() -> Self {
        Self {
            groups: Vec::new(),
            full: 0,
            bytes: 0,
            waiting: 0,
            last_stops: false,
            discarded_rows: 0,
        }
    }

    /// Adds the edges to the subtasks of one consumer.
    pub fn add_group(&mut self, partitioner: Box<dyn Partitioner<B>>, edges: Vec<Sender<B>>) {
        let edges = edges.into_iter().map(OutEdge::new).collect();
        self.groups.push(EdgeGroup { partitioner, edges });
    }

    /// Emits a batch to every consumer.
    ///
    /// # Errors
    /// When it cannot be partitioned, or an edge has failed.
    pub fn data(&mut self, batch: B, origin: Monotonic) -> Result<(), OutputError> {
        self.last_stops = false;
        let Some((last, others)) = self.groups.split_last_mut() else {
            self.discarded_rows += batch.rows() as u64;
            return Ok(());
        };
        let mut counts = Counts::default();
        let result = others
            .iter_mut()
            .try_for_each(|group| group.data(batch.clone(), origin, &mut counts))
            .and_then(|()| last.data(batch, origin, &mut counts));
        self.count(counts);
        result
    }

    /// Emits a control element on every edge, in order with the data.
    ///
    /// # Errors
    /// When an edge has failed.
    pub fn broadcast(
        &mut self,
        element: &StreamElement<B>,
        origin: Monotonic,
    ) -> Result<(), OutputError> {
        debug_assert!(!element.is_data(), "data is partitioned");
        self.last_stops = matches!(element, StreamElement::Drain(drain) if drain.stops());
        let mut counts = Counts::default();
        let result = self
            .edges_mut()
            .try_for_each(|edge| edge.push(element.clone(), origin, &mut counts));
        self.count(counts);
        result
    }

    /// Sends an unaligned barrier on every edge ahead of what is queued there. What waits in
    /// the outboxes follows it. Returns the edges on which it follows in order instead: those
    /// whose priority slot was still taken, and those of a broadcast.
    ///
    /// # Errors
    /// When an edge has failed.
    pub fn overtake(&mut self, barrier: Barrier, origin: Monotonic) -> Result<usize, OutputError> {
        self.last_stops = false;
        let mut counts = Counts::default();
        let mut in_order = 0;
        let result = self.groups.iter_mut().try_for_each(|group| {
            let broadcast = group.partitioner.is_broadcast();
            group.edges.iter_mut().try_for_each(|edge| {
                let overtook = if broadcast {
                    edge.push(StreamElement::Barrier(barrier), origin, &mut counts)?;
                    false
                } else {
                    edge.overtake(barrier, origin, &mut counts)?
                };
                in_order += usize::from(!overtook);
                Ok(())
            })
        });
        self.count(counts);
        result.map(|()| in_order)
    }

    /// Whether the step should end: the outboxes are at their bound.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.full > 0 || self.bytes >= OUTBOX_BYTES_MAX
    }

    /// Moves what waits to the edges as far as they have room, and wakes the receivers that
    /// sleep. Returns whether everything has left.
    ///
    /// # Errors
    /// When an edge has failed.
    pub fn flush(&mut self, now: Monotonic) -> Result<bool, OutputError> {
        let mut counts = Counts::default();
        let result = self
            .edges_mut()
            .try_for_each(|edge| edge.flush(now, &mut counts));
        self.count(counts);
        result.map(|()| self.waiting == 0)
    }

    /// Whether something waits in an outbox.
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether the last element emitted was a drain marker that stops the stream.
    pub fn last_stops(&self) -> bool {
        self.last_stops
    }

    /// Whether every receiver has closed its edge in order: nobody wants more.
    pub fn is_closed(&self) -> bool {
        let mut edges = self.groups.iter().flat_map(|group| &group.edges).peekable();
        edges.peek().is_some() && edges.all(|edge| edge.sender.is_none())
    }

    /// Ends every edge: the receivers take what is queued, then learn of the end.
    ///
    /// # Errors
    /// When a receiver failed before it could learn of the end; the other edges have ended.
    ///
    /// # Panics
    /// While an outbox holds anything: flush first.
    pub fn finish(&mut self) -> Result<(), OutputError> {
        assert_eq!(
            self.waiting, 0,
            "an output is flushed before it is finished"
        );
        let mut result = Ok(());
        // Every edge is finished, also behind one that failed.
        for sender in self.take_senders() {
            if let Err(RejectReason::Failed(failure)) = sender.finish()
                && result.is_ok()
            {
                result = Err(failure.into());
            }
        }
        result
    }

    /// Cancels every edge.
    pub fn cancel(&mut self) {
        self.take_senders().for_each(Sender::cancel);
    }

    /// Fails every edge with this reason.
    pub fn fail(&mut self, reason: &str) {
        self.take_senders().for_each(|sender| sender.fail(reason));
    }

    /// What each edge has to report.
    pub fn report(&self) -> impl Iterator<Item = EdgeReport> {
        self.groups
            .iter()
            .flat_map(|group| &group.edges)
            .map(OutEdge::report)
    }

    /// Rows that went nowhere: there is no consumer, or it wants no more.
    pub fn discarded_rows(&self) -> u64 {
        self.discarded_rows
    }

    fn edges_mut(&mut self) -> impl Iterator<Item = &mut OutEdge<B>> {
        self.groups.iter_mut().flat_map(|group| &mut group.edges)
    }

    fn take_senders(&mut self) -> impl Iterator<Item = Sender<B>> {
        self.groups
            .iter_mut()
            .flat_map(|group| &mut group.edges)
            .filter_map(|edge| {
                edge.note();
                edge.sender.take()
            })
    }

    /// Adds what edges did to the totals, also where one of them failed: the others go on from
    /// there.
    fn count(&mut self, counts: Counts) {
        self.full = self
            .full
            .checked_add_signed(counts.full)
            .expect("edges become full once");
        self.bytes = self
            .bytes
            .checked_add_signed(counts.bytes)
            .expect("only what waits leaves");
        self.waiting = self
            .waiting
            .checked_add_signed(counts.waiting)
            .expect("only what waits leaves");
        self.discarded_rows += counts.discarded_rows;
    }
}

/// Why an output cannot take an element.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The receiver of an edge has failed.
    #[error("{0}")]
    Edge(#[from] Failure),
    /// The batch cannot be partitioned.
    #[error("cannot partition a batch: {0}")]
    Partition(String),
}

/// How the totals of an output change.
#[derive(Default)]
struct Counts {
    full: isize,
    bytes: isize,
    waiting: isize,
    discarded_rows: u64,
}

impl<B: Payload> EdgeGroup<B> {
    fn data(
        &mut self,
        batch: B,
        origin: Monotonic,
        counts: &mut Counts,
    ) -> Result<(), OutputError> {
        if let [edge] = &mut self.edges[..] {
            return edge.push(StreamElement::Data(batch), origin, counts);
        }
        let edges = &mut self.edges;
        let mut result = Ok(());
        let partitioned = self
            .partitioner
            .partition(batch, edges.len(), &mut |target, part| {
                if result.is_ok() && part.rows() > 0 {
                    result = edges[target].push(StreamElement::Data(part), origin, counts);
                }
            });
        partitioned.map_err(|error| OutputError::Partition(error.to_string()))?;
        result
    }
}

impl<B: Payload> OutEdge<B> {
    fn new(sender: Sender<B>) -> Self {
        Self {
            name: sender.name().to_owned(),
            last_transport: sender.transport(),
            not_shared: None,
            last: EdgeMetrics::default(),
            sender: Some(sender),
            outbox: VecDeque::new(),
            batches: 0,
            controls: 0,
            is_full: false,
            pushed: false,
        }
    }

    #[inline]
    fn push(
        &mut self,
        element: StreamElement<B>,
        origin: Monotonic,
        counts: &mut Counts,
    ) -> Result<(), OutputError> {
        let Some(sender) = self.sender.as_mut() else {
            counts.discarded_rows += rows(&element);
            return Ok(());
        };
        let element = if self.outbox.is_empty() {
            sender.set_origin(origin);
            match sender.try_push_quiet(element) {
                Ok(()) => {
                    self.pushed = true;
                    return Ok(());
                }
                Err(rejected) if rejected.reason == RejectReason::Full => rejected.element,
                Err(rejected) => {
                    counts.discarded_rows += rows(&rejected.element);
                    return self.refused(rejected.reason, counts);
                }
            }
        } else {
            element
        };
        self.keep(element, origin, counts);
        Ok(())
    }

    /// Sends a barrier ahead of what is queued. `false` where the slot for that is still taken:
    /// there it follows in order.
    fn overtake(
        &mut self,
        barrier: Barrier,
        origin: Monotonic,
        counts: &mut Counts,
    ) -> Result<bool, OutputError> {
        let Some(sender) = self.sender.as_mut() else {
            return Ok(true);
        };
        match sender.try_push_priority(barrier) {
            Ok(()) => Ok(true),
            Err(rejected) if rejected.reason == RejectReason::Full => self
                .push(StreamElement::Barrier(barrier), origin, counts)
                .map(|()| false),
            Err(rejected) => self.refused(rejected.reason, counts).map(|()| true),
        }
    }

    /// Puts an element into the outbox. Adjacent watermarks merge: the later says it all.
    fn keep(&mut self, element: StreamElement<B>, origin: Monotonic, counts: &mut Counts) {
        if let (StreamElement::Watermark(new), Some((StreamElement::Watermark(old), _))) =
            (&element, self.outbox.back_mut())
            && old.idle == new.idle
        {
            *old = *new;
            return;
        }
        self.count(&element, 1, counts);
        self.outbox.push_back((element, origin));
    }

    fn flush(&mut self, now: Monotonic, counts: &mut Counts) -> Result<(), OutputError> {
        while let Some((element, origin)) = self.outbox.pop_front() {
            self.count(&element, -1, counts);
            let Some(sender) = self.sender.as_mut() else {
                counts.discarded_rows += rows(&element);
                continue;
            };
            sender.set_origin(origin);
            match sender.try_push_quiet(element) {
                Ok(()) => self.pushed = true,
                Err(rejected) if rejected.reason == RejectReason::Full => {
                    sender.blocked(now);
                    self.count(&rejected.element, 1, counts);
                    self.outbox.push_front((rejected.element, origin));
                    break;
                }
                Err(rejected) => {
                    counts.discarded_rows += rows(&rejected.element);
                    self.refused(rejected.reason, counts)?;
                }
            }
        }
        if let Some(sender) = self.sender.as_mut() {
            if self.outbox.is_empty() {
                sender.unblocked(now);
            }
            if std::mem::take(&mut self.pushed) {
                sender.flush();
            }
        }
        Ok(())
    }

    /// The edge takes nothing any more: in order (what waits is discarded) or not.
    #[cold]
    fn refused(&mut self, reason: RejectReason, counts: &mut Counts) -> Result<(), OutputError> {
        self.note();
        self.sender = None;
        while let Some((element, _)) = self.outbox.pop_front() {
            self.count(&element, -1, counts);
            counts.discarded_rows += rows(&element);
        }
        match reason {
            RejectReason::Failed(failure) => Err(failure.into()),
            RejectReason::Closed | RejectReason::Full => Ok(()),
        }
    }

    /// Counts an element into (`by` 1) or out of (-1) the outbox.
    fn count(&mut self, element: &StreamElement<B>, by: isize, counts: &mut Counts) {
        counts.waiting += by;
        let held = match element {
            StreamElement::Data(batch) => {
                counts.bytes += by * batch.bytes() as isize;
                &mut self.batches
            }
            _ => &mut self.controls,
        };
        *held = held.checked_add_signed(by).expect("only what waits leaves");
        let is_full = self.batches >= OUTBOX_BATCHES_MAX || self.controls >= CONTROL_ELEMENTS_MAX;
        counts.full += isize::from(is_full) - isize::from(self.is_full);
        self.is_full = is_full;
    }

    /// Keeps what is to be reported when the sender is gone.
    fn note(&mut self) {
        let report = self.report();
        self.last = report.metrics;
        self.last_transport = report.transport;
        self.not_shared = report.not_shared;
    }

    fn report(&self) -> EdgeReport {
        let metrics = self.sender.as_ref().map_or(self.last, Sender::metrics);
        EdgeReport {
            name: self.name.clone(),
            transport: self
                .sender
                .as_ref()
                .map_or(self.last_transport, Sender::transport),
            not_shared: match &self.sender {
                Some(sender) => sender.why_not_shared().map(str::to_owned),
                None => self.not_shared.clone(),
            },
            metrics,
        }
    }
}

fn rows<B: Payload>(element: &StreamElement<B>) -> u64 {
    match element {
        StreamElement::Data(batch) => batch.rows() as u64,
        _ => 0,
    }
}
