//! What a watermark generator knows of one split.

use crate::clock::ProcessingTime;
use crate::element::{EVENT_TIME_MIN, EventTime};

#[derive(Clone, Debug)]
pub(super) struct Split {
    /// Somebody reads it here. Until then it can't become idle.
    pub(super) open: bool,
    /// No record of it is earlier, as its source knows beforehand.
    pub(super) earliest: EventTime,
    /// The highest event time seen.
    max: Option<EventTime>,
    /// A record came, or the split was opened, since the last poll.
    pub(super) touched: bool,
    pub(super) quiet_since_ms: ProcessingTime,
    pub(super) idle: bool,
}

impl Split {
    pub(super) fn new(open: bool) -> Self {
        Self {
            open,
            earliest: EVENT_TIME_MIN,
            max: None,
            touched: true,
            quiet_since_ms: ProcessingTime::MIN,
            idle: false,
        }
    }

    pub(super) fn observe(&mut self, event_time: Option<EventTime>) {
        self.touched = true;
        self.max = self.max.max(event_time);
    }

    /// Brings the split's idleness up to `now_ms`.
    pub(super) fn poll(&mut self, now_ms: ProcessingTime, idle_after_ms: Option<u64>) {
        if self.touched {
            self.touched = false;
            self.idle = false;
            self.quiet_since_ms = now_ms;
        } else if self.open && self.idle_at(idle_after_ms).is_some_and(|at| now_ms >= at) {
            self.idle = true;
        }
    }

    /// When the split becomes idle unless a record comes.
    pub(super) fn idle_at(&self, idle_after_ms: Option<u64>) -> Option<ProcessingTime> {
        Some(self.quiet_since_ms.saturating_add_unsigned(idle_after_ms?))
    }

    /// The split's own watermark.
    pub(super) fn watermark(&self, out_of_orderness_ms: u64) -> EventTime {
        match self.max {
            Some(max) => self
                .earliest
                .max(max.saturating_sub_unsigned(out_of_orderness_ms)),
            None => self.earliest,
        }
    }
}
