//! Side outputs: what an operator emits beside its main output, of any payload type.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::batch::Payload;
use crate::element::{Barrier, Drain, StreamElement, Watermark};
use crate::limits::{OUTBOX_BATCHES_MAX, OUTBOX_BYTES_MAX};

/// Names one side output of an operator, with its payload type.
pub struct SideTag<S> {
    index: usize,
    payload: PhantomData<fn() -> S>,
}

impl<S> SideTag<S> {
    /// The operator's side output number `index`, from 0.
    pub const fn new(index: usize) -> Self {
        Self {
            index,
            payload: PhantomData,
        }
    }

    /// Which of the operator's side outputs this is.
    pub const fn index(self) -> usize {
        self.index
    }
}

impl<S> Clone for SideTag<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for SideTag<S> {}

impl<S> fmt::Debug for SideTag<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SideTag({})", self.index)
    }
}

/// The side outputs of one task: a queue for each that something consumes.
#[derive(Default)]
pub struct SideOutputs {
    queues: Vec<Option<Box<dyn ErasedQueue>>>,
    discarded_rows: u64,
}

impl SideOutputs {
    /// Adds the next side output; `connected` says whether something consumes it.
    pub fn add<S: Payload>(&mut self, connected: bool) {
        self.queues
            .push(connected.then(|| Box::<SideQueue<S>>::default() as Box<dyn ErasedQueue>));
    }

    /// Puts a batch into side output `index` of the task.
    ///
    /// # Panics
    /// When the side output was added with another payload type, or was never added.
    pub fn data<S: Payload>(&mut self, index: usize, batch: S) {
        let slot = self
            .queues
            .get_mut(index)
            .expect("a side tag names an output of its operator");
        match slot {
            Some(queue) => {
                let queue = queue
                    .as_any_mut()
                    .downcast_mut::<SideQueue<S>>()
                    .expect("a side tag has the payload type of its output");
                queue.bytes += batch.bytes();
                queue.elements.push_back(StreamElement::Data(batch));
            }
            None => self.discarded_rows += batch.rows() as u64,
        }
    }

    /// Puts a watermark into these side outputs: those of one operator, which share its time.
    pub fn watermark(&mut self, of: Range<usize>, watermark: Watermark) {
        self.connected(of)
            .for_each(|queue| queue.watermark(watermark));
    }

    /// Puts a barrier into these side outputs.
    pub fn barrier(&mut self, of: Range<usize>, barrier: Barrier) {
        self.connected(of).for_each(|queue| queue.barrier(barrier));
    }

    /// Puts a drain marker into these side outputs.
    pub fn drain(&mut self, of: Range<usize>, drain: Drain) {
        self.connected(of).for_each(|queue| queue.drain(drain));
    }

    /// The next element of side output `index`, if it is connected and has one.
    pub fn pop<S: Payload>(&mut self, index: usize) -> Option<StreamElement<S>> {
        let queue = self
            .queues
            .get_mut(index)?
            .as_mut()?
            .as_any_mut()
            .downcast_mut::<SideQueue<S>>()?;
        let element = queue.elements.pop_front()?;
        if let StreamElement::Data(batch) = &element {
            queue.bytes = queue.bytes.saturating_sub(batch.bytes());
        }
        Some(element)
    }

    /// Whether an operator should stop emitting. Elements count beside bytes, because rows may
    /// have none.
    pub fn is_full(&self) -> bool {
        self.queues.iter().flatten().any(|queue| queue.is_full())
    }

    /// Whether nothing waits in side output `index`.
    pub fn is_empty(&self, index: usize) -> bool {
        let queue = self.queues.get(index).and_then(Option::as_ref);
        queue.is_none_or(|queue| queue.is_empty())
    }

    /// Rows given to side outputs that nothing consumes.
    pub fn discarded_rows(&self) -> u64 {
        self.discarded_rows
    }

    fn connected(&mut self, of: Range<usize>) -> impl Iterator<Item = &mut Box<dyn ErasedQueue>> {
        self.queues[of].iter_mut().flatten()
    }
}

impl fmt::Debug for SideOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SideOutputs")
            .field("outputs", &self.queues.len())
            .field("discarded_rows", &self.discarded_rows)
            .finish()
    }
}

struct SideQueue<S> {
    elements: VecDeque<StreamElement<S>>,
    bytes: usize,
}

impl<S> Default for SideQueue<S> {
    fn default() -> Self {
        Self {
            elements: VecDeque::new(),
            bytes: 0,
        }
    }
}

trait ErasedQueue: Send {
    fn watermark(&mut self, watermark: Watermark);
    fn barrier(&mut self, barrier: Barrier);
    fn drain(&mut self, drain: Drain);
    fn is_full(&self) -> bool;
    fn is_empty(&self) -> bool;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<S: Payload> ErasedQueue for SideQueue<S> {
    fn watermark(&mut self, watermark: Watermark) {
        // The later of two adjacent watermarks says it all.
        if let Some(StreamElement::Watermark(last)) = self.elements.back_mut()
            && last.idle == watermark.idle
        {
            *last = watermark;
        } else {
            self.elements.push_back(StreamElement::Watermark(watermark));
        }
    }

    fn barrier(&mut self, barrier: Barrier) {
        self.elements.push_back(StreamElement::Barrier(barrier));
    }

    fn drain(&mut self, drain: Drain) {
        self.elements.push_back(StreamElement::Drain(drain));
    }

    fn is_full(&self) -> bool {
        self.bytes >= OUTBOX_BYTES_MAX || self.elements.len() >= OUTBOX_BATCHES_MAX
    }

    fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
