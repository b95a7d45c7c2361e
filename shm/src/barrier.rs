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
/// [`Barrier::detect`] or both [`Barrier::symmetric`]. The heavy side of any pairs with the
/// light side of the symmetric one, also in another process: it fences in every case.
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
        let mut choice = CHOICE.load(Ordering::Relaxed);
        if choice == UNKNOWN {
            let found = if register() { ASYMMETRIC } else { SYMMETRIC };
            // The first answer stands, even if the kernel changed its mind.
            let first =
                CHOICE.compare_exchange(UNKNOWN, found, Ordering::Relaxed, Ordering::Relaxed);
            choice = first.err().unwrap_or(found);
        }
        Barrier {
            asymmetric: choice == ASYMMETRIC,
        }
    }

    /// A full fence on both sides, which needs nothing from the kernel.
    pub(crate) const fn symmetric() -> Barrier {
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

/// The model: a full fence on both sides is what the asymmetric pair amounts to.
#[cfg(loom)]
impl Barrier {
    pub(crate) fn detect() -> Barrier {
        Barrier { asymmetric: false }
    }

    pub(crate) const fn symmetric() -> Barrier {
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
