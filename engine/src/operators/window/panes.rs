//! The state of all live panes.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::assigner::{Pane, Window, WindowAssigner};
use super::slots::{PaneKeys, SlotPool};
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::operators::SpecError;
use crate::operators::aggregate::{Accumulators, AggregateSpec, KeyInterner};
use crate::operators::gather::STEP_ITEMS_MAX;

/// Rows out of order are mostly in a few panes in turn.
const RECENT_PANES: usize = 4;

/// Contains no time.
const NO_PANE: (Pane, usize) = (Pane { start: 1, last: 0 }, 0);

/// The aggregates of every key in every live pane.
///
/// The state of a key in a pane is a slot of the accumulators. Keys and slots are used
/// again when the panes that hold them are gone.
pub(super) struct Panes {
    assigner: WindowAssigner,
    pub(super) interner: KeyInterner,
    pub(super) accumulators: Accumulators,
    /// Slots of the accumulators, in use or not.
    slots_len: usize,
    pool: SlotPool,
    by_start: BTreeMap<EventTime, usize>,
    panes: Vec<LivePane>,
    unused: Vec<usize>,
    /// The panes of the rows just before, by which most rows find theirs.
    recent: [(Pane, usize); RECENT_PANES],
    oldest_recent: usize,
    expired: Vec<PaneKeys>,
    key_buffer: Vec<u32>,
    slot_buffer: Vec<u32>,
}

struct LivePane {
    pane: Pane,
    keys: PaneKeys,
}

impl Panes {
    /// No panes, for batches of `schema`.
    pub(super) fn new(
        schema: &SchemaRef,
        assigner: WindowAssigner,
        key_columns: &[usize],
        aggregates: &[AggregateSpec],
    ) -> Result<Self, SpecError> {
        Ok(Self {
            assigner,
            interner: KeyInterner::new(schema, key_columns)?,
            accumulators: Accumulators::new(schema, aggregates)?,
            slots_len: 0,
            pool: SlotPool::default(),
            by_start: BTreeMap::new(),
            panes: Vec::new(),
            unused: Vec::new(),
            recent: [NO_PANE; RECENT_PANES],
            oldest_recent: 0,
            expired: Vec::new(),
            key_buffer: Vec::new(),
            slot_buffer: Vec::new(),
        })
    }

    /// Takes in `batch`, whose event times are `times`, all of them in `whole` if that is known.
    ///
    /// The key of each row is then in [`Panes::row_keys`].
    pub(super) fn add(
        &mut self,
        batch: &RecordBatch,
        times: &[EventTime],
        whole: Option<Pane>,
    ) -> Result<(), OperatorError> {
        let mut keys = std::mem::take(&mut self.key_buffer);
        self.interner.intern(batch, &mut keys)?;
        let mut slots = std::mem::take(&mut self.slot_buffer);
        slots.clear();
        let slots_max = self.pool.count() + times.len();
        if slots_max > self.slots_len {
            self.slots_len = slots_max.next_power_of_two();
            self.accumulators.resize(self.slots_len);
        }
        let mut row = 0;
        while row < times.len() {
            let index = self.index_of(times[row]);
            let LivePane { pane, keys: held } = &mut self.panes[index];
            let rows = match whole {
                Some(_) => 0..times.len(),
                None => row..row + pane.count_first(&times[row..]),
            };
            row = rows.end;
            let (pool, interner) = (&mut self.pool, &mut self.interner);
            let keys = keys[rows].iter();
            let found = keys.map(|key| held.slot_of(*key, pool, interner));
            match self.accumulators.counts_alone() {
                Some(counts) => found.for_each(|slot| counts[slot as usize] += 1),
                None => slots.extend(found),
            }
        }
        if self.accumulators.counts_alone().is_none() {
            self.accumulators.update(batch, &slots)?;
        }
        self.slot_buffer = slots;
        self.key_buffer = keys;
        Ok(())
    }

    /// The key of each row of the batch that was taken in last.
    pub(super) fn row_keys(&self) -> &[u32] {
        &self.key_buffer
    }

    /// The pane that all of these times are in, if it is one.
    pub(super) fn pane_of_all(&self, times: &[EventTime]) -> Option<Pane> {
        let pane = self.assigner.pane_of(*times.first()?);
        (pane.count_first(times) == times.len()).then_some(pane)
    }

    fn index_of(&mut self, time: EventTime) -> usize {
        let recent = self.recent.iter().find(|(pane, _)| pane.contains(time));
        if let Some((_, index)) = recent {
            return *index;
        }
        let pane = self.assigner.pane_of(time);
        let index = *self.by_start.entry(pane.start).or_insert_with(|| {
            let live = LivePane {
                pane,
                keys: PaneKeys::default(),
            };
            match self.unused.pop() {
                Some(index) => {
                    self.panes[index] = live;
                    index
                }
                None => {
                    self.panes.push(live);
                    self.panes.len() - 1
                }
            }
        });
        self.recent[self.oldest_recent] = (pane, index);
        self.oldest_recent = (self.oldest_recent + 1) % RECENT_PANES;
        index
    }

    /// The panes by their start.
    pub(super) const fn by_start(&self) -> &BTreeMap<EventTime, usize> {
        &self.by_start
    }

    /// The panes of `window`, earliest first.
    pub(super) fn of_window(&self, window: Window) -> impl Iterator<Item = &PaneKeys> {
        self.by_start
            .range(window.start()..=window.last())
            .map(|(_, index)| &self.panes[*index].keys)
    }

    /// Lets go of the panes up to `late_through`; what they hold is freed by
    /// [`Panes::free_some`].
    pub(super) fn expire(&mut self, late_through: EventTime) {
        while let Some(first) = self.by_start.first_entry() {
            let index = *first.get();
            if self.panes[index].pane.last > late_through {
                return;
            }
            first.remove();
            self.recent = [NO_PANE; RECENT_PANES];
            self.unused.push(index);
            self.expired
                .push(std::mem::take(&mut self.panes[index].keys));
        }
    }

    /// Frees some of what expired; returns whether there is more.
    pub(super) fn free_some(&mut self) -> bool {
        let mut budget = STEP_ITEMS_MAX;
        while let Some(expired) = self.expired.last_mut() {
            let keep = expired.keys.len().saturating_sub(budget);
            budget -= expired.keys.len() - keep;
            let slots = expired.slots.split_off(keep);
            self.accumulators.clear(&slots);
            self.pool.give_back(&slots);
            for key in expired.keys.drain(keep..) {
                self.interner.release(key);
            }
            if keep > 0 {
                return true;
            }
            self.expired.pop();
        }
        false
    }

    /// Keys and slots in use.
    #[cfg(test)]
    pub(super) fn live(&self) -> (usize, usize) {
        (self.interner.live(), self.pool.used())
    }
}
