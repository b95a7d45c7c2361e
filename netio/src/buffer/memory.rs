//! Memory that bodies lie in: initialised, aligned, given back when it is dropped.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::{AHEAD_BYTES_MAX, BODY_ALIGNMENT};

/// Below this length memory is a part of an allocation that is aligned as any is. Allocators
/// have those at hand; for one that is aligned further they search and split, which takes a
/// microsecond where the thread has just slept.
const SHIFTED_BYTES_MAX: usize = 4 << 10;

/// What every allocation is aligned to.
const USUAL_ALIGNMENT: usize = 16;

/// Initialised bytes at a multiple of [`BODY_ALIGNMENT`].
pub(crate) struct Memory {
    pointer: NonNull<u8>,
    bytes: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Allocated and zeroed.
    Heap,
    /// The same, in an allocation that begins so many bytes before.
    Shifted(usize),
    /// A private mapping, whose pages the kernel adds, zeroed, as they are touched.
    Mapping,
}

impl Memory {
    /// Memory for `bytes` bytes of which none has come: all of them on the heap, or, for more
    /// than may be allocated ahead, address space, or, where the system has none to reserve,
    /// room for the first of them on the heap.
    pub(super) fn ahead(bytes: usize) -> Self {
        if bytes <= AHEAD_BYTES_MAX {
            return Self::heap(bytes);
        }
        Self::mapping(bytes).unwrap_or_else(|| Self::heap(AHEAD_BYTES_MAX))
    }

    /// Zeroed bytes on the heap.
    pub(super) fn heap(bytes: usize) -> Self {
        if (1..SHIFTED_BYTES_MAX).contains(&bytes) {
            return Self::shifted(bytes);
        }
        let layout = layout(bytes);
        let pointer = if bytes == 0 {
            Some(NonNull::<Aligned>::dangling().cast())
        } else {
            // SAFETY: the layout has a size above zero.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        let Some(pointer) = pointer else {
            handle_alloc_error(layout)
        };
        Self {
            pointer,
            bytes,
            kind: Kind::Heap,
        }
    }

    /// Zeroed bytes on the heap, few of them.
    fn shifted(bytes: usize) -> Self {
        let layout = shifted_layout(bytes);
        // SAFETY: the layout has a size above zero.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        let shift = base.as_ptr().addr().wrapping_neg() % BODY_ALIGNMENT;
        // SAFETY: the shift is a multiple of the alignment of the allocation and less than that of
        // bodies, so there are `bytes` bytes behind it; they are written before anything reads
        // them.
        let pointer = unsafe {
            let pointer = base.add(shift);
            pointer.write_bytes(0, bytes);
            pointer
        };
        Self {
            pointer,
            bytes,
            kind: Kind::Shifted(shift),
        }
    }

    /// Address space of `bytes` bytes, that takes memory as it is touched. `None` where the
    /// system refuses, such as under a limit of address space or without overcommitment.
    pub(crate) fn mapping(bytes: usize) -> Option<Self> {
        // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing.
        let mapped = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        let mapped = mapped.ok()?;
        // Pages of 2 MiB would be memory far ahead of the bytes. Kernels without such pages
        // refuse the advice, and need none.
        // SAFETY: exactly the mapping that was made above; the advice changes no content.
        let _ = unsafe { madvise(mapped, bytes, Advice::LinuxNoHugepage) };
        Some(Self {
            pointer: NonNull::new(mapped.cast())?,
            bytes,
            kind: Kind::Mapping,
        })
    }

    /// Where it begins: at a page for a mapping, at a multiple of [`BODY_ALIGNMENT`] in any case.
    pub(crate) fn as_ptr(&self) -> NonNull<u8> {
        self.pointer
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it takes memory only where it is touched.
    pub(super) fn is_lazy(&self) -> bool {
        self.kind == Kind::Mapping
    }

    /// Makes room for more than the `filled` bytes that it is full of, for `wanted` in the end:
    /// at most [`AHEAD_BYTES_MAX`] more, by copying. Only memory on the heap is ever full
    /// before the end.
    pub(super) fn grow(&mut self, filled: usize, wanted: usize) {
        let mut larger = Self::heap(wanted.min(filled + AHEAD_BYTES_MAX));
        larger.as_mut_slice()[..filled].copy_from_slice(&self.as_slice()[..filled]);
        *self = larger;
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        // SAFETY: the pointer is to `bytes` bytes, aligned or dangling for none, that were
        // zeroed when they were taken and are owned by this value alone.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.bytes) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the exclusive borrow of the owner makes this the only one.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.kind {
            Kind::Heap if self.bytes == 0 => {}
            // SAFETY: allocated in `heap` with this very layout, and given back once.
            Kind::Heap => unsafe { dealloc(self.pointer.as_ptr(), layout(self.bytes)) },
            // SAFETY: allocated in `shifted` with this very layout, so many bytes before, and given
            // back once.
            Kind::Shifted(shift) => unsafe {
                dealloc(self.pointer.as_ptr().sub(shift), shifted_layout(self.bytes));
            },
            Kind::Mapping => {
                // SAFETY: mapped in `mapping` with this length, and nothing borrows from it
                // any more. Unmapping a whole mapping of one's own does not fail.
                let unmapped = unsafe { munmap(self.pointer.as_ptr().cast(), self.bytes) };
                debug_assert!(unmapped.is_ok(), "a mapping of one's own can be unmapped");
            }
        }
    }
}

// SAFETY: the memory is owned by this value alone, and may be read, written and given back on
// any thread.
unsafe impl Send for Memory {}

// SAFETY: a shared reference only reads.
unsafe impl Sync for Memory {}

/// So aligned is the address of no bytes.
#[repr(align(64))]
struct Aligned;

const _: () = assert!(align_of::<Aligned>() == BODY_ALIGNMENT);

fn layout(bytes: usize) -> Layout {
    // Invariant: lengths on the heap are at most that of a body, which is a `u32` on the wire.
    Layout::from_size_align(bytes, BODY_ALIGNMENT).expect("a length below isize::MAX")
}

/// Of an allocation in which so many bytes are aligned, wherever it begins.
fn shifted_layout(bytes: usize) -> Layout {
    let whole = bytes + BODY_ALIGNMENT - USUAL_ALIGNMENT;
    // Invariant: `bytes` are few.
    Layout::from_size_align(whole, USUAL_ALIGNMENT).expect("a length below isize::MAX")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// How much of a mapping has been touched, from the kernel's own account.
    pub(in crate::buffer) fn resident_bytes_of(memory: &Memory) -> usize {
        let start = memory.pointer.as_ptr().addr();
        let end = start + memory.bytes;
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut inside, mut sum) = (false, 0);
        for line in smaps.lines() {
            let first = line.split(' ').next().unwrap();
            if let Some((from, to)) = first.split_once('-') {
                let [from, to] = [from, to].map(|text| usize::from_str_radix(text, 16).unwrap());
                // Neighbouring mappings are merged in this account, so an overlap counts.
                inside = from < end && start < to;
            } else if inside && first == "Rss:" {
                let kib = line.split_whitespace().nth(1).unwrap();
                sum += kib.parse::<usize>().unwrap() << 10;
            }
        }
        sum
    }

    #[test]
    fn memory_is_zeroed_and_touched_only_where_it_is_written() {
        let mut memory = Memory::mapping(64 << 20).unwrap();
        assert!(memory.is_lazy());
        memory.as_mut_slice()[5 << 20] = 1;
        assert_eq!(memory.as_slice()[(5 << 20) + 1], 0);
        assert!(Memory::heap(1000).as_slice().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn memory_is_aligned_and_zeroed_also_where_another_lay_before() {
        for round in 0..20 {
            // Several at a time, so that they begin at different places of an allocation.
            let mut kept = Vec::new();
            for bytes in [
                1,
                15,
                16,
                17,
                328,
                1000,
                SHIFTED_BYTES_MAX - 1,
                SHIFTED_BYTES_MAX,
            ] {
                let mut memory = Memory::heap(bytes);
                let address = memory.as_ptr().as_ptr().addr();
                assert!(address.is_multiple_of(BODY_ALIGNMENT), "{round}: {bytes}");
                assert_eq!(memory.as_slice(), vec![0; bytes]);
                memory.as_mut_slice().fill(0xff);
                kept.push(memory);
            }
            assert!(
                kept.iter()
                    .all(|memory| memory.as_slice().iter().all(|byte| *byte == 0xff))
            );
        }
    }

    #[test]
    fn a_length_that_no_system_has_is_no_mapping() {
        assert!(Memory::mapping(1 << 60).is_none());
    }
}
