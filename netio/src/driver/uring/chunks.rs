//! Buffers that the kernel chooses from when something arrives.
//!
//! They are handed over through a ring of entries in memory that both sides see. The kernel
//! looks at it only while it works for the thread that owns the driver: inside of that thread's
//! own calls, or at their end. So entries and their count need to be written in order, but not
//! against another processor.
//!
//! The kernel takes buffers in the order in which it got them, so that with all of them it would
//! write to each in turn: to memory that was in no cache for a while. It has as many as are needed
//! at a time, and gets first what came back last.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;

use crate::buffer::memory::Memory;

/// The one group of buffers in a ring.
const GROUP: u16 = 0;

/// The kernel has so many buffers at least, as far as there are some.
const WANTED_MIN: u16 = 4;

/// After so many were used, it is asked whether the kernel needs all that it gets.
const USES_PER_LOOK: u16 = 256;

/// A buffer, as the kernel reads it. The last field of the first entry is the count of all
/// entries ever handed over.
#[repr(C)]
struct Entry {
    address: u64,
    len: u32,
    id: u16,
    tail: u16,
}

const _: () = assert!(size_of::<Entry>() == size_of::<io_uring::types::BufRingEntry>());

/// The ring of buffers, and which of them the kernel has.
pub(super) struct ChunkRing {
    entries: Memory,
    shelf: Rc<Shelf>,
    count: u16,
    chunk_bytes: u32,
    tail: u16,
    /// How many buffers the kernel has.
    offered: u16,
    /// How many it should have: all of them once it ran out, and half as many after each look that
    /// finds that fewer than that were used at a time.
    wanted: u16,
    /// The least that it had since the last look, and how many were used since then.
    offered_min: u16,
    uses: u16,
    /// Those that neither it nor the caller has, the one to be used first at the end.
    spare: Vec<u16>,
}

/// The memory of the buffers, and those that came back.
struct Shelf {
    memory: Memory,
    returned: RefCell<Vec<u16>>,
    /// How many buffers there are, and how many of them the caller has.
    count: u16,
    lent: Cell<u16>,
}

/// What arrived in one buffer, which goes back when this is dropped.
pub(in crate::driver) struct RingChunk {
    shelf: Rc<Shelf>,
    id: u16,
    start: NonNull<u8>,
    len: usize,
}

impl ChunkRing {
    /// `count` buffers, a power of two, of `chunk_bytes` bytes each. Their memory is taken when
    /// something arrives in it.
    pub(super) fn new(count: u16, chunk_bytes: u32) -> io::Result<Self> {
        assert!(count.is_power_of_two(), "a ring has a power of two");
        let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let entries = usize::from(count) * size_of::<Entry>();
        let buffers = usize::from(count) * chunk_bytes as usize;
        let mut ring = Self {
            entries: Memory::mapping(entries).ok_or_else(no_memory)?,
            shelf: Rc::new(Shelf {
                memory: Memory::mapping(buffers).ok_or_else(no_memory)?,
                returned: RefCell::new(Vec::with_capacity(usize::from(count))),
                count,
                lent: Cell::new(0),
            }),
            count,
            chunk_bytes,
            tail: 0,
            offered: 0,
            wanted: WANTED_MIN.min(count),
            offered_min: count,
            uses: 0,
            spare: (0..count).rev().collect(),
        };
        ring.supply();
        Ok(ring)
    }

    pub(super) fn group(&self) -> u16 {
        GROUP
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Where the entries are.
    pub(super) fn address(&self) -> u64 {
        self.entries.as_ptr().addr().get() as u64
    }

    /// Hands over again what came back.
    pub(super) fn recycle(&mut self) {
        self.spare.append(&mut self.shelf.returned.borrow_mut());
        self.supply();
    }

    /// Whether enough buffers are with the kernel to go on after they were used up. One alone
    /// would be used up at once again.
    pub(super) fn is_fed(&self) -> bool {
        self.offered * 4 >= self.wanted
    }

    /// Whether handing over what is there would help those who wait for buffers.
    pub(super) fn would_be_fed(&self) -> bool {
        let free = self.spare.len() + self.shelf.returned.borrow().len();
        (usize::from(self.offered) + free) * 4 >= usize::from(self.wanted)
    }

    /// The first `len` bytes of a buffer that the kernel chose and has filled.
    pub(super) fn take(&mut self, id: u16, len: u32) -> RingChunk {
        assert!(
            id < self.count && len <= self.chunk_bytes && self.offered > 0,
            "a buffer that the kernel does not have"
        );
        self.offered -= 1;
        self.count_use();
        self.shelf.lent.update(|lent| lent + 1);
        RingChunk {
            start: self.start(id),
            shelf: Rc::clone(&self.shelf),
            id,
            len: len as usize,
        }
    }

    fn start(&self, id: u16) -> NonNull<u8> {
        let offset = usize::from(id) * self.chunk_bytes as usize;
        // SAFETY: the memory has room for `count` buffers, and the identifier is below that.
        unsafe { self.shelf.memory.as_ptr().add(offset) }
    }

    /// Hands over what is wanted, as far as it is there.
    fn supply(&mut self) {
        if self.offered >= self.wanted || self.spare.is_empty() {
            return;
        }
        while self.offered < self.wanted
            && let Some(id) = self.spare.pop()
        {
            self.offer(id);
        }
        self.publish();
    }

    fn count_use(&mut self) {
        self.offered_min = self.offered_min.min(self.offered);
        self.uses += 1;
        if self.offered == 0 {
            self.wanted = self.count;
        }
        if self.uses == USES_PER_LOOK {
            if self.offered_min > self.wanted / 2 {
                self.wanted = (self.wanted / 2).max(WANTED_MIN.min(self.count));
            }
            (self.uses, self.offered_min) = (0, self.count);
        }
    }

    /// Writes an entry for a buffer that the kernel does not have.
    fn offer(&mut self, id: u16) {
        let address = self.start(id).addr().get() as u64;
        let index = usize::from(self.tail & (self.count - 1));
        // SAFETY: the index is below the number of entries, for which the memory has room and
        // is aligned. The kernel reads entries before the published count only, and this one
        // is beyond it, because at most `count` buffers are handed over. Writing the fields one
        // by one leaves the count alone, which shares the first entry. They are volatile, so
        // that the compiler leaves them where they are: before the count.
        unsafe {
            let entry = self.entries.as_ptr().cast::<Entry>().add(index).as_ptr();
            (&raw mut (*entry).address).write_volatile(address);
            (&raw mut (*entry).len).write_volatile(self.chunk_bytes);
            (&raw mut (*entry).id).write_volatile(id);
        }
        self.tail = self.tail.wrapping_add(1);
        self.offered += 1;
    }

    fn publish(&mut self) {
        // SAFETY: the first entry is there; its last field is ours to write, and read by the
        // kernel, see the head of this file.
        unsafe {
            let first = self.entries.as_ptr().cast::<Entry>().as_ptr();
            (&raw mut (*first).tail).write_volatile(self.tail);
        }
    }
}

impl RingChunk {
    /// Whether the callers have at most half of all buffers.
    pub(in crate::driver) fn is_spare(&self) -> bool {
        self.shelf.lent.get() <= self.shelf.count / 2
    }

    /// Leaves out the first `count` bytes.
    pub(super) fn skip(&mut self, count: usize) {
        assert!(count <= self.len, "beyond the chunk");
        // SAFETY: within the buffer, as just checked.
        self.start = unsafe { self.start.add(count) };
        self.len -= count;
    }
}

impl Deref for RingChunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are within a buffer of the memory that `shelf` keeps, and are
        // initialised, since a mapping begins as zeroes. The kernel does not write to the
        // buffer until it is offered again, which happens after this is dropped.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for RingChunk {
    fn drop(&mut self) {
        self.shelf.lent.update(|lent| lent - 1);
        self.shelf.returned.borrow_mut().push(self.id);
    }
}

/// Keeps the memory for ever, for when the kernel may still write to it.
impl ChunkRing {
    pub(super) fn leak(self) {
        mem::forget(Rc::clone(&self.shelf));
        mem::forget(self);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const COUNT: u16 = 64;

    /// Takes buffers as the kernel does, in the order in which it got them.
    struct Kernel {
        ring: ChunkRing,
        head: u16,
    }

    impl Kernel {
        fn new(count: u16) -> Self {
            let ring = ChunkRing::new(count, 4096).unwrap();
            Self { ring, head: 0 }
        }

        /// None where it has none left.
        fn fill(&mut self) -> Option<RingChunk> {
            if self.head == self.ring.tail {
                return None;
            }
            let index = usize::from(self.head % self.ring.count);
            // SAFETY: the index is below the number of entries, and nobody writes one meanwhile.
            let id = unsafe {
                (*self
                    .ring
                    .entries
                    .as_ptr()
                    .cast::<Entry>()
                    .add(index)
                    .as_ptr())
                .id
            };
            self.head = self.head.wrapping_add(1);
            Some(self.ring.take(id, 1))
        }

        /// Fills so many at a time, so many times, and says which were used.
        fn fill_often(&mut self, together: u16, times: u32) -> BTreeSet<u16> {
            let mut used = BTreeSet::new();
            for _ in 0..times {
                let chunks: Vec<_> = (0..together).map_while(|_| self.fill()).collect();
                used.extend(chunks.iter().map(|chunk| chunk.id));
                drop(chunks);
                self.ring.recycle();
            }
            used
        }
    }

    #[test]
    fn few_at_a_time_are_always_the_same() {
        let mut kernel = Kernel::new(COUNT);
        assert_eq!(kernel.fill_often(1, 1000).len(), usize::from(WANTED_MIN));
        assert_eq!(kernel.fill_often(2, 1000).len(), usize::from(WANTED_MIN));
    }

    #[test]
    fn whoever_runs_out_gets_all_and_later_no_more_than_is_used() {
        let mut kernel = Kernel::new(COUNT);
        kernel.fill_often(10, 1);
        let all: Vec<_> = (0..COUNT).map_while(|_| kernel.fill()).collect();
        assert_eq!(all.len(), usize::from(COUNT), "after it ran out once");
        assert!(!kernel.ring.is_fed());
        assert!(!kernel.ring.would_be_fed(), "the caller has all");
        drop(all);
        assert!(kernel.ring.would_be_fed());
        kernel.ring.recycle();
        assert!(kernel.ring.is_fed());

        kernel.fill_often(10, 1000);
        let used = kernel.fill_often(10, 1000).len();
        assert!((10..=32).contains(&used), "{used} for ten at a time");
        let chunks: Vec<_> = (0..10).map_while(|_| kernel.fill()).collect();
        assert_eq!(chunks.len(), 10, "and it does not run out");
        drop(chunks);

        kernel.fill_often(1, 2000);
        assert_eq!(kernel.fill_often(1, 1000).len(), usize::from(WANTED_MIN));
    }

    #[test]
    fn of_two_the_kernel_has_both() {
        let mut kernel = Kernel::new(2);
        assert_eq!(kernel.fill_often(1, 10).len(), 2);
        assert_eq!(kernel.fill_often(2, 1000).len(), 2);
    }
}
