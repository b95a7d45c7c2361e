//! When batches are due, and how late they are back.

use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::latencies::Latencies;

/// Who sleeps until a time is awake so long after it at most, mostly.
const WAKES_WITHIN: Duration = Duration::from_micros(200);

/// How many batches are due, and how many a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) rate: u64,
    pub(crate) count: u64,
    /// After so long no more is sent, so that a rate which can't be held comes to an end.
    pub(crate) longest: Option<Duration>,
}

/// Batches that are due at a fixed rate, whether or not those before are back, and the time from
/// when each was due until it was back.
pub(crate) struct OpenLoop {
    began: Instant,
    schedule: Schedule,
    sent: u64,
    back: u64,
    last_back: Duration,
    latencies: Latencies,
}

impl Schedule {
    /// The whole of it, however long that takes.
    pub(crate) const fn new(rate: u64, count: u64) -> Self {
        Self {
            rate,
            count,
            longest: None,
        }
    }

    /// Ends `more` after the time that it should take.
    pub(crate) fn at_most(self, more: Duration) -> Self {
        Self {
            longest: Some(self.due(self.count) + more),
            ..self
        }
    }

    fn due(&self, number: u64) -> Duration {
        Duration::from_nanos((u128::from(number) * 1_000_000_000 / u128::from(self.rate)) as u64)
    }
}

impl OpenLoop {
    /// The first batch is due at `began`.
    pub(crate) fn begin(began: Instant, schedule: Schedule) -> Self {
        let latencies = Latencies::new();
        Self {
            began,
            schedule,
            sent: 0,
            back: 0,
            last_back: Duration::ZERO,
            latencies,
        }
    }

    /// The number of the next batch, if it is due and none is left out.
    #[inline]
    pub(crate) fn next_due(&mut self) -> Option<i64> {
        if self.sent >= self.schedule.count {
            return None;
        }
        let elapsed = Instant::now().checked_duration_since(self.began)?;
        if self
            .schedule
            .longest
            .is_some_and(|longest| elapsed > longest)
        {
            self.give_up(elapsed);
            return None;
        }
        let is_due = elapsed >= self.schedule.due(self.sent);
        is_due.then(|| {
            self.sent += 1;
            self.sent as i64 - 1
        })
    }

    /// The batch that was due last could not be sent, and is due still.
    #[inline]
    pub(crate) fn was_refused(&mut self) {
        self.sent -= 1;
    }

    /// How long one may sleep before the next batch is due; none where it is too soon, as who
    /// sleeps is not woken to the microsecond.
    pub(crate) fn may_sleep(&self) -> Option<Duration> {
        if self.sent == self.schedule.count {
            return Some(Duration::from_secs(1));
        }
        let until_due = self.schedule.due(self.sent);
        let until_due = until_due.saturating_sub(self.began.elapsed());
        until_due
            .checked_sub(WAKES_WITHIN)
            .filter(|sleep| !sleep.is_zero())
    }

    /// The batch `number` is back.
    ///
    /// # Errors
    /// When it should have been another.
    #[inline]
    pub(crate) fn is_back(&mut self, number: i64) -> Result<(), BenchError> {
        if number != self.back as i64 {
            let expected = self.back;
            return Err(BenchError::new(format!(
                "batch {number} is back, and should have been {expected}"
            )));
        }
        self.last_back = self.began.elapsed();
        let latency = self.last_back.saturating_sub(self.schedule.due(self.back));
        self.back += 1;
        self.latencies.record(latency);
        Ok(())
    }

    pub(crate) fn is_done(&self) -> bool {
        // Where another sends what comes, all of it may be here before the last has left.
        self.back == self.schedule.count && self.sent == self.schedule.count
    }

    /// From the beginning until the last was back.
    pub(crate) fn wall(&self) -> Duration {
        self.last_back
    }

    /// How many were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// The rate at which they were back, as a share of that at which they were due.
    pub(crate) fn held_share(&self) -> f64 {
        let due = self.last_back.as_secs_f64() * self.schedule.rate as f64;
        (self.back as f64 / due.max(f64::MIN_POSITIVE)).min(1.0)
    }

    /// The times of those that are back.
    pub(crate) fn into_latencies(self) -> Latencies {
        self.latencies
    }

    /// Those that were due and were not sent count with the time that they have waited.
    #[cold]
    fn give_up(&mut self, elapsed: Duration) {
        for number in self.sent..self.schedule.count {
            let Some(waited) = elapsed.checked_sub(self.schedule.due(number)) else {
                break;
            };
            self.latencies.record(waited);
        }
        self.schedule.count = self.sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_too_late_counts_from_when_it_was_due() {
        let mut trips = OpenLoop::begin(Instant::now(), Schedule::new(1_000, 20));
        std::thread::sleep(Duration::from_millis(25));
        for number in 0..20 {
            assert_eq!(trips.next_due(), Some(number));
            trips.is_back(number).unwrap();
        }
        assert!(trips.is_done() && trips.next_due().is_none());
        assert!(trips.is_back(19).is_err());
        assert!(trips.held_share() < 0.9);
        assert!(trips.into_latencies().percentile_us(50.0) > 10_000.0);
    }

    #[test]
    fn what_is_refused_is_due_still() {
        let mut trips = OpenLoop::begin(Instant::now(), Schedule::new(1_000_000, 2));
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(trips.next_due(), Some(0));
        trips.was_refused();
        assert_eq!(trips.next_due(), Some(0));
        assert_eq!(trips.next_due(), Some(1));
        assert_eq!(trips.sent(), 2);
    }

    #[test]
    fn a_rate_that_is_not_held_ends_and_what_was_not_sent_counts_as_late() {
        let schedule = Schedule::new(1_000, 20).at_most(Duration::from_millis(5));
        let mut trips = OpenLoop::begin(Instant::now(), schedule);
        assert_eq!(trips.next_due(), Some(0));
        std::thread::sleep(Duration::from_millis(30));
        assert!(trips.next_due().is_none() && !trips.is_done());
        trips.is_back(0).unwrap();
        assert!(trips.is_done());
        assert!(trips.held_share() < 0.1, "{}", trips.held_share());
        let latencies = trips.into_latencies();
        assert_eq!(latencies.count(), 20);
        assert!(latencies.percentile_us(1.0) > 10_000.0);
    }

    #[test]
    fn nothing_is_due_before_the_beginning() {
        let began = Instant::now() + Duration::from_secs(3_600);
        let mut trips = OpenLoop::begin(began, Schedule::new(1_000, 1));
        assert_eq!(trips.next_due(), None);
        assert!(!trips.is_done());
    }

    #[test]
    fn what_comes_from_another_is_not_the_end_before_all_was_sent() {
        let mut trips = OpenLoop::begin(Instant::now(), Schedule::new(1_000_000, 1));
        trips.is_back(0).unwrap();
        assert!(!trips.is_done());
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(trips.next_due(), Some(0));
        assert!(trips.is_done());
    }
}
