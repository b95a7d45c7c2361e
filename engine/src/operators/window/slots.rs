//! Where the state of a key in a pane is.

use crate::operators::aggregate::KeyInterner;

/// Keys of a page: small, so that a pane with few keys of many takes little.
const PAGE_KEYS: usize = 256;

/// The first keys, which most panes have, are in one array, that grows with them.
const FIRST_KEYS: usize = 4096;

/// Stands for a key that has no slot.
const NO_SLOT: u32 = u32::MAX;

/// The slots that keys have, found by the number of the key.
#[derive(Default)]
pub(super) struct SlotTable {
    first: Vec<u32>,
    pages: Vec<Option<Box<[u32; PAGE_KEYS]>>>,
}

impl SlotTable {
    /// The slot of `key`, if it has one.
    #[inline]
    pub(super) fn get(&self, key: u32) -> Option<u32> {
        let slot = match self.first.get(key as usize) {
            Some(slot) => *slot,
            None => self.paged(key)?,
        };
        (slot != NO_SLOT).then_some(slot)
    }

    fn paged(&self, key: u32) -> Option<u32> {
        let page = self.pages.get(key as usize / PAGE_KEYS)?.as_ref()?;
        Some(page[key as usize % PAGE_KEYS])
    }

    /// Gives `key` the slot `slot`.
    fn set(&mut self, key: u32, slot: u32) {
        if (key as usize) < FIRST_KEYS {
            let len = self
                .first
                .len()
                .max(key as usize + 1)
                .next_multiple_of(PAGE_KEYS);
            self.first.resize(len, NO_SLOT);
            self.first[key as usize] = slot;
            return;
        }
        let at = key as usize / PAGE_KEYS;
        if at >= self.pages.len() {
            self.pages.resize_with(at + 1, || None);
        }
        let page = self.pages[at].get_or_insert_with(|| Box::new([NO_SLOT; PAGE_KEYS]));
        page[key as usize % PAGE_KEYS] = slot;
    }
}

/// Gives out slots, first those that were given back.
#[derive(Default)]
pub(super) struct SlotPool {
    count: u32,
    free: Vec<u32>,
}

impl SlotPool {
    /// Slots there are, in use or not: all are below it.
    pub(super) const fn count(&self) -> usize {
        self.count as usize
    }

    /// Slots in use.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.count() - self.free.len()
    }

    /// A slot whose state is empty.
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.count;
            assert!(slot < NO_SLOT, "memory ends before the slots do");
            self.count += 1;
            slot
        })
    }

    /// Takes back slots whose state is empty.
    pub(super) fn give_back(&mut self, slots: &[u32]) {
        self.free.extend_from_slice(slots);
    }
}

/// The keys of a pane in the order in which they came, each with its slot.
#[derive(Default)]
pub(super) struct PaneKeys {
    table: SlotTable,
    pub(super) keys: Vec<u32>,
    pub(super) slots: Vec<u32>,
}

impl PaneKeys {
    /// The slot of `key`, if it has one.
    #[inline]
    pub(super) fn get(&self, key: u32) -> Option<u32> {
        self.table.get(key)
    }

    /// The slot of `key`, a new one if it has none; then the pane holds the key.
    #[inline]
    pub(super) fn slot_of(
        &mut self,
        key: u32,
        pool: &mut SlotPool,
        interner: &mut KeyInterner,
    ) -> u32 {
        match self.table.get(key) {
            Some(slot) => slot,
            None => self.new_slot(key, pool, interner),
        }
    }

    #[cold]
    fn new_slot(&mut self, key: u32, pool: &mut SlotPool, interner: &mut KeyInterner) -> u32 {
        let slot = pool.take();
        self.table.set(key, slot);
        self.keys.push(key);
        self.slots.push(slot);
        interner.hold(key);
        slot
    }
}
