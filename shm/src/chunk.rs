//! Popping many elements with one publication.

use core::fmt;
use core::iter::FusedIterator;

use crate::consumer::Consumer;

/// Elements taken together, from [`Consumer::pop_chunk`].
///
/// Dropping it gives the slots of what was taken back to the producer, with
/// one wake-up; what was not taken stays queued. If it is forgotten instead
/// ([`core::mem::forget`]), they go back with the next element that is popped.
#[must_use = "elements are popped as the chunk is iterated"]
pub struct Chunk<'a, T> {
    consumer: &'a mut Consumer<T>,
    start: u64,
    end: u64,
}

impl<'a, T> Chunk<'a, T> {
    #[inline]
    pub(crate) fn new(consumer: &'a mut Consumer<T>, max: usize) -> Chunk<'a, T> {
        let start = consumer.position();
        let end = consumer.known_tail().min(start.saturating_add(max as u64));
        Chunk {
            consumer,
            start,
            end,
        }
    }
}

impl<T> Iterator for Chunk<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.consumer.position() >= self.end {
            return None;
        }
        Some(self.consumer.take())
    }

    /// As calling [`next`](Iterator::next) to the end, without a look at the ring for each
    /// element.
    #[inline]
    fn fold<B, F: FnMut(B, T) -> B>(self, init: B, mut fold: F) -> B {
        let mut folded = init;
        while self.consumer.position() < self.end {
            let left = self.end - self.consumer.position();
            // If `fold` panics, the run gives back what was taken and no more.
            let mut run = self.consumer.run(left);
            while let Some(value) = run.next() {
                folded = fold(folded, value);
            }
        }
        folded
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.consumer.position()) as usize;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Chunk<'_, T> {}

impl<T> FusedIterator for Chunk<'_, T> {}

impl<T> Drop for Chunk<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.consumer.position() != self.start {
            self.consumer.publish();
            self.consumer.wake();
        }
    }
}

impl<T> fmt::Debug for Chunk<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
