//! When two rows are close enough in event time to match.

use crate::element::{EVENT_TIME_MAX, EventTime, Watermark};
use crate::operators::SpecError;
use crate::operators::window::{Pane, WindowAssigner};

use super::kind::JoinKind;

/// A right row matches a left one whose event time plus `lower_ms` is at most its own, and
/// plus `upper_ms` at least: `left + lower <= right <= left + upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalBounds {
    lower_ms: i64,
    upper_ms: i64,
}

/// When two rows of the same key match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinTime {
    /// When their event times are this far apart.
    Interval(IntervalBounds),
    /// When both are in the same window; once for each window that both are in.
    SameWindow(WindowAssigner),
}

/// The times at which a row joins: its own, or that of each of its windows.
#[derive(Clone, Debug)]
pub(super) enum JoinTimes {
    Own(Option<EventTime>),
    /// In a box, because nearly all rows have one time.
    Windows(Box<WindowTimes>),
}

/// The last times of the windows from `next` to `last`.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowTimes {
    assigner: WindowAssigner,
    next: i128,
    last: i128,
}

impl IntervalBounds {
    /// These bounds, in milliseconds; either may be negative.
    ///
    /// # Errors
    /// [`SpecError::JoinBounds`] when no time is within them: swap them.
    pub const fn new(lower_ms: i64, upper_ms: i64) -> Result<Self, SpecError> {
        if lower_ms > upper_ms {
            return Err(SpecError::JoinBounds { lower_ms, upper_ms });
        }
        Ok(Self { lower_ms, upper_ms })
    }

    /// The least that a right row may be later than a left one, in milliseconds.
    pub const fn lower_ms(self) -> i64 {
        self.lower_ms
    }

    /// The most that a right row may be later than a left one, in milliseconds.
    pub const fn upper_ms(self) -> i64 {
        self.upper_ms
    }
}

impl JoinTime {
    /// A frontier later than every event time, whatever bounds are added.
    pub(super) const AFTER_ALL: i128 = i128::MAX / 2;

    /// The bounds between the times at which rows join.
    pub(super) const fn bounds(self) -> IntervalBounds {
        match self {
            Self::Interval(bounds) => bounds,
            Self::SameWindow(_) => IntervalBounds {
                lower_ms: 0,
                upper_ms: 0,
            },
        }
    }

    /// The times at which a row of event time `time` joins, earliest first. That of a window is
    /// its last, so that rows of the same window, and no others, join at the same time.
    pub(super) fn times_of(self, time: EventTime) -> JoinTimes {
        match self {
            Self::SameWindow(assigner) if !assigner.is_tumbling() => {
                JoinTimes::Windows(Box::new(WindowTimes {
                    assigner,
                    next: assigner.first_number(time),
                    last: assigner.last_number(time),
                }))
            }
            _ => JoinTimes::Own(self.only_time_of(time)),
        }
    }

    /// The time at which a row of event time `time` joins, if it is always one.
    fn only_time_of(self, time: EventTime) -> Option<EventTime> {
        OnlyTime::of(self).at(time)
    }

    /// The first join time that may still come after `watermark`. Windows are complete when the
    /// watermark reaches their last event time, as they are everywhere.
    pub(super) fn frontier(self, watermark: EventTime) -> i128 {
        match self {
            _ if watermark == EVENT_TIME_MAX => Self::AFTER_ALL,
            Self::Interval(_) => watermark.into(),
            Self::SameWindow(_) => i128::from(watermark) + 1,
        }
    }

    /// The last time at which a row joins.
    pub(super) fn last_time_of(self, time: EventTime) -> EventTime {
        match self {
            Self::Interval(_) => time,
            Self::SameWindow(assigner) => assigner.window(assigner.last_number(time)).last(),
        }
    }

    /// The windows, where each row joins in one and no two overlap.
    pub(super) fn separate_windows(self) -> Option<WindowAssigner> {
        match self {
            Self::SameWindow(assigner) => assigner.is_tumbling().then_some(assigner),
            Self::Interval(_) => None,
        }
    }

    /// The watermark to pass on when `watermark` has come: rows that are still waiting for a
    /// match are not made late by it.
    pub(super) fn passed_on(self, kind: JoinKind, watermark: Watermark) -> Watermark {
        let Self::Interval(bounds) = self else {
            return watermark;
        };
        let (left, right) = (kind.left_alone(), kind.right_alone());
        let mut held_ms = 0;
        if left.matched || left.unmatched {
            held_ms = bounds.upper_ms.max(0);
        }
        if right.matched || right.unmatched {
            held_ms = held_ms.max(bounds.lower_ms.saturating_neg());
        }
        match watermark.timestamp {
            EVENT_TIME_MAX => watermark,
            timestamp => Watermark {
                timestamp: timestamp.saturating_sub(held_ms.max(0)),
                ..watermark
            },
        }
    }
}

/// The times at which rows join, where each has one.
pub(super) enum OnlyTime {
    Own,
    /// That of the window, with the one of the row before, in which most rows are too.
    Window(WindowAssigner, Pane),
    /// Rows may have several.
    Not,
}

impl OnlyTime {
    pub(super) fn of(time: JoinTime) -> Self {
        match time {
            JoinTime::Interval(_) => Self::Own,
            JoinTime::SameWindow(windows) if windows.is_tumbling() => {
                Self::Window(windows, windows.pane_of(0))
            }
            JoinTime::SameWindow(_) => Self::Not,
        }
    }

    /// The time at which a row of event time `time` joins.
    #[inline]
    pub(super) fn at(&mut self, time: EventTime) -> Option<EventTime> {
        match self {
            Self::Own => Some(time),
            Self::Window(windows, pane) => {
                if !pane.contains(time) {
                    *pane = windows.pane_of(time);
                }
                Some(pane.last)
            }
            Self::Not => None,
        }
    }
}

impl Iterator for JoinTimes {
    type Item = EventTime;

    fn next(&mut self) -> Option<EventTime> {
        match self {
            Self::Own(time) => time.take(),
            Self::Windows(times) => (times.next <= times.last).then(|| {
                times.next += 1;
                times.assigner.window(times.next - 1).last()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(lower_ms: i64, upper_ms: i64) -> JoinTime {
        JoinTime::Interval(IntervalBounds::new(lower_ms, upper_ms).expect("in order"))
    }

    #[test]
    fn bounds_that_nothing_is_within_are_refused() {
        let refused = IntervalBounds::new(2, 1).expect_err("2 > 1");
        assert!(refused.to_string().contains("swap"), "{refused}");
    }

    #[test]
    fn the_watermark_waits_for_rows_that_may_come_out_alone() {
        let passed = |time: JoinTime, kind, at| time.passed_on(kind, Watermark::active(at));
        let times = bounds(-3, 5);
        for (kind, held) in [
            (JoinKind::Inner, 0),
            (JoinKind::Left, 5),
            (JoinKind::LeftSemi, 5),
            (JoinKind::RightAnti, 3),
            (JoinKind::Full, 5),
        ] {
            assert_eq!(passed(times, kind, 100).timestamp, 100 - held, "{kind:?}");
        }
        assert_eq!(passed(bounds(-9, -5), JoinKind::Left, 100).timestamp, 100);
        let (min, max) = (i64::MIN, i64::MAX);
        assert_eq!(passed(times, JoinKind::Full, min).timestamp, min);
        assert_eq!(passed(times, JoinKind::Full, max).timestamp, max);
        let widest = bounds(min, max);
        assert_eq!(passed(widest, JoinKind::Full, 0).timestamp, -max);
    }

    #[test]
    fn a_row_joins_once_in_each_of_its_windows() {
        let assigner = WindowAssigner::sliding(10, 5, 0).expect("windows");
        let times = JoinTime::SameWindow(assigner);
        assert_eq!(times.times_of(7).collect::<Vec<_>>(), [9, 14]);
        let window = assigner.window(assigner.first_number(14));
        assert_eq!((window.start(), window.end()), (5, 15));
        assert_eq!(bounds(0, 1).times_of(7).collect::<Vec<_>>(), [7]);
    }
}
