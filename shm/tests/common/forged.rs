//! Segments as a peer would make them that does not keep to the rules, by the table of
//! docs/SHARED_MEMORY.md.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use ringway_shm::link::{Consumer, DESCRIPTORS, Incoming, Outgoing, Producer};
use ringway_shm::segment::OpenError;
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{bell, copies, small};

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"RINGWAYM");
pub(crate) const VERSION: u64 = 3;
pub(crate) const PRODUCER: u32 = 1;
pub(crate) const CONSUMER: u32 = 2;
pub(crate) const PAGE: u64 = 4096;
pub(crate) const RETURNS: u64 = 8192;
pub(crate) const SLOTS: u64 = 1024;
pub(crate) const ARENA: u64 = 256 << 10;
/// Where the arena of such a segment begins.
pub(crate) const ARENA_OFFSET: u64 = 4096 + SLOTS * 8;

pub(crate) const TAIL: usize = 256;
pub(crate) const LETTERS: usize = 264;
pub(crate) const NEWEST: usize = 280;
pub(crate) const LETTER: usize = 384;
pub(crate) const HEAD: usize = 256;
pub(crate) const FREED: usize = 264;
pub(crate) const PIN: usize = 272;
pub(crate) const LETTERS_TAKEN: usize = 280;
pub(crate) const FIRST_SLOT: usize = 4096;

/// All seals that a peer must have set.
pub(crate) fn all_seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL
}

/// The words of a header in order: magic, version and role, size, pages, slots, arena, rest.
pub(crate) fn producer_header() -> [u64; 8] {
    [
        MAGIC,
        VERSION | u64::from(PRODUCER) << 32,
        ARENA_OFFSET + ARENA,
        PAGE,
        SLOTS,
        ARENA_OFFSET,
        ARENA,
        0,
    ]
}

pub(crate) fn consumer_header() -> [u64; 8] {
    [
        MAGIC,
        VERSION | u64::from(CONSUMER) << 32,
        RETURNS,
        PAGE,
        0,
        0,
        0,
        0,
    ]
}

/// A segment that this process may write as it likes.
pub(crate) struct Forged {
    pub(crate) descriptor: OwnedFd,
    first: *mut AtomicU64,
    bytes: usize,
}

// SAFETY: it is a pointer to atomics that the mapping keeps.
unsafe impl Send for Forged {}
// SAFETY: as for Send.
unsafe impl Sync for Forged {}

impl Forged {
    pub(crate) fn new(header: [u64; 8], bytes: u64, seals: SealFlags) -> Forged {
        let descriptor = memfd_create("forged", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC);
        let descriptor = descriptor.unwrap();
        ftruncate(&descriptor, bytes).unwrap();
        fallocate(&descriptor, FallocateFlags::empty(), 0, bytes).unwrap();
        // SAFETY: the kernel chooses the place.
        let first = unsafe {
            mmap(
                ptr::null_mut(),
                bytes as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &descriptor,
                0,
            )
        };
        let forged = Forged {
            descriptor,
            first: first.unwrap().cast(),
            bytes: bytes as usize,
        };
        for (index, word) in header.into_iter().enumerate() {
            forged.set(8 * index, word);
        }
        fcntl_add_seals(&forged.descriptor, seals).unwrap();
        forged
    }

    pub(crate) fn producer() -> Forged {
        Forged::new(producer_header(), ARENA_OFFSET + ARENA, all_seals())
    }

    pub(crate) fn consumer() -> Forged {
        Forged::new(consumer_header(), RETURNS, all_seals())
    }

    /// The word at this offset.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.bytes);
        // SAFETY: it is within the mapping and aligned.
        unsafe { &*self.first.add(offset / 8) }
    }

    pub(crate) fn set(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Sets the word of a message.
    pub(crate) fn set_slot(&self, number: u64, kind: u32, len: u64) {
        let offset = FIRST_SLOT + 8 * (number % SLOTS) as usize;
        self.set(offset, u64::from(kind) << 32 | len);
    }

    /// How many words it has.
    pub(crate) fn words(&self) -> u64 {
        self.bytes as u64 / 8
    }

    /// What a consumer is passed in place of the descriptors of a good producer.
    pub(crate) fn try_consumer(&self, segment_bytes_max: usize) -> Result<Consumer, OpenError> {
        let good = Outgoing::new(&small(), &bell()).unwrap();
        let theirs = self.in_place_of(copies(good.descriptors()));
        Incoming::new(&bell())
            .unwrap()
            .meet(theirs, segment_bytes_max)
    }

    /// What a producer is passed in place of the descriptors of a good consumer.
    pub(crate) fn try_producer(&self) -> Result<Producer, OpenError> {
        let good = Incoming::new(&bell()).unwrap();
        let theirs = self.in_place_of(copies(good.descriptors()));
        Outgoing::new(&small(), &bell()).unwrap().meet(theirs)
    }

    fn in_place_of(&self, good: [OwnedFd; DESCRIPTORS]) -> [OwnedFd; DESCRIPTORS] {
        let [_, page, eventfd] = good;
        let segment = self.descriptor.as_fd().try_clone_to_owned().unwrap();
        [segment, page, eventfd]
    }
}

impl Drop for Forged {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        unsafe { munmap(self.first.cast(), self.bytes) }.unwrap();
    }
}
