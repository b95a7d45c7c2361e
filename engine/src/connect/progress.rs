//! The watermarks of a source that reads splits.

use serde::Deserialize;

use crate::clock::ProcessingTime;
use crate::element::{EVENT_TIME_MAX, EventTime, Watermark};
use crate::watermark::{SplitId, WatermarkGenerator, WatermarkStrategy};

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
    /// does not hold back others; with independent splits once its last one is open. Default:
    /// never.
    pub idle_after_ms: Option<u64>,
}

impl WatermarkOptions {
    fn strategy(&self) -> WatermarkStrategy {
        let mut strategy = WatermarkStrategy::bounded_out_of_orderness(self.out_of_orderness_ms);
        if self.splits == SplitOrder::Independent {
            strategy = strategy.per_split();
        }
        if let Some(quiet_ms) = self.idle_after_ms {
            strategy = strategy.idle_after(quiet_ms);
        }
        strategy
    }
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

/// Follows the splits of one subtask, and says when its watermark changes.
#[derive(Debug)]
pub(super) struct SplitProgress {
    generator: Option<WatermarkGenerator>,
    /// For each split, the earliest event time of it and of all after it.
    ahead_min: Vec<EventTime>,
    can_be_idle: bool,
    /// The split that is being read, once one is.
    reading: Option<usize>,
}

/// The splits that have not been opened, taken together: they are read one after the other,
/// so only the earliest of them holds the watermark back.
const REST: SplitId = SplitId::MAX;

impl SplitProgress {
    pub(super) fn new(options: Option<&WatermarkOptions>, splits: &[Split]) -> Self {
        let mut ahead_min = vec![EVENT_TIME_MAX; splits.len() + 1];
        for (index, split) in splits.iter().enumerate().rev() {
            ahead_min[index] = split.event_time_min.min(ahead_min[index + 1]);
        }
        let mut progress = Self {
            generator: options.map(|options| WatermarkGenerator::new(options.strategy())),
            can_be_idle: options.is_some_and(|options| options.idle_after_ms.is_some()),
            ahead_min,
            reading: None,
        };
        progress.announce_from(0);
        progress
    }

    /// A batch of split `split` came, with its latest event time, if any row has one.
    pub(super) fn observe(&mut self, split: usize, latest: Option<EventTime>) {
        let Some(generator) = &mut self.generator else {
            return;
        };
        let id = split as SplitId;
        if self.reading != Some(split) {
            generator.split_opened(id);
            if let Some(done) = self.reading.replace(split) {
                generator.split_finished(done as SplitId);
            }
            self.announce_from(split + 1);
        }
        let Some(generator) = &mut self.generator else {
            return;
        };
        // The watermark after all events is not a row's to say: it means the end.
        generator.observe_max(id, latest.map(|latest| latest.min(EVENT_TIME_MAX - 1)));
    }

    /// The watermark to emit now, if any.
    pub(super) fn poll(&mut self, now: ProcessingTime) -> Option<Watermark> {
        self.generator.as_mut()?.poll(now)
    }

    /// The splits from `next` on have not been opened.
    fn announce_from(&mut self, next: usize) {
        let Some(generator) = &mut self.generator else {
            return;
        };
        if next + 1 == self.ahead_min.len() {
            generator.split_finished(REST);
        } else {
            generator.split_announced(REST, Some(self.ahead_min[next].min(EVENT_TIME_MAX - 1)));
        }
    }

    /// Whether `poll` is to be asked though no batch came. Otherwise it is not, so that what
    /// is emitted does not depend on when a source was polled.
    pub(super) fn may_be_idle(&self) -> bool {
        self.can_be_idle
    }

    /// When `poll` may have something to say though no batch came.
    pub(super) fn idle_at(&self) -> Option<ProcessingTime> {
        self.generator.as_ref()?.idle_at()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Part;
    use super::*;

    fn splits(earliest: &[EventTime]) -> Vec<Split> {
        let split = |(row_group, earliest): (usize, &EventTime)| Split {
            file: 0,
            part: Part::RowGroup(row_group),
            event_time_min: *earliest,
        };
        earliest.iter().enumerate().map(split).collect()
    }

    fn bounded(out_of_orderness_ms: u64, splits: SplitOrder) -> WatermarkOptions {
        WatermarkOptions {
            out_of_orderness_ms,
            splits,
            idle_after_ms: None,
        }
    }

    #[test]
    fn a_split_that_has_not_been_read_holds_the_watermark_back() {
        let options = bounded(10, SplitOrder::Independent);
        let mut progress = SplitProgress::new(Some(&options), &splits(&[0, 150, 120]));
        assert_eq!(progress.poll(0), Some(Watermark::active(0)));
        progress.observe(0, Some(100));
        assert_eq!(progress.poll(0), Some(Watermark::active(90)));
        progress.observe(0, Some(200));
        assert_eq!(progress.poll(0), Some(Watermark::active(120)));
        progress.observe(1, Some(300));
        assert_eq!(progress.poll(0), None);
        progress.observe(2, Some(250));
        assert_eq!(progress.poll(0), Some(Watermark::active(240)));
    }

    #[test]
    fn nothing_known_of_a_split_means_no_watermark_before_it() {
        let options = bounded(0, SplitOrder::Independent);
        let unknown = splits(&[EventTime::MIN, EventTime::MIN]);
        let mut progress = SplitProgress::new(Some(&options), &unknown);
        progress.observe(0, Some(100));
        assert_eq!(progress.poll(0), None);
        progress.observe(1, Some(50));
        assert_eq!(progress.poll(0), Some(Watermark::active(50)));
    }

    #[test]
    fn splits_that_follow_each_other_are_one_stream() {
        let options = bounded(5, SplitOrder::Ordered);
        let unknown = splits(&[EventTime::MIN, EventTime::MIN]);
        let mut progress = SplitProgress::new(Some(&options), &unknown);
        progress.observe(0, Some(100));
        assert_eq!(progress.poll(0), Some(Watermark::active(95)));
        progress.observe(1, None);
        assert_eq!(progress.poll(0), None);
    }

    #[test]
    fn a_source_that_is_quiet_says_that_it_is_idle_and_not_that_it_ends() {
        for order in [SplitOrder::Independent, SplitOrder::Ordered] {
            let options = WatermarkOptions {
                idle_after_ms: Some(50),
                ..bounded(0, order)
            };
            let mut progress = SplitProgress::new(Some(&options), &splits(&[0]));
            progress.observe(0, Some(7));
            assert_eq!(progress.poll(1000), Some(Watermark::active(7)));
            assert_eq!(progress.idle_at(), Some(1050));
            assert_eq!(progress.poll(1050), Some(Watermark::idle(7)));
            assert_eq!(progress.poll(1100), None);
            progress.observe(0, Some(7));
            assert_eq!(progress.poll(1100), Some(Watermark::active(7)));
        }
    }

    #[test]
    fn a_row_at_the_end_of_time_does_not_end_the_stream() {
        let options = bounded(0, SplitOrder::Ordered);
        let mut progress = SplitProgress::new(Some(&options), &splits(&[0]));
        progress.observe(0, Some(EVENT_TIME_MAX));
        let watermark = progress.poll(0).unwrap();
        assert_ne!(watermark, Watermark::MAX);
    }
}
