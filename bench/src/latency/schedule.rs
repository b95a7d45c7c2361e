//! When batches are due, and how late they are back.

use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::latencies::Latencies;

/// Who sleeps until a time is awake so long after it at most, mostly.
const WAKES_WITHIN: Duration = Duration::from_micros(200);

/// How many batches are due, and how many a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) rate: u64,
    pub(super) count: u64,
}

/// Batches that are due at a fixed rate, whether or not those before are back, and the time from
/// when each was due until it was back.
pub(super) struct OpenLoop {
    began: Instant,
    schedule: Schedule,
    sent: u64,
    back: u64,
    latencies: Latencies,
}

impl OpenLoop {
    /// The first batch is due now.
    pub(super) fn begin(schedule: Schedule) -> Self {
        let latencies = Latencies::new();
        Self {
            began: Instant::now(),
            schedule,
            sent: 0,
            back: 0,
            latencies,
        }
    }

    /// The number of the next batch, if it is due and none is left out.
    #[inline]
    pub(super) fn next_due(&mut self) -> Option<i64> {
        let is_due = self.sent < self.schedule.count && self.began.elapsed() >= self.due(self.sent);
        is_due.then(|| {
            self.sent += 1;
            self.sent as i64 - 1
        })
    }

    /// How long one may sleep before the next batch is due; none where it is too soon, as who
    /// sleeps is not woken to the microsecond.
    pub(super) fn may_sleep(&self) -> Option<Duration> {
        if self.sent == self.schedule.count {
            return Some(Duration::from_secs(1));
        }
        let until_due = self.due(self.sent).saturating_sub(self.began.elapsed());
        until_due
            .checked_sub(WAKES_WITHIN)
            .filter(|sleep| !sleep.is_zero())
    }

    /// The batch `number` is back.
    ///
    /// # Errors
    /// When it should have been another.
    #[inline]
    pub(super) fn is_back(&mut self, number: i64) -> Result<(), BenchError> {
        if number != self.back as i64 {
            let expected = self.back;
            return Err(BenchError::new(format!(
                "batch {number} is back, and should have been {expected}"
            )));
        }
        let latency = self.began.elapsed() - self.due(self.back);
        self.back += 1;
        self.latencies.record(latency);
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.back == self.schedule.count
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The times of those that are back.
    pub(super) fn into_latencies(self) -> Latencies {
        self.latencies
    }

    fn due(&self, number: u64) -> Duration {
        Duration::from_nanos(number * 1_000_000_000 / self.schedule.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_too_late_counts_from_when_it_was_due() {
        let schedule = Schedule {
            rate: 1_000,
            count: 20,
        };
        let mut trips = OpenLoop::begin(schedule);
        std::thread::sleep(Duration::from_millis(25));
        for number in 0..20 {
            assert_eq!(trips.next_due(), Some(number));
            trips.is_back(number).unwrap();
        }
        assert!(trips.is_done() && trips.next_due().is_none());
        assert!(trips.is_back(19).is_err());
        assert!(trips.into_latencies().percentile_us(50.0) > 10_000.0);
    }
}
