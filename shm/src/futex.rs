//! A word that a thread can sleep on until it changes.

use std::time::Duration;

use crate::sync::{AtomicU32, Ordering};
#[cfg(loom)]
use crate::sync::{Condvar, Mutex};

/// A 32-bit word with the kernel's wait queue behind it.
///
/// The word itself is the condition, so a parked thread costs no lock and no
/// second state that could disagree with it. Under loom a condition variable
/// stands in for the kernel.
#[derive(Debug)]
pub(crate) struct Futex {
    word: AtomicU32,
    /// Whether it was [kicked](Futex::kick), and the lock of the condition variable.
    #[cfg(loom)]
    kicked: Mutex<bool>,
    #[cfg(loom)]
    changed: Condvar,
}

impl Futex {
    pub(crate) fn new(value: u32) -> Futex {
        Futex {
            word: AtomicU32::new(value),
            #[cfg(loom)]
            kicked: Mutex::new(false),
            #[cfg(loom)]
            changed: Condvar::new(),
        }
    }

    #[inline]
    pub(crate) fn load(&self, order: Ordering) -> u32 {
        self.word.load(order)
    }

    #[inline]
    pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.word.swap(value, order)
    }

    /// Sleeps while the word is `expected`, at most for `timeout`. May return
    /// early for no reason: the caller looks at the word and the clock.
    #[cfg(not(loom))]
    pub(crate) fn wait(&self, expected: u32, timeout: Option<Duration>) {
        use rustix::thread::futex::{Flags, Timespec, wait};
        // A time that a timespec cannot hold is as good as none.
        let limit = timeout.and_then(|limit| Timespec::try_from(limit).ok());
        // Every error means "look again": changed already, interrupted, timed out.
        let _ = wait(&self.word, Flags::PRIVATE, expected, limit.as_ref());
    }

    /// Wakes the thread that sleeps here, if one does. The word must have been
    /// changed before.
    #[cfg(not(loom))]
    pub(crate) fn wake(&self) {
        use rustix::thread::futex::{Flags, wake};
        // It fails for addresses that are no futex only, and this one is.
        let _ = wake(&self.word, Flags::PRIVATE, 1);
    }

    #[cfg(loom)]
    pub(crate) fn wait(&self, expected: u32, _timeout: Option<Duration>) {
        let kicked = self.kicked.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == expected && !*kicked {
            drop(self.changed.wait(kicked).unwrap());
        }
    }

    #[cfg(loom)]
    pub(crate) fn wake(&self) {
        let _kicked = self.kicked.lock().unwrap();
        self.changed.notify_one();
    }

    /// Wakes the thread that sleeps here, or the next that will, without a change of the word: as
    /// the count of an eventfd does.
    #[cfg(loom)]
    pub(crate) fn kick(&self) {
        *self.kicked.lock().unwrap() = true;
        self.changed.notify_one();
    }

    /// Takes the kick, as a read takes the count of an eventfd.
    #[cfg(loom)]
    pub(crate) fn take_kick(&self) -> bool {
        std::mem::take(&mut *self.kicked.lock().unwrap())
    }
}
