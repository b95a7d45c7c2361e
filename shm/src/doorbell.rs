//! A bell that another process may ring, and the other process's side of it.
//!
//! Nobody writes into the memory of another, so a ring can't take the mark of
//! the sleeper away. Instead the owner counts: the epoch in its page is odd
//! while it sleeps or is about to, and who rings remembers for which epoch it
//! has rung already, so that one sleep costs a ringer one system call at most.

#[cfg(loom)]
mod heap;
#[cfg(not(loom))]
mod mapped;

use core::fmt;

#[cfg(loom)]
pub(crate) use heap::{Page, Pull};
#[cfg(not(loom))]
pub(crate) use mapped::{Page, Pull};

use crate::barrier::Barrier;
use crate::sync::Ordering;

impl Page {
    /// The owner is about to sleep: a new epoch, since someone may have rung for the last one and
    /// would not ring for it again. The barrier follows. Only the owner calls this.
    pub(crate) fn arm(&self) {
        let epoch = self.epoch().load(Ordering::Relaxed);
        let next = epoch.wrapping_add(1) | 1;
        self.epoch().store(next, Ordering::Relaxed);
    }

    /// The owner is awake. Only the owner calls this.
    pub(crate) fn disarm(&self) {
        let epoch = self.epoch().load(Ordering::Relaxed);
        if epoch & 1 == 1 {
            self.epoch().store(epoch.wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// What rings the bell of another process.
pub(crate) struct Doorbell {
    pull: Pull,
    /// The epoch that was rung for last; 0, which is even, is none.
    rung: u32,
    rings: u64,
}

impl Doorbell {
    /// Rings by what the other process passed.
    pub(crate) fn new(pull: Pull) -> Doorbell {
        Doorbell {
            pull,
            rung: 0,
            rings: 0,
        }
    }

    /// Wakes the owner if it sleeps and was not woken already. The work must have been published.
    #[inline]
    pub(crate) fn ring(&mut self) {
        if self.is_armed() {
            self.wake();
        }
    }

    /// Whether the owner sleeps and was not woken already. The work must have been published.
    #[inline]
    pub(crate) fn is_armed(&mut self) -> bool {
        // A fence, though an asymmetric barrier across processes exists: it interrupts every
        // processor that runs one of them, and costs who parks more than this costs who publishes.
        Barrier::symmetric().light();
        let epoch = self.pull.epoch().load(Ordering::Relaxed);
        epoch & 1 == 1 && epoch != self.rung
    }

    /// Wakes the owner, which was armed a moment ago.
    #[cold]
    pub(crate) fn wake(&mut self) {
        self.rung = self.pull.epoch().load(Ordering::Relaxed);
        self.rings += 1;
        self.pull.pull();
    }

    /// How many times it really woke the owner.
    pub(crate) fn rings_total(&self) -> u64 {
        self.rings
    }
}

impl fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doorbell")
            .field("rings", &self.rings)
            .finish_non_exhaustive()
    }
}
