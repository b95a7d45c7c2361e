//! A bell that another process may ring, and the other process's side of it.
//!
//! Nobody writes into the memory of another, so a ring can't take the mark of
//! the sleeper away. Instead the owner counts: the epoch in its page is odd
//! while it sleeps or is about to, and who rings remembers for which epoch it
//! has rung already, so that one sleep costs a ringer one system call at most.

use core::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, readlink};

use crate::barrier::Global;
use crate::segment::{Map, OpenError, Own, Pages, Role, Shape, inspect};
use crate::sync::{AtomicU32, Ordering};

/// Where the epoch stands in the page of a bell.
const EPOCH_OFFSET: usize = 256;

/// Set in the header where the owner executes the barrier of both sides.
const FLAG_ASYMMETRIC: u64 = 1;

/// A bell's page is one page of any size.
const PAGE_BYTES_MAX: u64 = 1 << 30;

/// What the link of a file in `/proc/self/fd` says for an eventfd.
const EVENTFD: &[u8] = b"anon_inode:[eventfd]";

/// The page in which the owner of a bell says whether it sleeps.
#[derive(Debug)]
pub(crate) struct Page {
    own: Own,
    barrier: Global,
}

impl Page {
    /// A page that looks as if its owner slept, so that the first ring of a peer wakes it even if
    /// it went to sleep before the page was there.
    pub(crate) fn new() -> Result<Page, OpenError> {
        let barrier = Global::detect();
        let flags = if barrier.is_asymmetric() {
            FLAG_ASYMMETRIC
        } else {
            0
        };
        let (own, _) = Own::new(Role::Bell, flags, Pages::Normal, Shape::words)?;
        let page = Page { own, barrier };
        page.epoch().store(1, Ordering::Relaxed);
        Ok(page)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.own.descriptor.as_fd()
    }

    pub(crate) fn barrier(&self) -> Global {
        self.barrier
    }

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

    fn epoch(&self) -> &AtomicU32 {
        epoch_of(&self.own.map)
    }
}

/// What rings the bell of another process.
pub(crate) struct Doorbell {
    map: Map,
    descriptor: OwnedFd,
    barrier: Global,
    /// The epoch that was rung for last; 0, which is even, is none.
    rung: u32,
    rings: u64,
}

impl Doorbell {
    /// Takes what the other process passed.
    pub(crate) fn new(page: OwnedFd, descriptor: OwnedFd) -> Result<Doorbell, OpenError> {
        check_eventfd(descriptor.as_fd())?;
        let (map, _, flags) = inspect(page.as_fd(), Role::Bell, PAGE_BYTES_MAX)?;
        let barrier = Global::detect().with_owner(flags & FLAG_ASYMMETRIC != 0);
        Ok(Doorbell {
            map,
            descriptor,
            barrier,
            rung: 0,
            rings: 0,
        })
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
        self.barrier.light();
        let epoch = epoch_of(&self.map).load(Ordering::Relaxed);
        epoch & 1 == 1 && epoch != self.rung
    }

    /// How many times a ring really woke the owner.
    pub(crate) fn rings_total(&self) -> u64 {
        self.rings
    }

    #[cold]
    pub(crate) fn wake(&mut self) {
        self.rung = epoch_of(&self.map).load(Ordering::Relaxed) | 1;
        self.rings += 1;
        // The one error besides an interrupt is a full count, which is readable.
        let count = 1u64.to_ne_bytes();
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.descriptor, &count));
    }
}

impl fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doorbell")
            .field("descriptor", &self.descriptor)
            .field("rings", &self.rings)
            .finish_non_exhaustive()
    }
}

fn epoch_of(map: &Map) -> &AtomicU32 {
    let at = map.at(EPOCH_OFFSET).cast::<AtomicU32>();
    // SAFETY: it is within the first page and aligned; it is accessed as an atomic by both sides
    // and lives as long as the mapping.
    unsafe { at.as_ref() }
}

/// A descriptor of another kind could block whoever rings, or do anything else with eight bytes.
fn check_eventfd(descriptor: BorrowedFd<'_>) -> Result<(), OpenError> {
    use std::os::fd::AsRawFd;
    let failed = |call| move |errno| OpenError::from_call(call, 0, errno);
    let flags = fcntl_getfl(descriptor).map_err(failed("fcntl(F_GETFL)"))?;
    if !flags.contains(OFlags::RDWR | OFlags::NONBLOCK) {
        return Err(OpenError::NotABell {
            found: format!("it is opened with {flags:?}"),
        });
    }
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let target = readlink(path, Vec::new()).map_err(failed("readlink(/proc/self/fd)"))?;
    if target.as_bytes() != EVENTFD {
        return Err(OpenError::NotABell {
            found: target.to_string_lossy().into_owned(),
        });
    }
    Ok(())
}
