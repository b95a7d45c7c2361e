//! The watermarks of a source that reads splits.

use serde::Deserialize;

use crate::clock::ProcessingTime;
use crate::element::{EVENT_TIME_MAX, EVENT_TIME_MIN, EventTime, Watermark};

use super::Split;

/// How a source that reads files makes watermarks.
///
/// Without it the source emits none, and everything that waits for event time waits for the
/// end of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatermarkOptions {
    /// How far, in milliseconds, a row may be behind the latest event time before it and still
    /// not be late. 0: event times never go back. Default 0.
    pub out_of_orderness_ms: u64,
    /// How the splits of the source are to each other. Default `"independent"`.
    pub splits: SplitOrder,
    /// After so many milliseconds without a batch the source says that it is idle, so that it
    /// does not hold back others. Default: never.
    pub idle_after_ms: Option<u64>,
}

/// How the event times of one split are to those of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitOrder {
    /// Nothing is known: the watermark stays behind every split that has not been read. Where
    /// a file tells its earliest event time (Parquet statistics) that is how far, and where it
    /// does not, there is no watermark before the last split is opened.
    #[default]
    Independent,
    /// The splits, in the order of listing, are one stream that was cut.
    Ordered,
}

/// Follows the event time of the splits of one subtask, and says when the watermark advances.
#[derive(Debug)]
pub(super) struct SplitProgress {
    options: Option<WatermarkOptions>,
    /// For each split, the earliest event time of it and of all after it.
    ahead_min: Vec<EventTime>,
    /// The splits before this one are open or done.
    opened: usize,
    latest: Option<EventTime>,
    emitted: EventTime,
    idle: bool,
    last_batch: Option<ProcessingTime>,
}

impl SplitProgress {
    pub(super) fn new(options: Option<WatermarkOptions>, splits: &[Split]) -> Self {
        let mut ahead_min = vec![EventTime::MAX; splits.len() + 1];
        for (index, split) in splits.iter().enumerate().rev() {
            ahead_min[index] = split.event_time_min.min(ahead_min[index + 1]);
        }
        Self {
            options,
            ahead_min,
            opened: 0,
            latest: None,
            emitted: EVENT_TIME_MIN,
            idle: false,
            last_batch: None,
        }
    }

    /// A batch of split `split` with its latest event time, if it has any.
    pub(super) fn observe(&mut self, split: usize, latest: Option<EventTime>, now: ProcessingTime) {
        if split >= self.opened {
            self.opened = split + 1;
            if self.is_independent() {
                self.latest = None;
            }
        }
        self.latest = self.latest.max(latest);
        self.last_batch = Some(now);
        self.idle = false;
    }

    /// The watermark to emit, if it has advanced, or if the source has just become idle.
    pub(super) fn poll(&mut self, now: ProcessingTime) -> Option<Watermark> {
        let options = self.options.as_ref()?;
        let bound = i64::try_from(options.out_of_orderness_ms).unwrap_or(i64::MAX);
        if let Some(latest) = self.latest {
            // The watermark after all events is not the source's to say: it means the end.
            let mut reached = latest.saturating_sub(bound).min(EVENT_TIME_MAX - 1);
            if self.is_independent() {
                reached = reached.min(self.ahead_min[self.opened]);
            }
            if reached > self.emitted {
                self.emitted = reached;
                return Some(Watermark::active(reached));
            }
        }
        if self.idle_at().is_some_and(|at| now >= at) {
            self.idle = true;
            return Some(Watermark::idle(self.emitted));
        }
        None
    }

    /// When `poll` may have something to say though no batch came.
    pub(super) fn idle_at(&self) -> Option<ProcessingTime> {
        let after = self.options.as_ref()?.idle_after_ms?;
        let last = self.last_batch.filter(|_| !self.idle)?;
        Some(last.saturating_add(i64::try_from(after).unwrap_or(i64::MAX)))
    }

    fn is_independent(&self) -> bool {
        self.options
            .as_ref()
            .is_some_and(|options| options.splits == SplitOrder::Independent)
    }
}
