//! The stand-in of the model checker: the same words on the heap, and an arena of cells.

use crate::link::bounds::UNIT_BYTES;
use crate::link::words::{ConsumerWords, ProducerWords};
use crate::sync::{Arc, AtomicU64, UnsafeCell};

/// Both halves are in one process here and share it.
#[derive(Clone, Debug)]
pub(crate) struct ProducerSide(Arc<Memory>);

#[derive(Debug)]
struct Memory {
    words: ProducerWords,
    slots: Vec<AtomicU64>,
    arena: Vec<UnsafeCell<[u8; UNIT_BYTES]>>,
}

// SAFETY: the cells are accessed by the contracts of `read` and `write`, which the model checks.
unsafe impl Send for Memory {}
// SAFETY: as for Send.
unsafe impl Sync for Memory {}

impl ProducerSide {
    pub(crate) fn new(slots: usize, arena_bytes: usize) -> ProducerSide {
        assert!(slots.is_power_of_two() && arena_bytes.is_multiple_of(UNIT_BYTES));
        let units = arena_bytes / UNIT_BYTES;
        ProducerSide(Arc::new(Memory {
            words: ProducerWords::new(),
            slots: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            arena: (0..units)
                .map(|_| UnsafeCell::new([0; UNIT_BYTES]))
                .collect(),
        }))
    }

    pub(crate) fn words(&self) -> &ProducerWords {
        &self.0.words
    }

    pub(crate) fn slots(&self) -> u64 {
        self.0.slots.len() as u64
    }

    pub(crate) fn slot(&self, number: u64) -> &AtomicU64 {
        &self.0.slots[number as usize & (self.0.slots.len() - 1)]
    }

    pub(crate) fn arena_bytes(&self) -> usize {
        self.0.arena.len() * UNIT_BYTES
    }

    pub(crate) fn prefetch(&self, _offset: usize) {}

    /// Copies a message out.
    pub(crate) fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for unit in 0..len.div_ceil(UNIT_BYTES) {
            let index = (offset / UNIT_BYTES + unit) % self.0.arena.len();
            // SAFETY: the model fails if another thread writes.
            self.0.arena[index].with(|cell| bytes.extend_from_slice(unsafe { &*cell }));
        }
        bytes.truncate(len);
        bytes
    }

    /// Copies a message in.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        for (unit, piece) in bytes.chunks(UNIT_BYTES).enumerate() {
            let index = (offset / UNIT_BYTES + unit) % self.0.arena.len();
            self.0.arena[index].with_mut(|cell| {
                // SAFETY: the model fails if another thread reads or writes.
                unsafe { (&mut *cell)[..piece.len()].copy_from_slice(piece) };
            });
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ConsumerSide {
    words: Arc<ConsumerWords>,
}

impl ConsumerSide {
    pub(crate) fn new() -> ConsumerSide {
        ConsumerSide {
            words: Arc::new(ConsumerWords::new()),
        }
    }

    pub(crate) fn words(&self) -> &ConsumerWords {
        &self.words
    }
}
