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
    /// The last position of the consumer that was looked at; the true one is
    /// the same or higher.
    cached_head: u64,
    /// The highest depth so far. It never exceeds the capacity, so one
    /// comparison with it proves room and an unbeaten mark at once.
    high_water: u64,
    end: u8,
    consumer_bell: Bell,
    producer_bell: Bell,
    not_sync: PhantomData<Cell<()>>,
}

impl<T> Producer<T> {
    pub(crate) fn new(shared: Arc<Shared<T>>, producer_bell: Bell, consumer_bell: Bell) -> Self {
        Producer {
            shared,
            tail: 0,
            cached_head: 0,
            high_water: 0,
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
        if self.tail - self.cached_head >= self.high_water && !self.raise_mark() {
            return Err(self.reject(value));
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
        if self.shared.is_consumer_gone() {
            return Err(PushError::Abandoned(value));
        }
        // SAFETY: this is the producer.
        unsafe { self.shared.mailbox().put(value, self.tail) }.map_err(PushError::Full)?;
        self.wake();
        Ok(())
    }

    /// Says that nothing more comes: the consumer takes what is queued and
    /// then gets [`PopError::Finished`](crate::PopError::Finished).
    pub fn finish(mut self) {
        self.end = FINISHED;
    }

    /// How many elements are queued. The consumer may be taking some meanwhile.
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

    /// The highest depth that a push ever made; never above the capacity, and
    /// it never falls.
    pub fn high_water(&self) -> usize {
        self.high_water as usize
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

    /// Looks where the consumer really is, and makes the mark one higher than
    /// the true depth if it is not already. Returns false if there is no room
    /// that anybody would take an element from.
    #[inline(never)]
    fn raise_mark(&mut self) -> bool {
        self.cached_head = self.shared.head();
        let depth = self.tail - self.cached_head;
        // A consumer that is being dropped says so before it makes room, so
        // who waits for room is not fooled by the room of the last clearance.
        if depth >= self.shared.capacity() || self.shared.is_consumer_gone() {
            return false;
        }
        self.high_water = self.high_water.max(depth + 1);
        true
    }

    #[cold]
    fn reject(&self, value: T) -> PushError<T> {
        if self.is_abandoned() {
            PushError::Abandoned(value)
        } else {
            PushError::Full(value)
        }
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
        let capacity = self.producer.shared.capacity();
        let room = self.producer.cached_head + capacity - self.tail;
        if room > 0 {
            return room;
        }
        self.producer.cached_head = self.producer.shared.head();
        if self.producer.is_abandoned() {
            return 0;
        }
        self.producer.cached_head + capacity - self.tail
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
        // The mark is taken before the consumer can see the new elements, so
        // it is the depth that this publication makes.
        if producer.tail - producer.cached_head > producer.high_water {
            producer.cached_head = producer.shared.head();
            let depth = producer.tail - producer.cached_head;
            producer.high_water = producer.high_water.max(depth);
        }
        producer.shared.publish_tail(producer.tail);
        producer.wake();
    }
}
