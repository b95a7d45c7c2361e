//! Waking: how a party that found nothing to do sleeps without missing anything.
#![allow(clippy::disallowed_methods, reason = "a timed park measures itself")]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::task::Waker;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::barrier::Barrier;
use crate::doorbell::Page;
use crate::futex::Futex;
#[cfg(not(loom))]
use crate::segment::OpenError;
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::waker::WakerSlot;

/// Nobody sleeps or is about to.
const IDLE: u32 = 0;
/// The owner's thread sleeps or is about to; whoever rings must wake it.
const ARMED: u32 = 1;
/// The owner is a task that left its waker; whoever rings must call that.
const REGISTERED: u32 = 2;

/// Wakes one party, from any number of threads.
///
/// One party sleeps on a bell, many may ring it: a worker has one bell and
/// hands a clone to every ring it takes part in. A clone is another handle to
/// the same bell.
///
/// The party that sleeps follows one order, and nothing is missed:
///
/// 1. [`arm`](Bell::arm) announces sleep;
/// 2. look for work once more; if there is some, [`disarm`](Bell::disarm);
/// 3. otherwise [`park`](Bell::park).
///
/// A task of an asynchronous runtime does the same with other words: it leaves
/// its waker with [`register`](Bell::register), looks for work once more, and
/// returns `Pending` if there is none; otherwise, and when it is dropped, it
/// calls [`withdraw`](Bell::withdraw). Any bell serves either way, one party
/// at a time.
///
/// The other side publishes its work first and calls [`ring`](Bell::ring)
/// after. That makes a system call only if the owner is armed, so a peer which
/// spins costs nothing.
#[derive(Clone)]
pub struct Bell {
    core: Arc<CachePadded<Core>>,
    /// Kept in the handle, because a ring needs it on every push.
    barrier: Barrier,
}

/// What all handles share. It is written only to arm and to wake, so the line
/// stays shared between the caches of all who ring.
struct Core {
    word: Futex,
    rings: AtomicU64,
    descriptor: Option<OwnedFd>,
    waker: WakerSlot,
    /// Where other processes look, if they may ring.
    page: OnceLock<Page>,
}

/// What another process needs to ring a bell.
#[cfg(not(loom))]
pub(crate) struct SharedBell<'a> {
    pub(crate) page: BorrowedFd<'a>,
    pub(crate) descriptor: BorrowedFd<'a>,
}

impl Bell {
    /// A bell for a thread or a task that waits for nothing else:
    /// [`park`](Bell::park) sleeps on a futex, whichever thread calls it.
    pub fn thread() -> Bell {
        Bell::new(None, Barrier::detect())
    }

    /// A bell with an eventfd, for an owner that waits for other descriptors
    /// or completions together with it.
    ///
    /// # Errors
    ///
    /// Those of `eventfd`: the process or the system has no descriptor left
    /// (raise the limit of open files), or no memory.
    pub fn descriptor() -> io::Result<Bell> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Bell::new(Some(descriptor), Barrier::detect()))
    }

    /// Announces that the owner is about to sleep. It must look for work once
    /// more afterwards, then [`park`](Bell::park) or [`disarm`](Bell::disarm).
    pub fn arm(&self) {
        // An exchange and no plain store, so that it has a definite place among
        // the exchanges of those who ring: a late one for an earlier sleep
        // takes this mark and wakes, or it came before and leaves it alone.
        self.core.word.swap(ARMED, Ordering::Relaxed);
        if !self.core.announce(self.barrier) {
            // Nothing was ordered, so a ring may be missed: the owner must not
            // sleep. It turns into a slow poll, which is right, if wasteful.
            self.ring_armed();
        }
    }

    /// Takes back [`arm`](Bell::arm), because there was work after all.
    pub fn disarm(&self) {
        // Acquire pairs with the Release in `ring_armed`.
        let rung = self.core.word.swap(IDLE, Ordering::Acquire) != ARMED;
        self.core.withdraw();
        if rung {
            self.core.drain();
        }
    }

    /// Leaves the waker of the task that owns this half, for the next ring to
    /// call. The task must look for work once more afterwards, and return
    /// `Pending` only if there is none. It replaces the waker that was left
    /// before; each is called once at most.
    ///
    /// If a ring is under way at this moment, the waker may be called at once.
    pub fn register(&self, waker: &Waker) {
        if !self.core.waker.put(waker) {
            // Whoever rings is taking the last one; this task just asks again.
            return waker.wake_by_ref();
        }
        // After the waker, so that whoever takes the mark finds it there, or finds
        // another ring that takes it and calls it. The exchange follows, in the
        // order of the word, those of all rings that took an older mark, and
        // Acquire pairs with their Release: what they were for is seen by the look
        // that follows, so that they may go without a waker.
        self.core.word.swap(REGISTERED, Ordering::AcqRel);
        if !self.core.announce(self.barrier) {
            self.ring_armed();
        }
    }

    /// Takes back [`register`](Bell::register), because there was work after
    /// all or the task waits no more. The waker is dropped.
    pub fn withdraw(&self) {
        // Acquire pairs with the Release in `ring_armed`.
        self.core.word.swap(IDLE, Ordering::Acquire);
        self.core.withdraw();
        // If a ring is taking it at this moment, that one drops it.
        drop(self.core.waker.take());
    }

    /// Whether the owner sleeps or is about to, as a thread or as a task.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.core.word.load(Ordering::Relaxed) != IDLE
    }

    /// Sleeps until the bell rings or `timeout` has passed; `None` waits
    /// without limit. Returns whether it rang, also if that was between
    /// [`arm`](Bell::arm) and this call. On a bell that is not armed it returns
    /// true at once. Afterwards the bell is disarmed and the count of its
    /// descriptor consumed.
    pub fn park(&self, timeout: Option<Duration>) -> bool {
        // A deadline beyond what the clock can hold is no deadline.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // Acquire pairs with the Release in `ring_armed`: what was published
        // before the ring is seen after it.
        while self.core.word.load(Ordering::Acquire) == ARMED {
            let remaining = deadline.map(|deadline| deadline - Instant::now().min(deadline));
            if remaining == Some(Duration::ZERO) {
                break;
            }
            if self.core.sleep(remaining) && self.core.page.get().is_some() {
                // Another process can't take the mark away.
                self.core.word.swap(IDLE, Ordering::Acquire);
            }
        }
        // Acquire as above, for a ring that came together with the timeout.
        let rung = self.core.word.swap(IDLE, Ordering::Acquire) != ARMED;
        self.core.withdraw();
        self.core.drain();
        rung
    }

    /// Wakes the owner if it is armed; otherwise costs one load. The work it
    /// is woken for must have been published before.
    #[inline]
    pub fn ring(&self) {
        self.barrier.light();
        if self.is_armed() {
            self.ring_armed();
        }
    }

    /// The descriptor that becomes readable when an armed bell rings, for a
    /// host that waits for it by itself; `None` for a [`thread`](Bell::thread)
    /// bell. After waking, such a host calls [`clear`](Bell::clear).
    ///
    /// It may be readable without cause, when a ring crossed with
    /// [`disarm`](Bell::disarm); the host then finds no work and parks again.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.core.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Disarms the bell and consumes the count of its descriptor, for a host
    /// that waited on [`as_fd`](Bell::as_fd) instead of calling
    /// [`park`](Bell::park).
    pub fn clear(&self) {
        // Acquire pairs with the Release in `ring_armed`.
        self.core.word.swap(IDLE, Ordering::Acquire);
        self.core.withdraw();
        self.core.drain();
    }

    /// A bell that another party of the model may ring as another process would.
    #[cfg(loom)]
    pub fn model_shared() -> Bell {
        let bell = Bell::thread();
        assert!(bell.core.page.set(Page::new()).is_ok());
        bell
    }

    /// What the model rings by.
    #[cfg(loom)]
    pub(crate) fn model_doorbell(&self) -> crate::doorbell::Doorbell {
        let page = self.core.page.get().expect("a shared bell");
        page.doorbell(self.clone())
    }

    /// What a doorbell of the model does in place of a write to the descriptor.
    #[cfg(loom)]
    pub(crate) fn model_kick(&self) {
        self.core.word.kick();
    }

    /// Lets other processes ring, for the life of the bell: by its descriptor, so that a waker
    /// that was left is not called by them.
    #[cfg(not(loom))]
    pub(crate) fn share(&self) -> Result<SharedBell<'_>, OpenError> {
        let descriptor = self.as_fd().ok_or(OpenError::BellHasNoDescriptor)?;
        let page = match self.core.page.get() {
            Some(page) => page,
            None => {
                let made = Page::new()?;
                self.core.page.get_or_init(|| made)
            }
        };
        Ok(SharedBell {
            page: page.descriptor(),
            descriptor,
        })
    }

    /// Whether it is the same bell: a ring of one is a ring of the other.
    pub fn is(&self, other: &Bell) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// How many times a ring really woke the owner: one system call, or one
    /// call of a task's waker each.
    pub fn rings_total(&self) -> u64 {
        self.core.rings.load(Ordering::Relaxed)
    }

    /// Whether this process rings without a fence, because the kernel grants
    /// `membarrier` to the side that parks. Where it is denied, both sides use
    /// a full fence and every ring costs some nanoseconds more.
    pub fn is_asymmetric(&self) -> bool {
        self.barrier.is_asymmetric()
    }

    fn new(descriptor: Option<OwnedFd>, barrier: Barrier) -> Bell {
        let core = Core {
            word: Futex::new(IDLE),
            rings: AtomicU64::new(0),
            descriptor,
            waker: WakerSlot::new(),
            page: OnceLock::new(),
        };
        Bell {
            core: Arc::new(CachePadded::new(core)),
            barrier,
        }
    }

    #[cold]
    fn ring_armed(&self) {
        // Of several that ring at once, the one that takes the mark wakes.
        // Release pairs with the Acquire in `park`, `disarm`, `clear`,
        // `register` and `withdraw`.
        match self.core.word.swap(IDLE, Ordering::AcqRel) {
            ARMED => {
                self.core.rings.fetch_add(1, Ordering::Relaxed);
                self.core.wake();
            }
            REGISTERED => self.core.wake_task(),
            _ => {}
        }
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell")
            .field("armed", &self.is_armed())
            .field("descriptor", &self.core.descriptor)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Tells other processes too that the owner is about to sleep, and orders that before the
    /// look for work that follows. Returns false if nothing was ordered.
    fn announce(&self, barrier: Barrier) -> bool {
        if let Some(page) = self.page.get() {
            page.arm();
        }
        barrier.heavy()
    }

    /// Tells other processes that the owner is awake.
    fn withdraw(&self) {
        if let Some(page) = self.page.get() {
            page.disarm();
        }
    }

    /// Sleeps until woken or for `timeout`; may return for no reason. Returns whether there was a
    /// count of the descriptor to take.
    fn sleep(&self, timeout: Option<Duration>) -> bool {
        let Some(descriptor) = &self.descriptor else {
            self.word.wait(ARMED, timeout);
            return self.drain();
        };
        let limit = timeout.and_then(|limit| Timespec::try_from(limit).ok());
        let mut wanted = [PollFd::new(descriptor, PollFlags::IN)];
        // An interrupted wait is a wake for no reason, which is allowed here.
        // A count left by an earlier ring must not wake twice.
        poll(&mut wanted, limit.as_ref()).is_ok_and(|ready| ready > 0) && self.drain()
    }

    fn wake(&self) {
        let Some(descriptor) = &self.descriptor else {
            return self.word.wake();
        };
        // The one error besides an interrupt is a full count, which is readable.
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(descriptor, &1u64.to_ne_bytes()));
    }

    /// Without a waker another ring has taken it and calls it: the task looks
    /// for work after that.
    fn wake_task(&self) {
        if let Some(waker) = self.waker.take() {
            self.rings.fetch_add(1, Ordering::Relaxed);
            waker.wake();
        }
    }

    /// Takes the count of the descriptor, where there is one.
    #[cfg(not(loom))]
    fn drain(&self) -> bool {
        let Some(descriptor) = &self.descriptor else {
            return false;
        };
        let mut count = [0; 8];
        // It would block if nothing was counted, which is as good as taken.
        rustix::io::retry_on_intr(|| rustix::io::read(descriptor, &mut count)).is_ok()
    }

    #[cfg(loom)]
    fn drain(&self) -> bool {
        self.word.take_kick()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    /// Long enough that only a lost wake-up waits for it to pass.
    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    fn every_kind() -> Vec<Bell> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        vec![
            Bell::thread(),
            Bell::descriptor().unwrap(),
            Bell::new(None, Barrier::symmetric()),
            Bell::new(Some(descriptor), Barrier::symmetric()),
        ]
    }

    #[test]
    fn a_bell_that_nobody_armed_makes_no_system_call() {
        for bell in every_kind() {
            bell.ring();
            assert_eq!(bell.rings_total(), 0);
            assert!(!bell.is_armed());
        }
    }

    #[test]
    fn a_ring_between_arm_and_park_is_not_lost() {
        for bell in every_kind() {
            bell.arm();
            assert!(bell.is_armed());
            bell.ring();
            bell.ring();
            assert!(bell.park(LONG));
            assert_eq!(bell.rings_total(), 1);
            assert!(!bell.is_armed());
        }
    }

    #[test]
    fn a_park_that_nobody_rings_ends_with_its_timeout_and_disarmed() {
        for bell in every_kind() {
            bell.arm();
            let start = Instant::now();
            assert!(!bell.park(Some(Duration::from_millis(5))));
            assert!(start.elapsed() >= Duration::from_millis(5));
            assert!(!bell.is_armed());
            bell.ring();
            assert_eq!(bell.rings_total(), 0);
        }
    }

    #[test]
    fn a_parked_thread_is_woken_by_another() {
        for bell in every_kind() {
            bell.arm();
            let ringer = bell.clone();
            let thread = thread::spawn(move || {
                while ringer.rings_total() == 0 {
                    ringer.ring();
                }
            });
            assert!(bell.park(None));
            thread.join().unwrap();
        }
    }

    #[test]
    fn a_timeout_beyond_the_clock_is_none() {
        let bell = Bell::thread();
        bell.arm();
        let ringer = bell.clone();
        let thread = thread::spawn(move || ringer.ring());
        assert!(bell.park(Some(Duration::MAX)));
        thread.join().unwrap();
    }

    #[test]
    fn a_count_left_by_a_crossed_ring_does_not_wake_the_next_park() {
        let bell = Bell::descriptor().unwrap();
        bell.core.wake();
        bell.arm();
        assert!(!bell.park(Some(Duration::from_millis(5))));
    }

    #[test]
    fn a_host_that_waits_on_the_descriptor_sees_it_readable_and_clears_it() {
        let bell = Bell::descriptor().unwrap();
        let readable = |bell: &Bell| {
            let mut wanted = [PollFd::from_borrowed_fd(
                bell.as_fd().unwrap(),
                PollFlags::IN,
            )];
            poll(&mut wanted, Some(&Timespec::default())).unwrap() == 1
        };
        bell.arm();
        assert!(!readable(&bell));
        bell.ring();
        assert!(readable(&bell));
        bell.clear();
        assert!(!readable(&bell));
        assert!(!bell.is_armed());
        assert!(Bell::thread().as_fd().is_none());
    }

    /// Counts how often it is called.
    #[derive(Default)]
    struct Calls(std::sync::atomic::AtomicU32);

    impl std::task::Wake for Calls {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }

    fn calls() -> (std::sync::Arc<Calls>, Waker, impl Fn() -> u32) {
        let calls = std::sync::Arc::new(Calls::default());
        let counted = calls.clone();
        let count = move || counted.0.load(std::sync::atomic::Ordering::SeqCst);
        (calls.clone(), Waker::from(calls), count)
    }

    #[test]
    fn a_registered_waker_is_called_by_the_next_ring_alone() {
        for bell in every_kind() {
            let (_, waker, count) = calls();
            bell.register(&waker);
            assert!(bell.is_armed());
            assert_eq!(count(), 0);
            bell.ring();
            bell.ring();
            assert_eq!((count(), bell.rings_total()), (1, 1));
            assert!(!bell.is_armed());
        }
    }

    #[test]
    fn of_two_registered_wakers_the_later_is_called() {
        for bell in every_kind() {
            let ((_, first, count), (_, second, later)) = (calls(), calls());
            bell.register(&first);
            bell.register(&second);
            bell.ring();
            assert_eq!((count(), later()), (0, 1));
        }
    }

    #[test]
    fn a_withdrawn_waker_is_dropped_and_not_called() {
        for bell in every_kind() {
            let (calls, waker, count) = calls();
            bell.register(&waker);
            drop(waker);
            bell.withdraw();
            assert!(!bell.is_armed());
            bell.ring();
            assert_eq!((count(), bell.rings_total()), (0, 0));
            // The one in hand and the one that counts.
            assert_eq!(std::sync::Arc::strong_count(&calls), 2);
        }
    }

    #[test]
    fn a_thread_may_park_where_a_task_has_waited() {
        for bell in every_kind() {
            let (_, waker, count) = calls();
            bell.register(&waker);
            bell.ring();
            bell.arm();
            bell.ring();
            assert!(bell.park(LONG));
            assert_eq!((count(), bell.rings_total()), (1, 2));
        }
    }
}
