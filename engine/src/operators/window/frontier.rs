//! How far event time has come, and what that means for windows.

use std::collections::BTreeMap;

use super::assigner::{Window, WindowAssigner};
use crate::element::EventTime;

/// The watermark of an operator with windows, and what follows from it.
pub(super) struct Frontier {
    assigner: WindowAssigner,
    allowed_lateness_ms: u64,
    watermark: Option<EventTime>,
    late_through: Option<EventTime>,
    complete_through: Option<EventTime>,
    /// The last window that was complete.
    complete: Option<i128>,
}

impl Frontier {
    /// Before the first watermark: nothing is late, nothing is complete.
    pub(super) const fn new(assigner: WindowAssigner, allowed_lateness_ms: u64) -> Self {
        Self {
            assigner,
            allowed_lateness_ms,
            watermark: None,
            late_through: None,
            complete_through: None,
            complete: None,
        }
    }

    pub(super) const fn assigner(&self) -> WindowAssigner {
        self.assigner
    }

    /// The time up to which rows are late: all their windows have expired.
    pub(super) const fn late_through(&self) -> Option<EventTime> {
        self.late_through
    }

    /// Whether a row of this time is in no window that takes rows in.
    pub(super) fn is_late(&self, time: Option<EventTime>) -> bool {
        time.is_none() || time <= self.late_through
    }

    /// Whether windows take in rows after they have given their results.
    pub(super) const fn allows_lateness(&self) -> bool {
        self.allowed_lateness_ms > 0
    }

    /// Whether a row of this time may be in a window that gave its results already.
    pub(super) fn may_reopen(&self, time: Option<EventTime>) -> bool {
        self.allowed_lateness_ms > 0 && time <= self.complete_through
    }

    /// The windows of `time` that have given their results and still take rows in.
    pub(super) fn reopened_by(&self, time: EventTime) -> impl Iterator<Item = i128> + use<> {
        let Self {
            assigner,
            allowed_lateness_ms,
            ..
        } = *self;
        let watermark = self.watermark.filter(|_| self.may_reopen(Some(time)));
        watermark.into_iter().flat_map(move |watermark| {
            let numbers = assigner.first_number(time)..=assigner.last_number(time);
            numbers.filter(move |number| {
                let window = assigner.window(*number);
                window.is_complete(watermark) && !window.is_expired(watermark, allowed_lateness_ms)
            })
        })
    }

    /// Whether window `number` has given its results.
    pub(super) fn is_complete(&self, number: i128) -> bool {
        self.complete.is_some_and(|complete| number <= complete)
    }

    /// The windows of `time` that have not given their results.
    pub(super) fn open_numbers(&self, time: EventTime) -> impl Iterator<Item = i128> + use<> {
        let numbers = self.assigner.first_number(time)..=self.assigner.last_number(time);
        let complete = self.complete;
        numbers.filter(move |number| Some(*number) > complete)
    }

    /// The next window that `watermark` completes and that holds one of the panes, which
    /// are by their start. It does not come again.
    pub(super) fn next_complete<P>(
        &mut self,
        watermark: EventTime,
        panes: &BTreeMap<EventTime, P>,
    ) -> Option<Window> {
        let after = self.complete;
        let from = after.map_or(EventTime::MIN, |number| {
            self.assigner.window(number + 1).start()
        });
        let number = panes.range(from..).find_map(|(start, _)| {
            let first = self.assigner.first_number(*start);
            let next = after.map_or(first, |number| first.max(number + 1));
            (next <= self.assigner.last_number(*start)).then_some(next)
        })?;
        let window = self.assigner.window(number);
        if !window.is_complete(watermark) {
            return None;
        }
        self.complete = Some(number);
        Some(window)
    }

    /// All windows that `watermark` completes have given their results.
    pub(super) fn advance(&mut self, watermark: EventTime) {
        let late_through = self
            .assigner
            .late_through(watermark, self.allowed_lateness_ms);
        self.watermark = self.watermark.max(Some(watermark));
        self.late_through = self.late_through.max(late_through);
        self.complete_through = self
            .complete_through
            .max(self.assigner.complete_through(watermark));
        self.complete = self
            .complete
            .max(Some(self.assigner.complete_number(watermark)));
    }
}
