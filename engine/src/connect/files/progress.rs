//! The watermarks of a source that reads splits.

use serde::Deserialize;

use crate::clock::ProcessingTime;
use crate::element::{EVENT_TIME_MAX, EventTime, Watermark};
use crate::watermark::{SplitId, WatermarkGenerator, WatermarkStrategy};

use crate::connect::Split;

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
pub(crate) struct SplitProgress {
    generator: Option<WatermarkGenerator>,
    /// For each split, the stream that it is of: pieces of one file are one stream.
    streams: Vec<usize>,
    /// For each stream, the earliest event time of it and of all after it.
    ahead_min: Vec<EventTime>,
    /// The watermark at which it goes on, if it was restored; none is before it.
    floor: Option<EventTime>,
    /// The last watermark since then.
    said: Option<Watermark>,
    can_be_idle: bool,
    /// The stream that is being read, once one is.
    reading: Option<usize>,
}

/// The splits that have not been opened, taken together: they are read one after the other,
/// so only the earliest of them holds the watermark back.
const REST: SplitId = SplitId::MAX;

impl SplitProgress {
    pub(crate) fn new(options: Option<&WatermarkOptions>, splits: &[Split]) -> Self {
        let streams = streams_of(splits);
        let mut ahead_min = vec![EVENT_TIME_MAX; streams.last().map_or(1, |last| last + 2)];
        for (split, &stream) in splits.iter().zip(&streams).rev() {
            ahead_min[stream] = split
                .event_time_min
                .min(ahead_min[stream])
                .min(ahead_min[stream + 1]);
        }
        let mut progress = Self {
            generator: options.map(|options| WatermarkGenerator::new(options.strategy())),
            can_be_idle: options.is_some_and(|options| options.idle_after_ms.is_some()),
            streams,
            ahead_min,
            floor: None,
            said: None,
            reading: None,
        };
        progress.announce_from(0);
        progress
    }

    /// The same, which has emitted the watermark `reached` before: it is emitted again, for those
    /// who have forgotten it, and none before it.
    pub(crate) fn going_on_at(mut self, reached: Option<EventTime>) -> Self {
        self.floor = reached;
        self
    }

    /// A batch of split `split` came, with its latest event time, if any row has one.
    pub(crate) fn observe(&mut self, split: usize, latest: Option<EventTime>) {
        let Some(generator) = &mut self.generator else {
            return;
        };
        let stream = self.streams[split];
        let id = stream as SplitId;
        if self.reading != Some(stream) {
            generator.split_opened(id);
            if let Some(done) = self.reading.replace(stream) {
                generator.split_finished(done as SplitId);
            }
            self.announce_from(stream + 1);
        }
        let Some(generator) = &mut self.generator else {
            return;
        };
        // The watermark after all events is not a row's to say: it means the end.
        generator.observe_max(id, latest.map(|latest| latest.min(EVENT_TIME_MAX - 1)));
    }

    /// The watermark to emit now, if any.
    pub(crate) fn poll(&mut self, now: ProcessingTime) -> Option<Watermark> {
        let made = self.generator.as_mut()?.poll(now);
        let Some(floor) = self.floor else {
            return made;
        };
        let due = made.unwrap_or(Watermark::active(floor));
        let due = Watermark {
            timestamp: due.timestamp.max(floor),
            ..due
        };
        // What is not new is only said once, whatever is below the floor.
        let said = self.said.replace(due);
        (said != Some(due)).then_some(due)
    }

    /// The streams from `next` on have not been opened.
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
    pub(crate) fn may_be_idle(&self) -> bool {
        self.can_be_idle
    }

    /// When `poll` may have something to say though no batch came.
    pub(crate) fn idle_at(&self) -> Option<ProcessingTime> {
        self.generator.as_ref()?.idle_at()
    }
}

/// For each split, the number of its stream: those that follow each other in one file share one.
fn streams_of(splits: &[Split]) -> Vec<usize> {
    let mut streams = Vec::with_capacity(splits.len());
    let mut last: Option<(usize, &Split)> = None;
    for split in splits {
        let stream = match last {
            None => 0,
            Some((stream, before)) if is_continued(before, split) => stream,
            Some((stream, _)) => stream + 1,
        };
        streams.push(stream);
        last = Some((stream, split));
    }
    streams
}

fn is_continued(before: &Split, split: &Split) -> bool {
    before.file == split.file && split.part.is_of_one_stream() && before.part.is_of_one_stream()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Part;

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
