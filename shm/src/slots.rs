//! The slots of a ring, reached by position.

#[cfg(not(loom))]
use core::alloc::Layout;
use core::mem::MaybeUninit;
#[cfg(not(loom))]
use core::ptr::NonNull;

use crate::sync::UnsafeCell;

/// Where the slots begin: at a pair of cache lines, so that an element of 64 bytes lies in one
/// line and no two neighbours share it.
#[cfg(not(loom))]
const ALIGNMENT_BYTES: usize = 128;

/// The memory of the slots. No store has touched it when it is new: an edge that is never used
/// takes address space only, and memory page by page as its slots are first written.
#[cfg(not(loom))]
pub(crate) struct Storage<T> {
    first: NonNull<UnsafeCell<MaybeUninit<T>>>,
    count: usize,
}

/// Loom's cells have state of their own, so each must be made.
#[cfg(loom)]
pub(crate) struct Storage<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

/// Makes slots for at least `capacity` elements: a power of two, so that a
/// position is turned into an index by a mask.
pub(crate) fn allocate<T>(capacity: usize) -> Storage<T> {
    assert!(capacity > 0, "a ring needs room for at least one element");
    let count = capacity.checked_next_power_of_two();
    let count = count.expect("the capacity of a ring is above the address space");
    Storage::new(count)
}

#[cfg(not(loom))]
impl<T> Storage<T> {
    fn new(count: usize) -> Storage<T> {
        let layout = Self::layout(count);
        if layout.size() == 0 {
            return Storage {
                first: NonNull::dangling(),
                count,
            };
        }
        // SAFETY: the layout has a size.
        let memory = unsafe { std::alloc::alloc(layout) };
        let Some(first) = NonNull::new(memory.cast()) else {
            std::alloc::handle_alloc_error(layout);
        };
        Storage { first, count }
    }

    fn layout(count: usize) -> Layout {
        let layout = Layout::array::<UnsafeCell<MaybeUninit<T>>>(count);
        let aligned = layout.and_then(|layout| layout.align_to(ALIGNMENT_BYTES));
        aligned.expect("the slots of a ring are above the address space")
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[UnsafeCell<MaybeUninit<T>>] {
        // SAFETY: the memory holds `count` cells for as long as `self` lives, and a cell of
        // `MaybeUninit` is valid whatever its bytes are.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

#[cfg(not(loom))]
impl<T> Drop for Storage<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.count);
        if layout.size() > 0 {
            // SAFETY: it was allocated with this layout, and nothing refers to it any more.
            unsafe { std::alloc::dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}

#[cfg(loom)]
impl<T> Storage<T> {
    fn new(count: usize) -> Storage<T> {
        let slots = (0..count).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
        Storage {
            slots: slots.collect(),
        }
    }

    pub(crate) fn as_slice(&self) -> &[UnsafeCell<MaybeUninit<T>>] {
        &self.slots
    }
}

/// A view of the slots, to be kept in registers by a loop over many.
pub(crate) struct Slots<'a, T> {
    slots: &'a [UnsafeCell<MaybeUninit<T>>],
    mask: u64,
}

impl<'a, T> Slots<'a, T> {
    #[inline]
    pub(crate) fn new(slots: &'a [UnsafeCell<MaybeUninit<T>>]) -> Slots<'a, T> {
        debug_assert!(slots.len().is_power_of_two());
        Slots {
            slots,
            mask: slots.len() as u64 - 1,
        }
    }

    /// Puts a value into the slot of `position`.
    ///
    /// # Safety
    ///
    /// The caller holds the producer, `position` is not published, and the
    /// consumer has published that it read `position - capacity`.
    #[inline]
    pub(crate) unsafe fn write(self, position: u64, value: T) {
        self.slot(position).with_mut(|slot| {
            // SAFETY: by the contract the slot belongs to the caller alone.
            unsafe { (*slot).write(value) };
        });
    }

    /// The slots from `position` on that lie side by side in memory, at most `max`, so that a
    /// loop over many computes no index.
    #[inline]
    pub(crate) fn run(self, position: u64, max: u64) -> &'a [UnsafeCell<MaybeUninit<T>>] {
        let index = (position & self.mask) as usize;
        let length = max.min(self.slots.len() as u64 - index as u64) as usize;
        &self.slots[index..index + length]
    }

    /// Moves the value out of the slot of `position`.
    ///
    /// # Safety
    ///
    /// The caller holds the consumer, `position` was seen as published, and it
    /// is read once only.
    #[inline]
    pub(crate) unsafe fn read(self, position: u64) -> T {
        let slot = self.slot(position);
        // SAFETY: by the contract the slot is initialised and the caller's.
        slot.with(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Looks at the value in the slot of `position`.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read), and the slot is not given back while the
    /// reference lives.
    #[inline]
    pub(crate) unsafe fn look(self, position: u64) -> &'a T {
        let slot = self.slot(position);
        // SAFETY: by the contract the slot is initialised and stays so.
        slot.with(|slot| unsafe { (*slot).assume_init_ref() })
    }

    #[inline]
    fn slot(self, position: u64) -> &'a UnsafeCell<MaybeUninit<T>> {
        let index = (position & self.mask) as usize;
        // SAFETY: the number of slots is mask + 1, so the index is below it.
        unsafe { self.slots.get_unchecked(index) }
    }
}

impl<T> Clone for Slots<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<'_, T> {}
