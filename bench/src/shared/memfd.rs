//! A ring as one would write it by hand over a mapped memfd: slots of one size, a position on
//! either side, nothing checked and nothing kept. It is the limit that the link is held to, so it
//! stands here and not with the code that is used.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex::{Flags, wait, wake};

use crate::backoff::Backoff;
use crate::error::BenchError;

use super::{WayIn, WayOut, messages_of, published_together, slot_bytes_of};

/// Where the words lie: lines are fetched in pairs, so each has two for itself.
const TAIL_AT: usize = 0;
const HEAD_AT: usize = 128;
const SLOTS_AT: usize = 4096;

/// How bytes are copied into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// Through the caches.
    Plain,
    /// Past them.
    Streaming,
}

/// Memory of a memfd, mapped until it is dropped.
struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    descriptor: OwnedFd,
}

// SAFETY: the mapping belongs to the process, not to a thread; it is accessed only as its users
// below argue, whichever thread has them.
unsafe impl Send for Memory {}

impl Memory {
    fn make(bytes: usize) -> Result<Self, BenchError> {
        let descriptor = memfd_create("ringway-bench", MemfdFlags::CLOEXEC)?;
        ftruncate(&descriptor, bytes as u64)?;
        Self::map(descriptor, bytes)
    }

    fn map(descriptor: OwnedFd, bytes: usize) -> Result<Self, BenchError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Present from the start: what a first access costs is not what is measured.
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a mapping at a place of the kernel's choice replaces none, and nobody shortens
        // the file: both processes are this program.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, flags, &descriptor, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| BenchError::new("mapped nothing"))?;
        Ok(Self {
            start,
            bytes,
            descriptor,
        })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes);
        // SAFETY: it lies in the mapping, which lives as long as `self`, is aligned, and is
        // accessed as an atomic by everybody.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    fn half_word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.bytes);
        // SAFETY: as for `word`.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// # Safety
    /// Nobody else accesses these bytes as long as the slice lives.
    #[inline]
    unsafe fn slot(&mut self, at: usize, bytes: usize) -> &mut [u8] {
        debug_assert!(at + bytes <= self.bytes);
        // SAFETY: they lie in the mapping, and nobody else accesses them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and every reference into it borrows from `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

/// What both ends know.
#[derive(Clone, Copy)]
struct Shape {
    message_bytes: usize,
    slot_bytes: usize,
    slots: u64,
    together: u64,
}

impl Shape {
    fn of(message_bytes: usize) -> Self {
        let slots = messages_of(message_bytes) as u64;
        // A power of two, so that a position becomes a slot without a division.
        let slots = 1 << slots.ilog2();
        Self {
            message_bytes,
            slot_bytes: slot_bytes_of(message_bytes),
            slots,
            together: published_together(message_bytes).min(slots / 2).max(1),
        }
    }

    fn bytes(self) -> usize {
        SLOTS_AT + self.slots as usize * self.slot_bytes
    }

    #[inline]
    fn at(self, position: u64) -> usize {
        SLOTS_AT + (position & (self.slots - 1)) as usize * self.slot_bytes
    }
}

/// The end that writes.
pub(crate) struct RingIn {
    memory: Memory,
    shape: Shape,
    copied: Copied,
    tail: u64,
    published: u64,
    /// What the other end had taken when it was looked last.
    head: u64,
}

/// The end that reads.
pub(crate) struct RingOut {
    memory: Memory,
    shape: Shape,
    head: u64,
    given_back: u64,
    /// What the other end had published when it was looked last.
    tail: u64,
    backoff: Backoff,
}

impl RingIn {
    /// A ring for messages of one size, of which this is one end.
    ///
    /// # Errors
    /// When there is no memory.
    pub(crate) fn make(message_bytes: usize, copied: Copied) -> Result<Self, BenchError> {
        let memory = Memory::make(Shape::of(message_bytes).bytes())?;
        Ok(Self::over(memory, message_bytes, copied))
    }

    /// This end of a ring that the other process has made.
    ///
    /// # Errors
    /// When it can't be mapped.
    pub(crate) fn of(memory: OwnedFd, message_bytes: usize) -> Result<Self, BenchError> {
        let memory = Memory::map(memory, Shape::of(message_bytes).bytes())?;
        Ok(Self::over(memory, message_bytes, Copied::Plain))
    }

    /// What to pass to the other process.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory.descriptor.as_fd()
    }

    fn over(memory: Memory, message_bytes: usize, copied: Copied) -> Self {
        Self {
            memory,
            shape: Shape::of(message_bytes),
            copied,
            tail: 0,
            published: 0,
            head: 0,
        }
    }

    #[cold]
    fn wait_for_room(&mut self) {
        self.publish();
        let mut backoff = Backoff::light();
        while self.tail - self.head == self.shape.slots {
            backoff.pause();
            self.head = self.memory.word(HEAD_AT).load(Ordering::Acquire);
        }
    }
}

impl WayIn for RingIn {
    #[inline]
    fn push(&mut self, message: &[u8]) -> Result<(), BenchError> {
        assert_eq!(message.len(), self.shape.message_bytes);
        if self.tail - self.head == self.shape.slots {
            self.wait_for_room();
        }
        let at = self.shape.at(self.tail);
        // SAFETY: the reader has given the slot back, and sees it again once it is published.
        let slot = unsafe { self.memory.slot(at, message.len()) };
        match self.copied {
            Copied::Plain => slot.copy_from_slice(message),
            Copied::Streaming => copy_streaming(slot, message),
        }
        self.tail += 1;
        if self.tail - self.published >= self.shape.together {
            self.publish();
        }
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
        self.published = self.tail;
        // Release pairs with the Acquire in `RingOut::pop`.
        self.memory
            .word(TAIL_AT)
            .store(self.tail, Ordering::Release);
    }
}

impl RingOut {
    /// As [`RingIn::make`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn make(message_bytes: usize) -> Result<Self, BenchError> {
        let memory = Memory::make(Shape::of(message_bytes).bytes())?;
        Ok(Self::over(memory, message_bytes))
    }

    /// As [`RingIn::of`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn of(memory: OwnedFd, message_bytes: usize) -> Result<Self, BenchError> {
        let memory = Memory::map(memory, Shape::of(message_bytes).bytes())?;
        Ok(Self::over(memory, message_bytes))
    }

    /// What to pass to the other process.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory.descriptor.as_fd()
    }

    fn over(memory: Memory, message_bytes: usize) -> Self {
        Self {
            memory,
            shape: Shape::of(message_bytes),
            head: 0,
            given_back: 0,
            tail: 0,
            backoff: Backoff::light(),
        }
    }

    /// Looks without letting more and more time pass in between.
    pub(crate) fn impatient(mut self) -> Self {
        self.backoff = Backoff::spin();
        self
    }

    fn give_back(&mut self) {
        self.given_back = self.head;
        // Release pairs with the Acquire in `RingIn::wait_for_room`.
        self.memory
            .word(HEAD_AT)
            .store(self.head, Ordering::Release);
    }
}

impl WayOut for RingOut {
    #[inline]
    fn pop(&mut self, read: impl FnOnce(&[u8])) -> Result<bool, BenchError> {
        if self.head == self.tail {
            self.tail = self.memory.word(TAIL_AT).load(Ordering::Acquire);
            if self.head == self.tail {
                if self.given_back != self.head {
                    self.give_back();
                }
                return Ok(false);
            }
        }
        let at = self.shape.at(self.head);
        // SAFETY: it is published, and the writer leaves it alone until it is given back.
        read(unsafe { self.memory.slot(at, self.shape.message_bytes) });
        self.head += 1;
        self.backoff.reset();
        if self.head - self.given_back >= self.shape.together {
            self.give_back();
        }
        Ok(true)
    }

    #[inline]
    fn wait(&mut self) -> Result<(), BenchError> {
        self.backoff.pause();
        Ok(())
    }
}

/// Two words that two processes sleep on in turn: what a wake-up there and back takes at least.
pub(crate) struct WakeUps(Memory);

impl WakeUps {
    /// # Errors
    /// When there is no memory.
    pub(crate) fn make() -> Result<Self, BenchError> {
        Ok(Self(Memory::make(SLOTS_AT)?))
    }

    /// # Errors
    /// When it can't be mapped.
    pub(crate) fn of(memory: OwnedFd) -> Result<Self, BenchError> {
        Ok(Self(Memory::map(memory, SLOTS_AT)?))
    }

    /// What to pass to the other process.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }

    /// Wakes the other process, and sleeps until it answers.
    pub(crate) fn ask(&self, number: u32) {
        set(self.0.half_word(TAIL_AT), number);
        sleep_until(self.0.half_word(HEAD_AT), number);
    }

    /// Sleeps until the other process asks, and wakes it.
    pub(crate) fn answer(&self, number: u32) {
        sleep_until(self.0.half_word(TAIL_AT), number);
        set(self.0.half_word(HEAD_AT), number);
    }
}

fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    // It fails for addresses that are no futex only.
    let _ = wake(word, Flags::empty(), 1);
}

fn sleep_until(word: &AtomicU32, value: u32) {
    loop {
        let now = word.load(Ordering::Acquire);
        if now == value {
            return;
        }
        // Every error means that the word is to be looked at again.
        let _ = wait(word, Flags::empty(), now, None);
    }
}

/// Copies past the caches, and lets that settle.
#[cfg(target_arch = "x86_64")]
fn copy_streaming(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    assert!(to.len() == from.len() && to.as_ptr().cast::<__m128i>().is_aligned());
    let (lanes, rest) = to.as_chunks_mut::<16>();
    let (from_lanes, from_rest) = from.as_chunks::<16>();
    for (to, from) in lanes.iter_mut().zip(from_lanes) {
        // SAFETY: both are a lane long, and the first of those that are written is aligned, so
        // all are.
        unsafe {
            let lane = _mm_loadu_si128(from.as_ptr().cast());
            _mm_stream_si128(to.as_mut_ptr().cast(), lane);
        }
    }
    rest.copy_from_slice(from_rest);
    // SAFETY: every x86_64 has it, and it accesses nothing.
    unsafe { _mm_sfence() };
}

/// There are none.
#[cfg(not(target_arch = "x86_64"))]
fn copy_streaming(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_of_the_ring_as_they_went_in() {
        for (bytes, copied) in [(64, Copied::Plain), (5000, Copied::Streaming)] {
            let mut ring = RingIn::make(bytes, copied).unwrap();
            let memory = ring.descriptor().as_fd().try_clone_to_owned().unwrap();
            let mut out = RingOut::of(memory, bytes).unwrap();
            for number in 0..5_000_u64 {
                let message = vec![number as u8; bytes];
                ring.push(&message).unwrap();
                ring.publish();
                let mut is_same = false;
                assert!(out.pop(|came| is_same = came == message).unwrap());
                assert!(is_same, "message {number}");
                assert!(!out.pop(|_| ()).unwrap());
            }
        }
    }
}
