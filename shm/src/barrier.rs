//! The StoreLoad barrier between "I published work" and "is the peer asleep?".
//!
//! Waking without a lock needs both sides to store, then to load what the other
//! stored, with nothing in between reordered. A full fence on both sides costs
//! a ring more than half of its rate. The two sides are not equally frequent,
//! though: work is published all the time and sleep is rare. So the parking
//! side executes the barrier for both: `membarrier` makes every running thread
//! of the process pass a full fence, and the publishing side only keeps the
//! compiler from reordering.

#[cfg(loom)]
use crate::sync::fence;
#[cfg(not(loom))]
use crate::sync::{AtomicU8, Ordering, compiler_fence, fence};

/// Nobody has asked the kernel yet.
#[cfg(not(loom))]
const UNKNOWN: u8 = 0;
#[cfg(not(loom))]
const ASYMMETRIC: u8 = 1;
#[cfg(not(loom))]
const SYMMETRIC: u8 = 2;

/// One process-wide way to order a store before a load across two threads.
///
/// Both sides must use values that came from the same call of
/// [`Barrier::detect`] or both [`Barrier::symmetric`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrier {
    asymmetric: bool,
}

#[cfg(not(loom))]
impl Barrier {
    /// The cheapest barrier that this kernel and sandbox allow; the answer is
    /// found once and is the same for the life of the process.
    pub(crate) fn detect() -> Barrier {
        static CHOICE: AtomicU8 = AtomicU8::new(UNKNOWN);
        Barrier {
            asymmetric: detect_once(&CHOICE, register),
        }
    }

    /// A full fence on both sides, which needs nothing from the kernel.
    #[cfg(test)]
    pub(crate) fn symmetric() -> Barrier {
        Barrier { asymmetric: false }
    }

    /// Whether the publishing side is spared its fence.
    pub(crate) fn is_asymmetric(self) -> bool {
        self.asymmetric
    }

    /// The frequent side: between publishing work and looking for a sleeper.
    #[inline(always)]
    pub(crate) fn light(self) {
        if self.asymmetric {
            // Pairs with `heavy`, whose membarrier is the fence of this thread too.
            compiler_fence(Ordering::SeqCst);
        } else {
            // Pairs with the fence in `heavy`.
            fence(Ordering::SeqCst);
        }
    }

    /// The rare side: between announcing sleep and the last look for work.
    ///
    /// Returns false where the kernel took back what it granted at start, for
    /// instance by a seccomp filter installed later. Then nothing was ordered
    /// and the caller must not sleep.
    #[must_use]
    pub(crate) fn heavy(self) -> bool {
        fence(Ordering::SeqCst);
        if !self.asymmetric {
            return true;
        }
        let done = rustix::thread::membarrier(rustix::thread::MembarrierCommand::PrivateExpedited);
        compiler_fence(Ordering::SeqCst);
        done.is_ok()
    }
}

/// Registers the process and tries the call once, so that a sandbox which
/// allows the registration alone is found out before anything relies on it.
#[cfg(not(loom))]
fn register() -> bool {
    use rustix::thread::{MembarrierCommand, membarrier};
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// The same across processes: between who parks in one and who publishes in another.
///
/// `membarrier` reaches the threads of all processes that asked for it. Whoever publishes asks,
/// and spares itself the fence only if it was heard and the other side says that it executes the
/// barrier when it parks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Global {
    asymmetric: bool,
}

#[cfg(not(loom))]
impl Global {
    /// Whether this process is heard, found once for its life.
    pub(crate) fn detect() -> Global {
        static CHOICE: AtomicU8 = AtomicU8::new(UNKNOWN);
        let asymmetric = detect_once(&CHOICE, register_global);
        Global { asymmetric }
    }

    /// What holds towards an owner that does or does not execute the barrier.
    pub(crate) fn with_owner(self, executes: bool) -> Global {
        Global {
            asymmetric: self.asymmetric && executes,
        }
    }

    pub(crate) fn is_asymmetric(self) -> bool {
        self.asymmetric
    }

    /// As [`Barrier::light`].
    #[inline(always)]
    pub(crate) fn light(self) {
        Barrier {
            asymmetric: self.asymmetric,
        }
        .light();
    }

    /// As [`Barrier::heavy`]. It covers the threads of this process too.
    #[must_use]
    pub(crate) fn heavy(self, within: Barrier) -> bool {
        if !self.asymmetric {
            return within.heavy();
        }
        fence(Ordering::SeqCst);
        let done = rustix::thread::membarrier(rustix::thread::MembarrierCommand::GlobalExpedited);
        compiler_fence(Ordering::SeqCst);
        done.is_ok()
    }
}

/// As [`register`], for all processes that did this.
#[cfg(not(loom))]
fn register_global() -> bool {
    use rustix::thread::{MembarrierCommand, membarrier};
    membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
        && membarrier(MembarrierCommand::GlobalExpedited).is_ok()
}

/// Asks once in the life of the process. The first answer stands, even if the kernel changed its
/// mind.
#[cfg(not(loom))]
fn detect_once(choice: &AtomicU8, ask: fn() -> bool) -> bool {
    let mut known = choice.load(Ordering::Relaxed);
    if known == UNKNOWN {
        let found = if ask() { ASYMMETRIC } else { SYMMETRIC };
        let first = choice.compare_exchange(UNKNOWN, found, Ordering::Relaxed, Ordering::Relaxed);
        known = first.err().unwrap_or(found);
    }
    known == ASYMMETRIC
}

/// The model: a full fence on both sides is what the asymmetric pair amounts to.
#[cfg(loom)]
impl Barrier {
    pub(crate) fn detect() -> Barrier {
        Barrier { asymmetric: false }
    }

    pub(crate) fn is_asymmetric(self) -> bool {
        self.asymmetric
    }

    pub(crate) fn light(self) {
        fence(crate::sync::Ordering::SeqCst);
    }

    #[must_use]
    pub(crate) fn heavy(self) -> bool {
        fence(crate::sync::Ordering::SeqCst);
        true
    }
}

#[cfg(loom)]
impl Global {
    pub(crate) fn detect() -> Global {
        Global { asymmetric: false }
    }

    pub(crate) fn with_owner(self, _executes: bool) -> Global {
        self
    }

    pub(crate) fn is_asymmetric(self) -> bool {
        self.asymmetric
    }

    pub(crate) fn light(self) {
        fence(crate::sync::Ordering::SeqCst);
    }

    #[must_use]
    pub(crate) fn heavy(self, within: Barrier) -> bool {
        within.heavy()
    }
}
