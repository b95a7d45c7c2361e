//! The half of a ring that pops.

use core::cell::Cell;
use core::fmt;
use core::mem::MaybeUninit;

use crate::bell::Bell;
use crate::chunk::Chunk;
use crate::error::PopError;
use crate::shared::{FINISHED, OPEN, Shared};
use crate::sync::{Arc, UnsafeCell};

/// Slots are given back together when this many have been popped, since each time costs the
/// producer, if it looks for room, the line that the consumer writes.
const LAG_MAX: u64 = 16;

/// A ring of fewer slots than this for each of them gives them back sooner, so that no more
/// than a small part of the ring is ever held back.
const CAPACITY_PER_LAG: u64 = 64;

/// Pops from a ring. There is one for each ring; it may move between threads
/// but not be shared by them.
///
/// Dropping it drops what is queued, and every later push is given back. An
/// element whose push runs at that very moment may stay in the ring; it is
/// dropped with the producer at the latest.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// The next position to read; what was published may lag behind it.
    head: u64,
    /// The position that was published.
    published: Cell<u64>,
    /// How far `head` may run ahead of `published` while elements are known to be queued.
    lag: u64,
    /// The last position of the producer that was looked at; the true one is
    /// the same or higher. The cell also keeps two threads from sharing this.
    cached_tail: Cell<u64>,
    /// The highest depth that this half has seen.
    deepest: Cell<u64>,
    released: u64,
    producer_bell: Bell,
    consumer_bell: Bell,
}

impl<T> Consumer<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>, producer_bell: Bell, consumer_bell: Bell) -> Self {
        let lag = (shared.capacity() / CAPACITY_PER_LAG).clamp(1, LAG_MAX);
        Consumer {
            shared,
            head: 0,
            published: Cell::new(0),
            lag,
            cached_tail: Cell::new(0),
            deepest: Cell::new(0),
            released: 0,
            producer_bell,
            consumer_bell,
        }
    }

    /// Sets how many slots may be held back before they are given to the producer together.
    /// Default: a 64th of the capacity, at most 16. With 1 the producer sees the room of a pop
    /// at once, which costs a shared line each time.
    pub fn give_back_every(&mut self, slots: usize) {
        self.lag = slots.max(1) as u64;
    }

    /// Pops the oldest element and wakes the producer if it sleeps.
    ///
    /// # Errors
    ///
    /// [`PopError::Empty`]: pop again later. [`PopError::Finished`] and
    /// [`PopError::Abandoned`]: the producer is gone and everything it pushed
    /// was taken, priority values included; nothing comes any more.
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        let value = self.pop_quiet()?;
        self.wake();
        Ok(value)
    }

    /// Pops the oldest element without waking anyone, for a consumer that pops
    /// several and calls [`wake`](Consumer::wake) or
    /// [`release`](Consumer::release) once after the last.
    ///
    /// # Errors
    ///
    /// As for [`try_pop`](Consumer::try_pop).
    #[inline]
    pub fn pop_quiet(&mut self) -> Result<T, PopError> {
        if self.head == self.cached_tail.get() {
            self.refill()?;
        }
        let value = self.take();
        if self.head - self.published.get() >= self.lag {
            self.publish();
        }
        Ok(value)
    }

    /// Wakes the producer if it sleeps; otherwise costs one load.
    #[inline]
    pub fn wake(&self) {
        if self.producer_bell.is_armed() {
            self.publish();
        }
        self.producer_bell.ring();
    }

    /// Pops up to `max` elements as an iterator, gives their slots back
    /// together when it is dropped, and wakes the producer at most once. What
    /// was not taken from the iterator stays queued. Empty if nothing is
    /// queued; [`try_pop`](Consumer::try_pop) then tells an end from a lull.
    #[inline]
    pub fn pop_chunk(&mut self, max: usize) -> Chunk<'_, T> {
        if self.cached_tail.get() - self.head < max as u64 {
            self.refresh();
        }
        Chunk::new(self, max)
    }

    /// Looks at the oldest element without taking it.
    #[inline]
    pub fn peek(&self) -> Option<&T> {
        if self.head == self.cached_tail.get() && !self.refresh() {
            return None;
        }
        // SAFETY: this is the consumer, `head` is published, and it can't be
        // popped while `self` is borrowed.
        Some(unsafe { self.shared.slots().look(self.head) })
    }

    /// Looks at the queued elements before `position`, oldest first, without
    /// taking them; those not pushed yet are not waited for.
    pub fn peek_until(&self, position: u64) -> impl Iterator<Item = &T> {
        self.refresh();
        let end = position.min(self.cached_tail.get());
        let slots = self.shared.slots();
        // SAFETY: as in `peek`, for all positions from the oldest to the end.
        (self.head..end).map(move |position| unsafe { slots.look(position) })
    }

    /// How many elements were ever popped: the position of the next one.
    #[inline]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// How many elements are queued. The producer may be pushing more meanwhile.
    pub fn len(&self) -> usize {
        self.refresh();
        (self.cached_tail.get() - self.head) as usize
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements the ring holds at most.
    pub fn capacity(&self) -> usize {
        self.shared.capacity() as usize
    }

    /// Adds to the sum that [`Producer::released`](crate::Producer::released)
    /// reads, and wakes the producer if it sleeps. After
    /// [`pop_quiet`](Consumer::pop_quiet) one wake-up covers slot and weight.
    #[inline]
    pub fn release(&mut self, weight: u64) {
        self.released += weight;
        self.shared.publish_released(self.released);
        self.wake();
    }

    /// Takes the value that was pushed beside the queue, with the producer's
    /// position at that moment: queued elements from that position on were
    /// pushed after it.
    pub fn take_priority(&mut self) -> Option<(T, u64)> {
        // SAFETY: this is the consumer.
        let letter = unsafe { self.shared.mailbox().take() }?;
        self.wake();
        Some(letter)
    }

    /// The position of the value that waits beside the queue.
    #[inline]
    pub fn peek_priority(&self) -> Option<u64> {
        // SAFETY: this is the consumer.
        unsafe { self.shared.mailbox().position() }
    }

    /// Whether there is anything to take or to learn, an end included: the last
    /// look of a consumer that has armed its bell before it parks.
    pub fn is_ready(&self) -> bool {
        self.refresh() || self.shared.mailbox().is_full() || self.shared.producer_end() != OPEN
    }

    /// The bell that the producer rings; the owner of this half parks on it.
    pub fn consumer_bell(&self) -> &Bell {
        &self.consumer_bell
    }

    /// The bell that this half rings.
    pub fn producer_bell(&self) -> &Bell {
        &self.producer_bell
    }

    /// The position up to which elements are known to be queued.
    #[inline]
    pub(crate) fn known_tail(&self) -> u64 {
        self.cached_tail.get()
    }

    /// Moves the oldest element out. The caller knows that there is one, and
    /// publishes afterwards.
    #[inline]
    pub(crate) fn take(&mut self) -> T {
        debug_assert!(
            self.head < self.cached_tail.get(),
            "took from an empty ring"
        );
        // SAFETY: this is the consumer, `head` is published and moves on, so
        // it is read once.
        let value = unsafe { self.shared.slots().read(self.head) };
        self.head += 1;
        value
    }

    /// Elements that lie side by side in memory, at most `max`, of which the caller knows that
    /// they are there. The caller publishes afterwards.
    #[inline]
    pub(crate) fn run(&mut self, max: u64) -> Run<'_, T> {
        debug_assert!(self.head + max <= self.cached_tail.get());
        Run {
            slots: self.shared.slots().run(self.head, max).iter(),
            head: &mut self.head,
        }
    }

    /// Gives all slots that were read back to the producer.
    #[inline]
    pub(crate) fn publish(&self) {
        self.published.set(self.head);
        self.shared.publish_head(self.head);
    }

    /// Looks where the producer really is. Returns whether anything is queued.
    #[inline]
    fn refresh(&self) -> bool {
        let tail = self.shared.tail();
        self.cached_tail.set(tail);
        let depth = tail - self.head;
        if depth > self.deepest.get() {
            self.deepest.set(depth);
            self.shared.note_deepest(depth);
        }
        depth > 0
    }

    /// Finds out why nothing is known to be queued. What was popped is given back now: the
    /// consumer may not come again for long.
    #[inline(never)]
    fn refill(&self) -> Result<(), PopError> {
        if self.published.get() != self.head {
            self.publish();
            self.producer_bell.ring();
        }
        if self.refresh() {
            return Ok(());
        }
        let end = self.shared.producer_end();
        if end == OPEN {
            return Err(PopError::Empty);
        }
        // The end is read before this second look, because a push and the end
        // may both have come after the first.
        if self.refresh() {
            return Ok(());
        }
        Err(match end {
            _ if self.shared.mailbox().is_full() => PopError::Empty,
            FINISHED => PopError::Finished,
            _ => PopError::Abandoned,
        })
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        // A chunk that was forgotten has taken elements without publishing it.
        self.publish();
        self.shared.end_consumer();
        self.wake();
        self.refresh();
        while self.head < self.known_tail() {
            let value = self.take();
            // Before the value is dropped: if that panics, the rest is dropped
            // with the shared memory, and this one not again.
            self.publish();
            drop(value);
        }
        drop(self.take_priority());
    }
}

/// Elements that lie side by side in memory. Each is taken as it is asked for.
pub(crate) struct Run<'a, T> {
    slots: core::slice::Iter<'a, UnsafeCell<MaybeUninit<T>>>,
    head: &'a mut u64,
}

impl<T> Run<'_, T> {
    #[inline]
    pub(crate) fn next(&mut self) -> Option<T> {
        let slot = self.slots.next()?;
        *self.head += 1;
        // SAFETY: whoever made the run is the consumer and knows that its slots are published;
        // the head has moved on, so each is read once.
        Some(slot.with(|slot| unsafe { (*slot).assume_init_read() }))
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("position", &self.position())
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}
