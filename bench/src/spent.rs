//! What a run takes of the CPUs: time, and how often it was taken off one.

use std::ops::{Add, AddAssign, Sub};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// CPU time and context switches, of a thread or of a whole process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) cpu_s: f64,
    /// Context switches, those that were waited for and those that were not.
    pub(crate) switches: u64,
}

impl Spent {
    /// What all threads of this process have taken so far.
    pub(crate) fn of_process() -> Self {
        Self::read(ClockId::ProcessCPUTime, UsageWho::RUSAGE_SELF)
    }

    /// What this thread has taken so far.
    pub(crate) fn of_thread() -> Self {
        Self::read(ClockId::ThreadCPUTime, UsageWho::RUSAGE_THREAD)
    }

    fn read(clock: ClockId, who: UsageWho) -> Self {
        // Of this very process and thread the kernel always answers.
        let switches = getrusage(who).map_or(0, |usage| switches(&usage));
        Self {
            cpu_s: seconds(clock),
            switches,
        }
    }
}

impl Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cpu_s: self.cpu_s + other.cpu_s,
            switches: self.switches + other.switches,
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Spent {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu_s: self.cpu_s - earlier.cpu_s,
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

/// Seconds of a clock that all processes of the machine share.
pub(crate) fn monotonic_s() -> f64 {
    seconds(ClockId::Monotonic)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn switches(usage: &Usage) -> u64 {
    let both = usage.voluntary_context_switches() + usage.involuntary_context_switches();
    u64::try_from(both).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_that_sleeps_is_taken_off_its_cpu_and_takes_hardly_any_time() {
        let before = Spent::of_thread();
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let spent = Spent::of_thread() - before;
        assert!(spent.switches >= 5, "{spent:?}");
        assert!(spent.cpu_s < 0.009, "{spent:?}");
    }

    #[test]
    fn a_process_has_taken_at_least_what_a_thread_of_it_has() {
        let (thread, process) = (Spent::of_thread(), Spent::of_process());
        assert!(process.cpu_s >= thread.cpu_s, "{process:?} {thread:?}");
        assert!(process.switches >= thread.switches);
    }
}
