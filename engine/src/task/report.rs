//! What a task has to report.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::clock::Monotonic;
use crate::element::{EVENT_TIME_MIN, EventTime};
use crate::error::OperatorError;
use crate::operator::{RowCounts, StateWriter};
use crate::output::EdgeReport;

/// The longest latency that is told apart from longer ones, in nanoseconds: one hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// What a task has to report.
#[derive(Clone, Debug, Default)]
pub struct TaskReport {
    /// The task's name.
    pub name: String,
    /// The uid of its first operator or source, by which the plan knows its chain.
    pub uid: String,
    /// Rows that a source produced.
    pub source_rows: u64,
    /// Rows that came in over edges.
    pub rows_in: u64,
    /// Rows that went out, over edges or into a sink.
    pub rows_out: u64,
    /// Rows that went into a sink.
    pub sink_rows: u64,
    /// Rows that went nowhere: side outputs that nothing consumes, edges whose receiver wants
    /// no more.
    pub discarded_rows: u64,
    /// Elements that came in over edges, data and control.
    pub elements_in: u64,
    /// When the first row reached a sink, on the job's clock.
    pub first_row: Option<Monotonic>,
    /// Checkpoints that did not complete in this task: a barrier that will never come on every
    /// input, or an operator that could not write its state.
    pub checkpoints_lost: u64,
    /// The watermark that the task has reached.
    pub watermark: Option<EventTime>,
    /// The operators of the task that treat rows apart from others, in the order of the chain.
    pub operators: Vec<OperatorReport>,
    /// The edges that leave the task.
    pub edges: Vec<EdgeReport>,
    /// From entering the job to reaching the sink, one sample a batch.
    pub latency: Latency,
}

/// What an operator of a task has to report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorReport {
    /// The operator's name.
    pub name: String,
    /// Rows that it treated apart from others.
    pub counts: RowCounts,
}

impl TaskReport {
    /// The watermark, unless there is none yet.
    pub fn set_watermark(&mut self, watermark: EventTime) {
        self.watermark = (watermark != EVENT_TIME_MIN).then_some(watermark);
    }
}

/// A histogram of latencies. It is created with the first sample, since most tasks have none.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    histogram: Option<Histogram<u64>>,
    saturated: u64,
}

impl Latency {
    /// Adds a sample. Samples above one hour count as one hour and are counted apart.
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.saturated += u64::from(ns > LATENCY_NS_MAX);
        self.histogram()
            .saturating_record(ns.clamp(1, LATENCY_NS_MAX));
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.saturated += other.saturated;
        if let Some(histogram) = &other.histogram {
            self.histogram()
                .add(histogram)
                .expect("all latency histograms have the same bounds");
        }
    }

    /// Samples taken.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Samples above one hour.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The latency that `quantile` (0 to 1) of the samples do not exceed; zero without samples.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let ns = self
            .histogram
            .as_ref()
            .map_or(0, |h| h.value_at_quantile(quantile));
        Duration::from_nanos(ns)
    }

    /// The longest latency; zero without samples.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.as_ref().map_or(0, Histogram::max))
    }

    /// Every latency that was told apart, in nanoseconds, with how many samples have it.
    pub fn samples(&self) -> impl Iterator<Item = (u64, u64)> {
        let histogram = self.histogram.iter();
        let recorded = histogram.flat_map(|histogram| histogram.iter_recorded());
        recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    /// The latencies that [`Latency::samples`] and [`Latency::saturated`] gave.
    pub fn of_samples(samples: impl IntoIterator<Item = (u64, u64)>, saturated: u64) -> Self {
        let mut latency = Self {
            saturated,
            ..Self::default()
        };
        for (ns, count) in samples {
            let ns = ns.clamp(1, LATENCY_NS_MAX);
            latency.histogram().saturating_record_n(ns, count);
        }
        latency
    }

    fn histogram(&mut self) -> &mut Histogram<u64> {
        self.histogram.get_or_insert_with(|| {
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are in order")
        })
    }
}

/// Takes state and keeps none of it: what a job without checkpoint storage writes to.
pub(super) struct Discard;

impl StateWriter for Discard {
    fn put_keyed(&mut self, _: &str, _: u32, _: &[u8], _: &[u8]) -> Result<(), OperatorError> {
        Ok(())
    }

    fn put_operator(&mut self, _: &str, _: &[u8]) -> Result<(), OperatorError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_latency_is_dropped_however_long_or_short() {
        let mut latency = Latency::default();
        for sample in [0, 1_000, 1_000_000_000, 7_200_000_000_000] {
            latency.record(Duration::from_nanos(sample));
        }
        assert_eq!((latency.count(), latency.saturated()), (4, 1));
        assert!(latency.max() >= Duration::from_secs(3_599));
        assert!(latency.quantile(0.25) <= Duration::from_nanos(1));
    }
}
