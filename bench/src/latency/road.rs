//! A way there and back, and how it is gone: at a fixed rate, or one trip after the other.

use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::latencies::Latencies;

use super::schedule::{OpenLoop, Schedule};

/// Sent in one go at most before a look is taken at what is back.
const SENT_TOGETHER_MAX: usize = 64;

/// Round trips before those that count, where they go one after the other.
pub(crate) const WARM_UP_TRIPS: u64 = 20;

/// How long who waits for one that is on its way may sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// A way there and back, seen from where it begins and ends.
pub(crate) trait Road {
    /// Sends a number, and returns whether there was room for it; the next is the same one if
    /// there was none.
    ///
    /// # Errors
    /// When the way is broken.
    fn send(&mut self, number: i64) -> Result<bool, BenchError>;

    /// The next number that is back, if one is.
    ///
    /// # Errors
    /// When the way is broken.
    fn take_back(&mut self) -> Result<Option<i64>, BenchError>;

    /// Lets time pass after a look that found something or nothing, and sleeps no longer than
    /// `limit` says when it comes to that; none is not at all.
    ///
    /// # Errors
    /// When the way is broken, or nothing has happened for a minute.
    fn wait(
        &mut self,
        has_worked: bool,
        limit: &dyn Fn() -> Option<Duration>,
    ) -> Result<(), BenchError>;
}

/// Sends what is due when it is due, until all are back.
///
/// # Errors
/// When the way is broken, or another number comes back.
pub(crate) fn at_a_rate(road: &mut dyn Road, schedule: Schedule) -> Result<OpenLoop, BenchError> {
    at_a_rate_from(Instant::now(), road, schedule)
}

/// The same, where the first is due at `began`.
///
/// # Errors
/// As for [`at_a_rate`].
pub(crate) fn at_a_rate_from(
    began: Instant,
    road: &mut dyn Road,
    schedule: Schedule,
) -> Result<OpenLoop, BenchError> {
    let mut trips = OpenLoop::begin(began, schedule);
    while !trips.is_done() {
        let mut has_worked = false;
        for _ in 0..SENT_TOGETHER_MAX {
            let Some(number) = trips.next_due() else {
                break;
            };
            if !road.send(number)? {
                trips.was_refused();
                break;
            }
            has_worked = true;
        }
        // Who has had everything may end the way behind the last.
        while !trips.is_done()
            && let Some(number) = road.take_back()?
        {
            trips.is_back(number)?;
            has_worked = true;
        }
        if !trips.is_done() {
            road.wait(has_worked, &|| trips.may_sleep())?;
        }
    }
    Ok(trips)
}

/// Goes one trip after the other.
///
/// # Errors
/// As for [`at_a_rate`].
pub(crate) fn one_by_one(road: &mut dyn Road, count: u64) -> Result<Times, BenchError> {
    let mut times = Times::begin();
    for number in 0..count as i64 {
        while !road.send(number)? {
            road.wait(false, &|| Some(SLEEP_MAX))?;
        }
        let back = loop {
            if let Some(back) = road.take_back()? {
                break back;
            }
            road.wait(false, &|| Some(SLEEP_MAX))?;
        };
        road.wait(true, &|| None)?;
        times.is_back();
        if back != number {
            return Err(BenchError::new(format!(
                "{back} is back, and should have been {number}"
            )));
        }
    }
    Ok(times)
}

/// How long each trip took, one after the other.
pub(crate) struct Times {
    began: Instant,
    last: Instant,
    trips: u64,
    pub(crate) latencies: Latencies,
    pub(crate) wall: Duration,
}

impl Times {
    /// The first trip begins now.
    pub(crate) fn begin() -> Self {
        let latencies = Latencies::new();
        let now = Instant::now();
        Self {
            began: now,
            last: now,
            trips: 0,
            latencies,
            wall: Duration::ZERO,
        }
    }

    /// A trip is over, and the next begins.
    #[inline]
    pub(crate) fn is_back(&mut self) {
        let now = Instant::now();
        if self.trips >= WARM_UP_TRIPS {
            self.latencies.record(now - self.last);
        }
        self.trips += 1;
        self.last = now;
        self.wall = now - self.began;
    }
}
