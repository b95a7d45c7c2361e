//! How long each of many things took.

use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::case::Percentile;
use crate::error::BenchError;

/// The longest time that is told apart, in nanoseconds: an hour. Three digits up to here take
/// 260 KiB, all of it at once: growing would take time in the middle of what is measured.
const NS_MAX: u64 = 3_600_000_000_000;

/// Digits that are kept of each time.
const DIGITS: u8 = 3;

/// The percentiles that are shown of a distribution.
const SHOWN: [f64; 12] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0,
];

/// The times of all of them: none is dropped, whatever it was.
///
/// A time of 0 counts as 0. One above an hour counts as an hour, and is counted once more as
/// such, so that who reads the figures is told.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    ns: Histogram<u64>,
    beyond: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let ns = Histogram::new_with_bounds(1, NS_MAX, DIGITS);
        Self {
            // Invariant: three digits and an hour are within what the library takes.
            ns: ns.expect("the bounds are valid"),
            beyond: 0,
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.beyond += u64::from(ns > NS_MAX);
        self.ns.saturating_record(ns.min(NS_MAX));
    }

    /// Takes those of another in as well.
    pub(crate) fn add(&mut self, other: &Self) {
        // Invariant: both have the bounds of `new`, and so one takes all that the other holds.
        self.ns.add(&other.ns).expect("the bounds are the same");
        self.beyond += other.beyond;
    }

    /// As bytes that [`Self::decode`] reads, in the compressed form that HDR histograms have.
    ///
    /// # Errors
    /// When the library can't.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, BenchError> {
        let mut bytes = Vec::new();
        let encoded = V2DeflateSerializer::new().serialize(&self.ns, &mut bytes);
        encoded.map_err(|error| BenchError::new(format!("{error:?}")))?;
        bytes.extend(self.beyond.to_le_bytes());
        Ok(bytes)
    }

    /// What [`Self::encode`] has made, in this process or in another.
    ///
    /// # Errors
    /// When it was made by something else.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BenchError> {
        let no_latencies = || BenchError::new("these bytes are no latencies");
        let (mut encoded, beyond) = bytes.split_last_chunk().ok_or_else(no_latencies)?;
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut encoded)
            .map_err(|_| no_latencies())?;
        let mut latencies = Self::new();
        latencies.ns.add(&read).map_err(|_| no_latencies())?;
        latencies.beyond = u64::from_le_bytes(*beyond);
        Ok(latencies)
    }

    /// All of them, in nanoseconds.
    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.ns
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.ns.len()
    }

    /// How many took more than an hour, and count as an hour.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The time within which so many of a hundred were, in microseconds.
    pub(crate) fn percentile_us(&self, percentile: f64) -> f64 {
        self.ns.value_at_percentile(percentile) as f64 / 1e3
    }

    /// The distribution in a few points; `baseline` beside it where there is one.
    pub(crate) fn percentiles(&self, baseline: Option<&Self>) -> Vec<Percentile> {
        let point = |percentile| Percentile {
            percentile,
            ours: self.percentile_us(percentile),
            baseline: baseline.map(|baseline| baseline.percentile_us(percentile)),
        };
        SHOWN.into_iter().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario B75.
    #[test]
    fn b75_no_time_is_dropped_and_one_beyond_the_range_is_told() {
        let mut latencies = Latencies::new();
        for time in [
            Duration::from_micros(1),
            Duration::from_secs(1),
            Duration::from_secs(2 * 3_600),
            Duration::ZERO,
        ] {
            latencies.record(time);
        }
        assert_eq!((latencies.count(), latencies.beyond()), (4, 1));
        let hour_us = 3_600.0 * 1e6;
        let max_us = latencies.percentile_us(100.0);
        assert!((max_us / hour_us - 1.0).abs() < 0.001, "{max_us}");
        assert_eq!(latencies.percentile_us(0.0), 0.0);
    }

    #[test]
    fn what_is_added_counts_as_if_it_had_been_recorded_here() {
        let (mut one, mut other) = (Latencies::new(), Latencies::new());
        one.record(Duration::from_micros(10));
        other.record(Duration::from_micros(30));
        other.record(Duration::from_secs(4_000));
        one.add(&other);
        assert_eq!((one.count(), one.beyond()), (3, 1));
        assert!((one.percentile_us(50.0) - 30.0).abs() < 0.1);
    }

    #[test]
    fn what_another_process_has_measured_counts_as_if_it_had_been_recorded_here() {
        let (mut one, mut other) = (Latencies::new(), Latencies::new());
        one.record(Duration::from_micros(10));
        other.record(Duration::from_micros(30));
        other.record(Duration::from_secs(4_000));
        one.add(&Latencies::decode(&other.encode().unwrap()).unwrap());
        assert_eq!((one.count(), one.beyond()), (3, 1));
        assert_eq!(one.histogram().max(), other.histogram().max());
        assert!(Latencies::decode(b"something else").is_err());
    }

    #[test]
    fn a_distribution_is_shown_from_its_least_to_its_greatest() {
        let mut latencies = Latencies::new();
        (1..=1_000).for_each(|us| latencies.record(Duration::from_micros(us)));
        let points = latencies.percentiles(Some(&latencies));
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!((first.ours - 1.0).abs() < 0.01 && (last.ours - 1_000.0).abs() < 1.0);
        assert!(points.is_sorted_by(|a, b| a.ours <= b.ours));
        assert_eq!(first.baseline, Some(first.ours));
    }
}
