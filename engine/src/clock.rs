//! The only place that reads a clock. Everything else is told the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Processing time: milliseconds since the Unix epoch, as the host's clock says.
pub type ProcessingTime = i64;

/// Monotonic time since a fixed instant of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(pub Duration);

impl Monotonic {
    /// The time from `earlier` to this, zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// This time plus `by`.
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }
}

/// Reads both clocks from one monotonic reading, so that processing time never steps back
/// within a run when the host's clock is set.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    started_wall_ms: i64,
}

impl Clock {
    /// A clock that starts now.
    #[allow(
        clippy::disallowed_methods,
        reason = "this module is where clocks are read"
    )]
    pub fn start() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: Instant::now(),
            started_wall_ms: to_ms(wall),
        }
    }

    /// Monotonic time since the clock was started.
    pub fn now(&self) -> Monotonic {
        Monotonic(self.started.elapsed())
    }

    /// What this clock says at a reading of `other`.
    pub fn at(&self, reading: Monotonic, other: &Self) -> Monotonic {
        let at = other.started + reading.0;
        Monotonic(at.saturating_duration_since(self.started))
    }

    /// When the clock was started, in nanoseconds of the host's monotonic clock: other processes
    /// of the host can tell by it how far their clocks are apart.
    pub fn started_nanos(&self) -> u64 {
        let host = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let host = Duration::new(host.tv_sec.unsigned_abs(), host.tv_nsec as u32);
        let started = host.saturating_sub(self.started.elapsed());
        u64::try_from(started.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Processing time of a monotonic reading of this clock.
    pub fn processing_time(&self, at: Monotonic) -> ProcessingTime {
        self.started_wall_ms.saturating_add(to_ms(at.0))
    }
}

/// CPU time of the whole process so far, user and system.
pub fn process_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn to_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
