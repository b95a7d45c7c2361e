//! The watermark of a source.

use std::collections::BTreeMap;

use super::split::Split;
use super::strategy::{SplitId, WatermarkStrategy};
use crate::clock::ProcessingTime;
use crate::element::{EVENT_TIME_MIN, EventTime, Watermark};

/// Without [`WatermarkStrategy::per_split`] all records belong to this one split.
const WHOLE_SOURCE: SplitId = 0;

/// Makes a source's watermarks from the event times of its records.
///
/// A source tells what it reads, and asks with [`WatermarkGenerator::poll`] once a step, and
/// when [`WatermarkGenerator::idle_at`] is reached. A watermark is given only when it changes
/// and never decreases. Only the end of the source gives the end of time.
///
/// With a watermark for each split, a split that was announced and that nobody has opened
/// holds the watermark back: its records are still to come. One that is finished, or that
/// another subtask opened, no longer does.
#[derive(Clone, Debug)]
pub struct WatermarkGenerator {
    strategy: WatermarkStrategy,
    splits: BTreeMap<SplitId, Split>,
    current: EventTime,
    /// The last watermark given was idle.
    idle: bool,
    /// Something was told since the last poll.
    changed: bool,
    changed_at_ms: ProcessingTime,
    idle_at_ms: Option<ProcessingTime>,
}

impl WatermarkGenerator {
    /// A generator that has seen nothing.
    pub fn new(strategy: WatermarkStrategy) -> Self {
        let mut splits = BTreeMap::new();
        if !strategy.per_split {
            splits.insert(WHOLE_SOURCE, Split::new(true));
        }
        Self {
            strategy,
            splits,
            current: EVENT_TIME_MIN,
            idle: false,
            changed: true,
            changed_at_ms: ProcessingTime::MIN,
            idle_at_ms: None,
        }
    }

    /// A record of a split was read. One without event time only says that the split is
    /// active.
    ///
    /// # Panics
    ///
    /// Panics where watermarks are kept by split and this one is not open.
    pub fn observe(&mut self, split: SplitId, event_time: Option<EventTime>) {
        let split = if self.strategy.per_split {
            split
        } else {
            WHOLE_SOURCE
        };
        let known = self.splits.get_mut(&split).filter(|known| known.open);
        let Some(known) = known else {
            panic!("split {split} is read but was not opened");
        };
        known.observe(event_time);
        self.changed = true;
    }

    /// A batch of a split was read whose highest event time is this: none where no record
    /// of it has one. The same as [`WatermarkGenerator::observe`] of every record.
    ///
    /// # Panics
    ///
    /// Panics where watermarks are kept by split and this one is not open.
    pub fn observe_max(&mut self, split: SplitId, event_time_max: Option<EventTime>) {
        self.observe(split, event_time_max);
    }

    /// A split exists and is to be read by this subtask or another. `earliest` is a time
    /// before which it has no record, where that is known beforehand: without it the split
    /// holds the watermark at the beginning of time.
    pub fn split_announced(&mut self, split: SplitId, earliest: Option<EventTime>) {
        if self.strategy.per_split {
            let known = self
                .splits
                .entry(split)
                .or_insert_with(|| Split::new(false));
            known.earliest = earliest.unwrap_or(EVENT_TIME_MIN);
            self.changed = true;
        }
    }

    /// This subtask begins to read a split, announced or not.
    pub fn split_opened(&mut self, split: SplitId) {
        if self.strategy.per_split {
            let known = self.splits.entry(split).or_insert_with(|| Split::new(true));
            known.open = true;
            known.touched = true;
            self.changed = true;
        }
    }

    /// A split has no further record for this subtask: it was read to its end, or another
    /// subtask opened it.
    pub fn split_finished(&mut self, split: SplitId) {
        if self.strategy.per_split && self.splits.remove(&split).is_some() {
            self.changed = true;
        }
    }

    /// The watermark to emit now, if any.
    #[must_use = "the watermark is to be emitted"]
    pub fn poll(&mut self, now_ms: ProcessingTime) -> Option<Watermark> {
        if !self.changed && self.idle_at_ms.is_none_or(|at| now_ms < at) {
            return None;
        }
        if self.changed {
            self.changed = false;
            self.changed_at_ms = now_ms;
        }
        for split in self.splits.values_mut() {
            split.poll(now_ms, self.strategy.idle_after_ms);
        }
        self.idle_at_ms = self.next_idle_at(now_ms);
        if self.all_quiet(now_ms) {
            let first = !self.idle;
            self.idle = true;
            return first.then(|| Watermark::idle(self.current));
        }
        let watermark = self.lowest().max(self.current);
        if self.idle || watermark > self.current {
            // A stream that was idle has to say that it is active, even at the same time.
            self.idle = false;
            self.current = watermark;
            return Some(Watermark::active(watermark));
        }
        None
    }

    /// The processing time at which [`WatermarkGenerator::poll`] may have something to say
    /// without a further record.
    pub fn idle_at(&self) -> Option<ProcessingTime> {
        self.idle_at_ms
    }

    /// The last active watermark given, the beginning of time before the first.
    pub fn current(&self) -> EventTime {
        self.current
    }

    /// The lowest watermark of the splits that hold it back; the current one without any.
    fn lowest(&self) -> EventTime {
        let held = self.splits.values().filter(|split| !split.idle);
        held.map(|split| split.watermark(self.strategy.out_of_orderness_ms))
            .min()
            .unwrap_or(self.current)
    }

    /// Whether nothing holds the watermark back and nothing has happened for long enough.
    fn all_quiet(&self, now_ms: ProcessingTime) -> bool {
        self.splits.values().all(|split| split.idle)
            && self.quiet_at().is_some_and(|at| now_ms >= at)
    }

    fn quiet_at(&self) -> Option<ProcessingTime> {
        let idle_after_ms = self.strategy.idle_after_ms?;
        Some(self.changed_at_ms.saturating_add_unsigned(idle_after_ms))
    }

    fn next_idle_at(&self, now_ms: ProcessingTime) -> Option<ProcessingTime> {
        let open = self
            .splits
            .values()
            .filter(|split| split.open && !split.idle);
        open.map(|split| split.idle_at(self.strategy.idle_after_ms))
            .chain([self.quiet_at()])
            .flatten()
            .filter(|&at| at > now_ms)
            .min()
    }
}

#[cfg(test)]
mod tests;
