//! A segment in the address space.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::segment::memory::Shape;

/// The mapping of a whole segment. Behind it lies its arena once more, so that what begins near
/// the end of the arena and goes on at its beginning is one piece.
///
/// It stays as it is until it is dropped: whoever holds a reference may access the memory, in the
/// way that it was mapped.
#[derive(Debug)]
pub(crate) struct Map {
    /// What was reserved: the mapping and, for huge pages, what their alignment left over.
    reserved: NonNull<c_void>,
    reserved_bytes: usize,
    first: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; what may be done with its memory,
// and when, is up to those who access it.
unsafe impl Send for Map {}
// SAFETY: as for Send.
unsafe impl Sync for Map {}

impl Map {
    /// Maps a segment of this shape, its pages present.
    pub(crate) fn new(
        descriptor: BorrowedFd<'_>,
        shape: &Shape,
        writable: bool,
    ) -> Result<Map, Errno> {
        let bytes = shape.segment_bytes + shape.arena_bytes;
        // Huge pages lie at multiples of their size.
        let reserved_bytes = bytes + shape.page_bytes;
        // SAFETY: the kernel chooses the place, so nothing that exists is mapped over.
        let reserved = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                reserved_bytes,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let reserved = NonNull::new(reserved).ok_or(Errno::NOMEM)?;
        let first = reserved.cast::<u8>();
        let skipped = first.as_ptr().align_offset(shape.page_bytes);
        // SAFETY: what is skipped is less than a page, and a page more than needed was reserved.
        let first = unsafe { first.add(skipped) };
        let map = Map {
            reserved,
            reserved_bytes,
            first,
            bytes,
        };
        map.place(descriptor, 0, 0, shape.segment_bytes, writable)?;
        if shape.arena_bytes > 0 {
            let again = shape.segment_bytes;
            map.place(
                descriptor,
                again,
                shape.arena_offset,
                shape.arena_bytes,
                writable,
            )?;
        }
        Ok(map)
    }

    /// The byte at `offset`, which must be within the mapping.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.bytes);
        // SAFETY: by the contract the offset is within the mapping, which is one allocation.
        unsafe { self.first.add(offset) }
    }

    /// Maps a part of the file at `place`, counted from the beginning of the mapping.
    fn place(
        &self,
        descriptor: BorrowedFd<'_>,
        place: usize,
        offset: usize,
        bytes: usize,
        writable: bool,
    ) -> Result<(), Errno> {
        let protection = if writable {
            ProtFlags::READ | ProtFlags::WRITE
        } else {
            ProtFlags::READ
        };
        // Present at once, so that no message waits for a page of its own to be looked up.
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
        let at = self.at(place).as_ptr().cast();
        // SAFETY: the range was reserved by `new` and nothing refers to it yet.
        unsafe { mmap(at, bytes, protection, flags, descriptor, offset as u64) }?;
        Ok(())
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // It fails for ranges that are not pages only, and this one is.
        // SAFETY: whoever accessed the memory held a reference, and there is none left.
        let _ = unsafe { munmap(self.reserved.as_ptr(), self.reserved_bytes) };
    }
}
