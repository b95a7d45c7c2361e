//! One slot beside the queue, for a value that may overtake it.

use core::mem::MaybeUninit;

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// A mailbox for one value and the queue position it was pushed at.
pub(crate) struct Mailbox<T> {
    /// True gives the letter to the consumer, false gives it to the producer.
    full: AtomicBool,
    letter: UnsafeCell<MaybeUninit<(T, u64)>>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Mailbox<T> {
        Mailbox {
            full: AtomicBool::new(false),
            letter: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Whether a letter waits.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        // Acquire pairs with the Release in `put` (letter given) and, on the
        // producer's side, with the one in `take` (letter read).
        self.full.load(Ordering::Acquire)
    }

    /// Puts a letter in, or gives the value back if the last is still there.
    ///
    /// # Safety
    ///
    /// Only the thread that holds the producer may call it.
    pub(crate) unsafe fn put(&self, value: T, position: u64) -> Result<(), T> {
        if self.is_full() {
            return Err(value);
        }
        self.letter.with_mut(|letter| {
            // SAFETY: an empty mailbox belongs to the producer, which is the
            // caller, so nobody else touches the letter.
            unsafe { (*letter).write((value, position)) };
        });
        // Release pairs with the Acquire in `is_full` of the consumer.
        self.full.store(true, Ordering::Release);
        Ok(())
    }

    /// The position of the letter that waits.
    ///
    /// # Safety
    ///
    /// Only the thread that holds the consumer may call it.
    pub(crate) unsafe fn position(&self) -> Option<u64> {
        if !self.is_full() {
            return None;
        }
        // SAFETY: a full mailbox is initialised and belongs to the consumer,
        // which is the caller.
        Some(
            self.letter
                .with(|letter| unsafe { (*letter).assume_init_ref().1 }),
        )
    }

    /// Takes the letter that waits.
    ///
    /// # Safety
    ///
    /// Only the thread that holds the consumer may call it.
    pub(crate) unsafe fn take(&self) -> Option<(T, u64)> {
        if !self.is_full() {
            return None;
        }
        // SAFETY: a full mailbox is initialised and belongs to the consumer,
        // which is the caller; the store below gives it up for good.
        let letter = self
            .letter
            .with(|letter| unsafe { (*letter).assume_init_read() });
        // Release pairs with the Acquire in `is_full` of the producer.
        self.full.store(false, Ordering::Release);
        Some(letter)
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self` means that both halves are gone.
        drop(unsafe { self.take() });
    }
}
