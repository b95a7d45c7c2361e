//! The page of a bell as memory of two processes, and an eventfd to wake its owner.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, readlink};

use crate::doorbell::Doorbell;
use crate::segment::{Map, OpenError, Own, Pages, Role, Shape, WORDS_OFFSET, inspect};
use crate::sync::{AtomicU32, Ordering};

/// What the link of an eventfd in `/proc/self/fd` says.
const EVENTFD: &[u8] = b"anon_inode:[eventfd]";

/// The page in which the owner of a bell says whether it sleeps.
#[derive(Debug)]
pub(crate) struct Page {
    own: Own,
}

impl Page {
    /// A page that looks as if its owner slept, so that the first ring of a peer wakes it even if
    /// it went to sleep before the page was there.
    pub(crate) fn new() -> Result<Page, OpenError> {
        let (own, _) = Own::new(Role::Bell, Pages::Normal, Shape::words)?;
        let page = Page { own };
        page.epoch().store(1, Ordering::Relaxed);
        Ok(page)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.own.descriptor.as_fd()
    }

    pub(crate) fn epoch(&self) -> &AtomicU32 {
        epoch_of(&self.own.map)
    }
}

/// The page of another process, and what wakes its owner.
#[derive(Debug)]
pub(crate) struct Pull {
    map: Map,
    descriptor: OwnedFd,
}

impl Pull {
    pub(crate) fn epoch(&self) -> &AtomicU32 {
        epoch_of(&self.map)
    }

    pub(crate) fn pull(&self) {
        // The one error besides an interrupt is a full count, which is readable.
        let count = 1u64.to_ne_bytes();
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.descriptor, &count));
    }
}

impl Doorbell {
    /// Takes what the other process passed.
    pub(crate) fn open(page: OwnedFd, descriptor: OwnedFd) -> Result<Doorbell, OpenError> {
        check_eventfd(descriptor.as_fd())?;
        let (map, _) = inspect(page.as_fd(), Role::Bell, Shape::WORDS_BYTES_MAX)?;
        Ok(Doorbell::new(Pull { map, descriptor }))
    }
}

fn epoch_of(map: &Map) -> &AtomicU32 {
    let at = map.at(WORDS_OFFSET).cast::<AtomicU32>();
    // SAFETY: it is within the first page and aligned; it is accessed as an atomic by both sides
    // and lives as long as the mapping.
    unsafe { at.as_ref() }
}

/// A descriptor of another kind could block whoever rings, or do anything else with eight bytes.
fn check_eventfd(descriptor: BorrowedFd<'_>) -> Result<(), OpenError> {
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
