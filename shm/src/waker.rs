//! A place where one party leaves a waker and others take it.

use core::mem;
use core::task::Waker;

use crate::sync::{AtomicBool, Ordering, UnsafeCell};

/// One waker at most. Nobody waits for anybody: who finds another at it goes
/// without, which the bell allows (see `Bell::register`).
pub(crate) struct WakerSlot {
    held: AtomicBool,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the cell is accessed by the one that holds the mark only, and wakers
// may move between threads.
unsafe impl Send for WakerSlot {}
// SAFETY: as for Send.
unsafe impl Sync for WakerSlot {}

impl WakerSlot {
    pub(crate) fn new() -> WakerSlot {
        WakerSlot {
            held: AtomicBool::new(false),
            waker: UnsafeCell::new(None),
        }
    }

    /// Leaves a clone of `waker` in place of the one that is there. Returns
    /// false, and leaves nothing, if another is at the slot at this moment.
    pub(crate) fn put(&self, waker: &Waker) -> bool {
        // Cloned and dropped outside, because both run code of the runtime.
        let mut left = Some(waker.clone());
        self.hold(|kept| mem::swap(kept, &mut left))
    }

    /// Takes the waker. None if there is none, or another is at the slot at
    /// this moment.
    pub(crate) fn take(&self) -> Option<Waker> {
        let mut taken = None;
        self.hold(|kept| taken = kept.take());
        taken
    }

    /// Runs `access`, which must not panic, if nobody else is at the slot.
    fn hold(&self, access: impl FnOnce(&mut Option<Waker>)) -> bool {
        // Acquire pairs with the Release below. What a failure reads may be old, but not
        // older than what this thread knows: `Bell::register` relies on no more.
        let hold = self
            .held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        if hold.is_err() {
            return false;
        }
        // SAFETY: the mark was free and is this thread's until it is given back.
        self.waker.with_mut(|kept| access(unsafe { &mut *kept }));
        // Release pairs with the Acquire above: the next one sees what is left.
        self.held.store(false, Ordering::Release);
        true
    }
}
