//! Which windows an event time belongs to.

use crate::element::{EVENT_TIME_MAX, EVENT_TIME_MIN, EventTime};
use crate::operators::SpecError;

/// The most windows that a row may be in: enough for a day that slides by a second. Beyond
/// it the results, one a window and key, are the least of what would take for ever.
pub const WINDOWS_OF_A_ROW_MAX: i64 = 100_000;

/// Times that are checked at once, at most.
const CHECKED_TIMES_MAX: usize = 256;

/// A window of event time: from its start up to, not including, its end.
///
/// A bound that no event time can express is moved to the nearest that can; a window that
/// reaches beyond the last event time includes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    last: EventTime,
    start: EventTime,
    end: EventTime,
}

impl Window {
    /// The first event time of the window, in milliseconds.
    pub const fn start(self) -> EventTime {
        self.start
    }

    /// The first event time after the window, in milliseconds.
    pub const fn end(self) -> EventTime {
        self.end
    }

    /// The last event time of the window: a watermark of this time or later completes it,
    /// and it is the event time of the window's results.
    pub const fn last(self) -> EventTime {
        self.last
    }

    /// The window from `first` up to `gap_ms` after `last_row`.
    pub(crate) fn of_session(first: EventTime, last_row: EventTime, gap_ms: i64) -> Self {
        let end = i128::from(last_row) + i128::from(gap_ms);
        Self {
            start: first,
            end: clamp(end),
            last: clamp(end - 1),
        }
    }

    /// Whether `watermark` completes the window.
    pub(crate) const fn is_complete(self, watermark: EventTime) -> bool {
        self.last <= watermark
    }

    /// Whether `watermark` is past the window and the lateness that it allows.
    pub(crate) fn is_expired(self, watermark: EventTime, allowed_lateness_ms: u64) -> bool {
        self.last.saturating_add_unsigned(allowed_lateness_ms) <= watermark
    }
}

/// A stretch of event time whose rows belong to the same windows: the unit in which rows
/// are aggregated, so that a row costs one update however many windows it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pane {
    pub(crate) start: EventTime,
    /// Inclusive, so that the last event time has a pane.
    pub(crate) last: EventTime,
}

impl Pane {
    pub(crate) const fn contains(self, time: EventTime) -> bool {
        self.start <= time && time <= self.last
    }

    /// How many of these times are in the pane before the first that is not.
    #[inline]
    pub(crate) fn count_first(self, times: &[EventTime]) -> usize {
        let mut count = 0;
        // Few at first, because rows out of order have few neighbours in their pane.
        let mut next = 4;
        while count < times.len() {
            let chunk = &times[count..times.len().min(count + next)];
            if !self.contains_all(chunk) {
                let others = chunk.iter().position(|time| !self.contains(*time));
                return count + others.unwrap_or(chunk.len());
            }
            count += chunk.len();
            next = (next * 2).min(CHECKED_TIMES_MAX);
        }
        count
    }

    /// Whether all these times are in the pane, or none where that can't be told at once.
    #[inline]
    pub(crate) fn contains_all(self, times: &[EventTime]) -> bool {
        // Neither difference is negative, with or without an overflow, exactly for the times in
        // a pane that is no longer than half of all time.
        let outside = times.iter().fold(0, |outside, time| {
            outside | time.wrapping_sub(self.start) | self.last.wrapping_sub(*time)
        });
        outside >= 0 && self.last.checked_sub(self.start).is_some()
    }
}

/// Windows of one size at equal distances, aligned to the epoch.
///
/// Window `n` starts at `offset + n * slide`, for every integer `n`, negative ones too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAssigner {
    size_ms: i64,
    slide_ms: i64,
    offset_ms: i64,
}

impl WindowAssigner {
    /// Windows that follow each other: every event time is in exactly one.
    ///
    /// # Errors
    /// [`SpecError::WindowSize`]: the size must be at least 1.
    pub fn tumbling(size_ms: i64, offset_ms: i64) -> Result<Self, SpecError> {
        Self::sliding(size_ms, size_ms, offset_ms)
    }

    /// Windows of `size_ms`, of which one starts every `slide_ms`.
    ///
    /// # Errors
    /// [`SpecError::WindowSize`], [`SpecError::WindowGap`] and [`SpecError::WindowOverlap`]:
    /// the slide must be at least 1, at most the size, and not less than the size over
    /// [`WINDOWS_OF_A_ROW_MAX`].
    pub fn sliding(size_ms: i64, slide_ms: i64, offset_ms: i64) -> Result<Self, SpecError> {
        if size_ms < 1 || slide_ms < 1 {
            return Err(SpecError::WindowSize { size_ms, slide_ms });
        }
        if slide_ms > size_ms {
            return Err(SpecError::WindowGap { size_ms, slide_ms });
        }
        if size_ms / slide_ms > WINDOWS_OF_A_ROW_MAX {
            return Err(SpecError::WindowOverlap {
                size_ms,
                slide_ms,
                windows_max: WINDOWS_OF_A_ROW_MAX,
            });
        }
        Ok(Self {
            size_ms,
            slide_ms,
            offset_ms: offset_ms.rem_euclid(slide_ms),
        })
    }

    /// Whether every event time is in exactly one window.
    pub const fn is_tumbling(&self) -> bool {
        self.size_ms == self.slide_ms
    }

    /// The windows of `time`, earliest first.
    pub fn windows_of(&self, time: EventTime) -> impl Iterator<Item = Window> + use<> {
        let assigner = *self;
        (self.first_number(time)..=self.last_number(time))
            .map(move |number| assigner.window(number))
    }

    /// The last window that holds `time`.
    pub(crate) fn last_window(&self, time: EventTime) -> Window {
        self.window(self.last_number(time))
    }

    /// Window `number`.
    pub(crate) fn window(&self, number: i128) -> Window {
        let start = i128::from(self.offset_ms) + number * i128::from(self.slide_ms);
        let end = start + i128::from(self.size_ms);
        Window {
            start: clamp(start),
            end: clamp(end),
            last: clamp(end - 1),
        }
    }

    /// The number of the first window that holds `time`.
    pub(crate) fn first_number(&self, time: EventTime) -> i128 {
        let after = time.checked_sub(self.offset_ms);
        if let Some(after) = after.and_then(|after| after.checked_sub(self.size_ms)) {
            // Division of 128 bits takes ten times as long.
            return i128::from(after.div_euclid(self.slide_ms)) + 1;
        }
        let after = i128::from(time) - i128::from(self.offset_ms) - i128::from(self.size_ms);
        after.div_euclid(i128::from(self.slide_ms)) + 1
    }

    /// The number of the last window that holds `time`.
    pub(crate) fn last_number(&self, time: EventTime) -> i128 {
        if let Some(relative) = time.checked_sub(self.offset_ms) {
            return relative.div_euclid(self.slide_ms).into();
        }
        (i128::from(time) - i128::from(self.offset_ms)).div_euclid(i128::from(self.slide_ms))
    }

    /// The pane of `time`. Windows begin and end only where panes do.
    pub(crate) fn pane_of(&self, time: EventTime) -> Pane {
        let Some(relative) = time.checked_sub(self.offset_ms) else {
            return self.pane_at_the_edge_of_time(time);
        };
        let into = relative.rem_euclid(self.slide_ms);
        let ends_at = self.size_ms % self.slide_ms;
        let (from, to) = if into < ends_at {
            (0, ends_at)
        } else {
            (ends_at, self.slide_ms)
        };
        match (
            time.checked_sub(into - from),
            time.checked_add(to - into - 1),
        ) {
            (Some(start), Some(last)) => Pane { start, last },
            _ => self.pane_at_the_edge_of_time(time),
        }
    }

    /// As [`Self::pane_of`], for times so near the first or last that 64 bits do not do.
    #[cold]
    fn pane_at_the_edge_of_time(&self, time: EventTime) -> Pane {
        let slide = i128::from(self.slide_ms);
        let ends_at = i128::from(self.size_ms) % slide;
        let slide_start = i128::from(self.offset_ms) + self.last_number(time) * slide;
        let (from, to) = if i128::from(time) - slide_start < ends_at {
            (0, ends_at)
        } else {
            (ends_at, slide)
        };
        Pane {
            start: clamp(slide_start + from),
            last: clamp(slide_start + to - 1),
        }
    }

    /// The last event time all of whose windows expired at `watermark`: a row up to it is
    /// late. None when there is no such time.
    pub(crate) fn late_through(&self, watermark: EventTime, lateness_ms: u64) -> Option<EventTime> {
        if watermark == EVENT_TIME_MAX {
            return Some(EVENT_TIME_MAX);
        }
        let slide = i128::from(self.slide_ms);
        let offset = i128::from(self.offset_ms);
        let expired_start =
            i128::from(watermark) - i128::from(lateness_ms) - i128::from(self.size_ms) + 1;
        let number = (expired_start - offset).div_euclid(slide);
        representable(offset + (number + 1) * slide - 1)
    }

    /// The number of the last window that is complete at `watermark`.
    pub(crate) fn complete_number(&self, watermark: EventTime) -> i128 {
        if watermark == EVENT_TIME_MAX {
            return self.last_number(EVENT_TIME_MAX);
        }
        let last_start = i128::from(watermark) + 1 - i128::from(self.size_ms);
        (last_start - i128::from(self.offset_ms)).div_euclid(i128::from(self.slide_ms))
    }

    /// The last event time that has a window complete at `watermark`. None when there is no
    /// such time.
    pub(crate) fn complete_through(&self, watermark: EventTime) -> Option<EventTime> {
        if watermark == EVENT_TIME_MAX {
            return Some(EVENT_TIME_MAX);
        }
        let first_end = i128::from(self.offset_ms) + i128::from(self.size_ms);
        let slide = i128::from(self.slide_ms);
        let number = (i128::from(watermark) + 1 - first_end).div_euclid(slide);
        representable(first_end + number * slide - 1)
    }
}

fn clamp(time: i128) -> EventTime {
    time.clamp(EVENT_TIME_MIN.into(), EVENT_TIME_MAX.into()) as EventTime
}

fn representable(time: i128) -> Option<EventTime> {
    (time >= i128::from(EVENT_TIME_MIN)).then(|| clamp(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::Random;

    fn spans(assigner: WindowAssigner, time: EventTime) -> Vec<(i64, i64)> {
        assigner
            .windows_of(time)
            .map(|window| (window.start(), window.end()))
            .collect()
    }

    #[test]
    fn tumbling_windows_are_aligned_to_the_epoch_on_both_sides_of_it() {
        let tumbling = WindowAssigner::tumbling(10, 0).expect("a size");
        assert_eq!(spans(tumbling, 0), [(0, 10)]);
        assert_eq!(spans(tumbling, 9), [(0, 10)]);
        assert_eq!(spans(tumbling, 10), [(10, 20)]);
        assert_eq!(spans(tumbling, -1), [(-10, 0)]);
        assert_eq!(spans(tumbling, -10), [(-10, 0)]);
        assert_eq!(spans(tumbling, -11), [(-20, -10)]);
        let shifted = WindowAssigner::tumbling(10, -7).expect("a size");
        assert_eq!(spans(shifted, 2), [(-7, 3)]);
    }

    #[test]
    fn a_time_is_in_each_sliding_window_that_covers_it() {
        let sliding = WindowAssigner::sliding(10, 4, 1).expect("a size");
        assert_eq!(spans(sliding, 1), [(-7, 3), (-3, 7), (1, 11)]);
        assert_eq!(spans(sliding, 3), [(-3, 7), (1, 11)]);
    }

    #[test]
    fn windows_at_the_ends_of_time_saturate() {
        let tumbling = WindowAssigner::tumbling(1000, 0).expect("a size");
        let first = tumbling.windows_of(i64::MIN).next().expect("a window");
        assert_eq!(first.start(), i64::MIN);
        let last = tumbling.windows_of(i64::MAX).next().expect("a window");
        assert_eq!((last.end(), last.last()), (i64::MAX, i64::MAX));
        let huge = WindowAssigner::sliding(i64::MAX, 1 << 62, 5).expect("a size");
        assert!(huge.windows_of(i64::MIN).count() >= 1);
        assert!(huge.pane_of(i64::MIN).contains(i64::MIN));
        assert!(huge.pane_of(i64::MAX).contains(i64::MAX));
    }

    #[test]
    fn windows_without_length_or_with_gaps_are_refused() {
        assert!(WindowAssigner::tumbling(0, 0).is_err());
        assert!(WindowAssigner::sliding(10, -1, 0).is_err());
        assert!(WindowAssigner::sliding(10, 11, 0).is_err());
        assert!(WindowAssigner::sliding(i64::MAX, 1, 0).is_err());
    }

    #[test]
    fn panes_and_thresholds_agree_with_the_windows_of_each_time() {
        let mut random = Random::new("panes_and_thresholds");
        for _ in 0..200 {
            let size = random.between(1, 40);
            let slide = random.between(1, size + 1);
            let offset = random.between(-100, 100);
            let assigner = WindowAssigner::sliding(size, slide, offset).expect("a size");
            let base = [0, i64::MIN + 200, i64::MAX - 200][random.below(3) as usize];
            let watermark = base + random.between(-100, 100);
            let lateness = random.below(50);
            for time in base - 150..base + 150 {
                let windows: Vec<Window> = assigner.windows_of(time).collect();
                let pane = assigner.pane_of(time);
                let around = [time, pane.start, pane.last, time, time + 45, time - 41];
                let first = around.iter().take_while(|time| pane.contains(**time));
                assert_eq!(pane.count_first(&around), first.count());
                assert_eq!(pane.count_first(&around[..4]), 4);
                for edge in [pane.start, pane.last] {
                    assert!(
                        assigner.windows_of(edge).eq(windows.iter().copied()),
                        "{time}"
                    );
                }
                let late = windows.iter().all(|w| w.is_expired(watermark, lateness));
                let late_through = assigner.late_through(watermark, lateness);
                assert_eq!(late_through.is_some_and(|t| time <= t), late, "{time}");
                let complete = windows.iter().any(|w| w.is_complete(watermark));
                let complete_through = assigner.complete_through(watermark);
                assert_eq!(
                    complete_through.is_some_and(|t| time <= t),
                    complete,
                    "{time}"
                );
            }
        }
    }
}
