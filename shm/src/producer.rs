//! The half of a ring that pushes.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use crate::bell::Bell;
use crate::error::PushError;
use crate::shared::{ABANDONED, FINISHED, Shared};
use crate::sync::Arc;

/// Pushes into a ring. There is one for each ring; it may move between threads
/// but not be shared by them.
///
/// Dropping it without [`finish`](Producer::finish) leaves the queued elements
/// to the consumer and then reports
/// [`PopError::Abandoned`](crate::PopError::Abandoned) to it.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// The next position to write. Between calls all below it are published.
    tail: u64,
    /// The position that may not be written yet, as far as is known: the capacity beyond the
    /// last position of the consumer that was looked at.
    limit: u64,
    /// The highest depth that this half has seen.
    deepest: Cell<u64>,
    end: u8,
    consumer_bell: Bell,
    producer_bell: Bell,
    not_sync: PhantomData<Cell<()>>,
}

impl<T> Producer<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>, producer_bell: Bell, consumer_bell: Bell) -> Self {
        let limit = shared.capacity();
        Producer {
            shared,
            tail: 0,
            limit,
            deepest: Cell::new(0),
            end: ABANDONED,
            consumer_bell,
            producer_bell,
            not_sync: PhantomData,
        }
    }

    /// Pushes one element and wakes the consumer if it sleeps.
    ///
    /// # Errors
    ///
    /// Both give the value back. [`PushError::Full`]: push it again after the
    /// consumer has popped. [`PushError::Abandoned`]: the consumer is gone, stop.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), PushError<T>> {
        self.push_quiet(value)?;
        self.wake();
        Ok(())
    }

    /// Pushes one element without waking anyone, for a producer that pushes
    /// several and calls [`wake`](Producer::wake) once after the last. A
    /// consumer that is awake sees the element at once; without that call one
    /// that sleeps does not.
    ///
    /// # Errors
    ///
    /// As for [`try_push`](Producer::try_push).
    #[inline]
    pub fn push_quiet(&mut self, value: T) -> Result<(), PushError<T>> {
        if self.shared.is_consumer_gone() {
            return Err(PushError::Abandoned(value));
        }
        if self.tail == self.limit && !self.find_room() {
            // In place, so that the value need not be in memory for a call that takes it.
            return Err(if self.is_abandoned() {
                PushError::Abandoned(value)
            } else {
                PushError::Full(value)
            });
        }
        // SAFETY: this is the producer, `tail` is not published, and the depth
        // is below the capacity, so the consumer gave this slot back.
        unsafe { self.shared.slots().write(self.tail, value) };
        self.tail += 1;
        self.shared.publish_tail(self.tail);
        Ok(())
    }

    /// Wakes the consumer if it sleeps; otherwise costs one load.
    #[inline]
    pub fn wake(&self) {
        self.consumer_bell.ring();
    }

    /// Pushes elements as long as there are some and room for them, publishes
    /// them together and wakes the consumer at most once. Returns how many
    /// were pushed. No element is taken from `values` without being pushed:
    /// the rest is still in there.
    ///
    /// Returns 0 also when the consumer is gone; see
    /// [`is_abandoned`](Producer::is_abandoned).
    pub fn push_from(&mut self, values: &mut impl Iterator<Item = T>) -> usize {
        self.push_up_to(usize::MAX, values)
    }

    /// As [`push_from`](Producer::push_from), but at most `max` elements.
    pub fn push_up_to(&mut self, max: usize, values: &mut impl Iterator<Item = T>) -> usize {
        if self.shared.is_consumer_gone() {
            return 0;
        }
        // Publishes also if the iterator panics: what it gave is in the ring.
        let mut publication = Publication {
            tail: self.tail,
            producer: self,
        };
        let end = publication.tail.saturating_add(max as u64);
        'all: while publication.tail < end {
            let room = publication.room();
            if room == 0 {
                break;
            }
            let slots = publication.producer.shared.slots();
            for slot in slots.run(publication.tail, room.min(end - publication.tail)) {
                let Some(value) = values.next() else {
                    break 'all;
                };
                // SAFETY: as in `push_quiet`; `room` keeps the depth within the capacity.
                slot.with_mut(|slot| unsafe { (*slot).write(value) });
                publication.tail += 1;
            }
        }
        (publication.tail - publication.producer.tail) as usize
    }

    /// Pushes one element beside the queue, so that the consumer may take it
    /// before those already queued; the [`position`](Producer::position) of
    /// this moment goes with it. There is one such slot.
    ///
    /// # Errors
    ///
    /// Both give the value back. [`PushError::Full`]: the last one was not
    /// taken yet, push it again later. [`PushError::Abandoned`]: the consumer
    /// is gone, stop.
    pub fn try_push_priority(&mut self, value: T) -> Result<(), PushError<T>> {
        self.try_push_priority_at(value, self.tail)
    }

    /// As [`try_push_priority`](Producer::try_push_priority), with the position that it is to
    /// have: for a producer whose own queue, of which this ring is the end, was overtaken too.
    /// What is pushed from then on up to that position came before it.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// If the position was passed: what is queued has been pushed before this.
    pub fn try_push_priority_at(&mut self, value: T, position: u64) -> Result<(), PushError<T>> {
        assert!(position >= self.tail, "a position that was passed");
        if self.shared.is_consumer_gone() {
            return Err(PushError::Abandoned(value));
        }
        // SAFETY: this is the producer.
        unsafe { self.shared.mailbox().put(value, position) }.map_err(PushError::Full)?;
        self.wake();
        Ok(())
    }

    /// Says that nothing more comes: the consumer takes what is queued and
    /// then gets [`PopError::Finished`](crate::PopError::Finished).
    pub fn finish(mut self) {
        self.end = FINISHED;
    }

    /// How many elements are queued. The consumer may be taking some meanwhile; and what it
    /// took last counts until it gives the slots back, which is at the latest after every
    /// 64th part of the capacity, when it finds the ring empty, or when this half sleeps.
    pub fn len(&self) -> usize {
        (self.tail - self.shared.head()) as usize
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements can be pushed now, at least.
    pub fn slots(&self) -> usize {
        self.capacity() - self.len()
    }

    /// How many elements the ring holds at most.
    pub fn capacity(&self) -> usize {
        self.shared.capacity() as usize
    }

    /// How many elements were ever pushed into the queue: the position of the
    /// next one.
    #[inline]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// The highest depth that either half has seen: the consumer when it looks for more, this
    /// half when it looks for room, and now. It never falls. A peak that the consumer has
    /// worked off before anyone looked is not in it, since looking at each push would take
    /// the consumer's line from it each time.
    pub fn high_water(&self) -> usize {
        self.note_depth(self.len() as u64);
        self.deepest.get().max(self.shared.deepest()) as usize
    }

    /// The sum of all weights given to
    /// [`Consumer::release`](crate::Consumer::release), for a bound in bytes:
    /// pushed minus released is in flight.
    #[inline]
    pub fn released(&self) -> u64 {
        self.shared.released()
    }

    /// Whether the consumer is gone, so that no push can succeed any more.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.shared.is_consumer_gone()
    }

    /// Whether a push would not give [`PushError::Full`]: the last look of a
    /// producer that has armed its bell before it parks.
    pub fn is_ready(&self) -> bool {
        self.is_abandoned() || self.slots() > 0
    }

    /// The bell that this half rings.
    pub fn consumer_bell(&self) -> &Bell {
        &self.consumer_bell
    }

    /// The bell that the consumer rings; the owner of this half parks on it.
    pub fn producer_bell(&self) -> &Bell {
        &self.producer_bell
    }

    /// Looks where the consumer really is. Returns false if there is no room that anybody
    /// would take an element from.
    #[inline(never)]
    fn find_room(&mut self) -> bool {
        self.look();
        // A consumer that is being dropped says so before it makes room, so
        // who waits for room is not fooled by the room of the last clearance.
        self.tail < self.limit && !self.shared.is_consumer_gone()
    }

    /// Looks where the consumer really is, and notes the depth.
    fn look(&mut self) {
        let head = self.shared.head();
        self.limit = head + self.shared.capacity();
        self.note_depth(self.tail - head);
    }

    fn note_depth(&self, depth: u64) {
        self.deepest.set(self.deepest.get().max(depth));
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.end_producer(self.end);
        self.wake();
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("position", &self.position())
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("is_abandoned", &self.is_abandoned())
            .finish_non_exhaustive()
    }
}

/// Publishes the slots that were written up to `tail` when it goes out of scope.
struct Publication<'a, T> {
    tail: u64,
    producer: &'a mut Producer<T>,
}

impl<T> Publication<'_, T> {
    /// How many more elements there is room for, as far as is known; looks where the consumer
    /// really is when there seems to be none. None either when the consumer is gone.
    #[inline]
    fn room(&mut self) -> u64 {
        let producer = &mut *self.producer;
        if self.tail < producer.limit {
            return producer.limit - self.tail;
        }
        let pushed = std::mem::replace(&mut producer.tail, self.tail);
        producer.look();
        producer.tail = pushed;
        if producer.is_abandoned() {
            return 0;
        }
        producer.limit - self.tail
    }
}

impl<T> Drop for Publication<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let producer = &mut *self.producer;
        if self.tail == producer.tail {
            return;
        }
        producer.tail = self.tail;
        producer.shared.publish_tail(producer.tail);
        producer.wake();
    }
}
