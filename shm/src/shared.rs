//! The memory that the two halves of a ring share.

use crossbeam_utils::CachePadded;

use crate::priority::Mailbox;
use crate::slots::{self, Slots, Storage};
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// The producer still holds its half.
pub(crate) const OPEN: u8 = 0;
/// The producer said that nothing more comes.
pub(crate) const FINISHED: u8 = 1;
/// The producer was dropped without saying so.
pub(crate) const ABANDONED: u8 = 2;

/// Slots and positions of one ring.
///
/// Positions count pushes and pops since the start and never wrap, so full,
/// empty and any capacity are told apart without a spare slot. Slots `head ..
/// tail` are initialised and belong to the consumer, all others to the
/// producer. Each line is written by one party only and lies 128 bytes from
/// the next, because processors fetch lines in pairs.
pub(crate) struct Shared<T> {
    producer: CachePadded<ProducerLine>,
    consumer: CachePadded<ConsumerLine>,
    common: CachePadded<CommonLine<T>>,
}

/// Written by the producer at every publication.
struct ProducerLine {
    tail: AtomicU64,
}

/// Written by the consumer at every publication.
struct ConsumerLine {
    head: AtomicU64,
    released: AtomicU64,
    deepest: AtomicU64,
}

/// Read by both at every step and written a few times in the ring's life.
struct CommonLine<T> {
    slots: Storage<T>,
    capacity: u64,
    producer_end: AtomicU8,
    consumer_gone: AtomicBool,
    mailbox: Mailbox<T>,
}

// SAFETY: the positions hand each slot from one half to the other with a
// Release store and an Acquire load, so a value is reached by one thread at a
// time; that moves values between threads, which T: Send allows.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as for Send; no `&T` is ever given to two threads at once.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(capacity: usize) -> Shared<T> {
        Shared {
            producer: CachePadded::new(ProducerLine {
                tail: AtomicU64::new(0),
            }),
            consumer: CachePadded::new(ConsumerLine {
                head: AtomicU64::new(0),
                released: AtomicU64::new(0),
                deepest: AtomicU64::new(0),
            }),
            common: CachePadded::new(CommonLine {
                slots: slots::allocate(capacity),
                capacity: capacity as u64,
                producer_end: AtomicU8::new(OPEN),
                consumer_gone: AtomicBool::new(false),
                mailbox: Mailbox::new(),
            }),
        }
    }

    /// How many elements may be queued at once.
    #[inline]
    pub(crate) fn capacity(&self) -> u64 {
        self.common.capacity
    }

    /// The slot beside the queue.
    #[inline]
    pub(crate) fn mailbox(&self) -> &Mailbox<T> {
        &self.common.mailbox
    }

    /// What the producer has published.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        // Acquire pairs with the Release in `publish_tail`.
        self.producer.tail.load(Ordering::Acquire)
    }

    /// Gives all slots below `tail` to the consumer.
    #[inline]
    pub(crate) fn publish_tail(&self, tail: u64) {
        // Release pairs with the Acquire in `tail`.
        self.producer.tail.store(tail, Ordering::Release);
    }

    /// What the consumer has published.
    #[inline]
    pub(crate) fn head(&self) -> u64 {
        // Acquire pairs with the Release in `publish_head`.
        self.consumer.head.load(Ordering::Acquire)
    }

    /// Gives all slots below `head` back to the producer.
    #[inline]
    pub(crate) fn publish_head(&self, head: u64) {
        // Release pairs with the Acquire in `head`.
        self.consumer.head.store(head, Ordering::Release);
    }

    /// The sum of the weights that the consumer has given back.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        // Acquire pairs with the Release in `publish_released`.
        self.consumer.released.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn publish_released(&self, released: u64) {
        // Release pairs with the Acquire in `released`.
        self.consumer.released.store(released, Ordering::Release);
    }

    /// The highest depth that the consumer has seen.
    pub(crate) fn deepest(&self) -> u64 {
        // A figure for people; nothing else is published with it.
        self.consumer.deepest.load(Ordering::Relaxed)
    }

    pub(crate) fn note_deepest(&self, depth: u64) {
        self.consumer.deepest.store(depth, Ordering::Relaxed);
    }

    /// How the producer ended, or `OPEN`.
    #[inline]
    pub(crate) fn producer_end(&self) -> u8 {
        // Acquire pairs with the Release in `end_producer`: who sees the end
        // sees every position that was published before it.
        self.common.producer_end.load(Ordering::Acquire)
    }

    pub(crate) fn end_producer(&self, end: u8) {
        // Release pairs with the Acquire in `producer_end`.
        self.common.producer_end.store(end, Ordering::Release);
    }

    /// Whether the consumer is gone.
    #[inline]
    pub(crate) fn is_consumer_gone(&self) -> bool {
        // Acquire pairs with the Release in `end_consumer`: whoever owned the consumer may have
        // left word of why it went, and that is read after this.
        self.common.consumer_gone.load(Ordering::Acquire)
    }

    pub(crate) fn end_consumer(&self) {
        // Release pairs with the Acquire in `is_consumer_gone`.
        self.common.consumer_gone.store(true, Ordering::Release);
    }

    /// The slots, to be fetched once for a loop over many.
    #[inline]
    pub(crate) fn slots(&self) -> Slots<'_, T> {
        Slots::new(self.common.slots.as_slice())
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // If the drop of one value panics, the guard still drops the others.
        let rest = Rest(self);
        rest.drop_all();
    }
}

/// What is still queued after both halves are gone.
struct Rest<'a, T>(&'a Shared<T>);

impl<T> Rest<'_, T> {
    fn drop_all(&self) {
        let tail = self.0.tail();
        let mut head = self.0.head();
        while head < tail {
            // The position moves first: a value whose drop panics is not
            // dropped again.
            self.0.publish_head(head + 1);
            // SAFETY: both halves are gone and `head` is queued.
            drop(unsafe { self.0.slots().read(head) });
            head += 1;
        }
    }
}

impl<T> Drop for Rest<'_, T> {
    fn drop(&mut self) {
        self.drop_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_two_parties_write_the_same_pair_of_cache_lines() {
        let producer = core::mem::offset_of!(Shared<u64>, producer);
        let consumer = core::mem::offset_of!(Shared<u64>, consumer);
        let common = core::mem::offset_of!(Shared<u64>, common);
        assert!(producer.abs_diff(consumer) >= 128);
        assert!(producer.abs_diff(common) >= 128);
        assert!(consumer.abs_diff(common) >= 128);
    }

    #[test]
    fn an_idle_ring_costs_under_a_kibibyte_beyond_its_slots() {
        assert!(size_of::<Shared<[u64; 5]>>() <= 512);
    }
}
