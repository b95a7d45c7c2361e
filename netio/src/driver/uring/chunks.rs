//! Buffers that the kernel chooses from when something arrives.
//!
//! They are handed over through a ring of entries in memory that both sides see. The kernel
//! looks at it only while it works for the thread that owns the driver: inside of that thread's
//! own calls, or at their end. So entries and their count need to be written in order, but not
//! against another processor.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;

use crate::buffer::memory::Memory;

/// The one group of buffers in a ring.
const GROUP: u16 = 0;

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
        };
        for id in 0..count {
            ring.offer(id);
        }
        ring.publish();
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
        let mut returned = self.shelf.returned.take();
        if !returned.is_empty() {
            for id in returned.drain(..) {
                self.offer(id);
            }
            self.publish();
        }
        self.shelf.returned.replace(returned);
    }

    /// Whether enough buffers are with the kernel to go on after they were used up. One alone
    /// would be used up at once again.
    pub(super) fn is_fed(&self) -> bool {
        self.offered * 4 >= self.count
    }

    /// Whether handing over what came back would help those who wait for buffers.
    pub(super) fn would_be_fed(&self) -> bool {
        let returned = self.shelf.returned.borrow().len();
        (usize::from(self.offered) + returned) * 4 >= usize::from(self.count)
    }

    /// The first `len` bytes of a buffer that the kernel chose and has filled.
    pub(super) fn take(&mut self, id: u16, len: u32) -> RingChunk {
        assert!(
            id < self.count && len <= self.chunk_bytes && self.offered > 0,
            "a buffer that the kernel does not have"
        );
        self.offered -= 1;
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
