//! How far the core of the peer is.
//!
//! Measured on the way: now and then the producer times the load of the line
//! that the consumer has just written. It follows when threads, or under a
//! hypervisor whole processors, are moved, and needs nothing of the peer.
#![allow(clippy::disallowed_methods, reason = "what is measured here is a load")]

use std::time::{Duration, Instant};

/// How far the core of the peer is, as the time tells that a line takes from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Too few lines were measured.
    #[default]
    Unknown,
    /// The cores share a cache.
    Near,
    /// They don't.
    Far,
}

/// One load in so many is measured, because the clock costs about as much as a line. Until the
/// placement is known each is.
const MEASURE_EVERY: u32 = 8;

/// How many loads are looked at together; the middle one counts.
const SAMPLES: usize = 9;

/// A line that takes longer comes from far. The clock is included: where this was measured, a
/// near line takes 20 to 50 ns with it and a far one 120 to 150.
const NEAR_MAX: Duration = Duration::from_nanos(85);

/// Decides from the time of some loads.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    loads: u32,
    samples: Vec<Duration>,
    placement: Placement,
}

impl Probe {
    pub(crate) fn placement(&self) -> Placement {
        self.placement
    }

    /// Runs `load`, and measures it if it is its turn. The load tells whether it found something
    /// new: only then did the line have to come from the peer.
    #[inline]
    pub(crate) fn measure<R>(
        &mut self,
        load: impl FnOnce() -> R,
        is_new: impl FnOnce(&R) -> bool,
    ) -> R {
        self.loads = self.loads.wrapping_add(1);
        let is_known = self.placement != Placement::Unknown;
        if is_known && !self.loads.is_multiple_of(MEASURE_EVERY) {
            return load();
        }
        let start = Instant::now();
        let loaded = load();
        let taken = start.elapsed();
        if is_new(&loaded) {
            self.note(taken);
        }
        loaded
    }

    fn note(&mut self, taken: Duration) {
        self.samples.push(taken);
        if self.samples.len() < SAMPLES {
            return;
        }
        self.samples.sort_unstable();
        self.placement = if self.samples[SAMPLES / 2] <= NEAR_MAX {
            Placement::Near
        } else {
            Placement::Far
        };
        self.samples.clear();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_some_loads_decides_and_outliers_do_not() {
        let mut probe = Probe::default();
        let mut note = |times: [u64; SAMPLES]| {
            for time in times {
                probe.note(Duration::from_nanos(time));
            }
            probe.placement()
        };
        assert_eq!(
            note([40, 50, 9000, 40, 20, 9000, 50, 40, 30]),
            Placement::Near
        );
        assert_eq!(
            note([140, 130, 20, 150, 120, 9000, 130, 140, 30]),
            Placement::Far
        );
    }

    #[test]
    fn loads_that_found_something_new_are_measured_all_at_first_and_then_some() {
        let mut probe = Probe::default();
        for is_new in [false, true] {
            for _ in 0..SAMPLES {
                assert_eq!(probe.measure(|| 7, |_| is_new), 7);
            }
            assert_eq!(probe.placement() != Placement::Unknown, is_new);
        }
        for _ in 0..MEASURE_EVERY {
            probe.measure(|| 7, |_| true);
        }
        assert_eq!(probe.samples.len(), 1);
    }
}
