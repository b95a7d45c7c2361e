//! What one run of a contender gave.

use std::time::Duration;

use crate::latencies::Latencies;
use crate::spent::Spent;

/// What one run gave.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// In the unit of the case.
    pub(crate) value: f64,
    pub(crate) wall: Duration,
    /// What all threads and processes that took part took of the CPUs.
    pub(crate) spent: Spent,
    /// Bytes that were moved; 0 where moving bytes is not the point.
    pub(crate) bytes: u64,
    /// Bytes that were copied meanwhile, where that is counted: those that go along with what
    /// is moved too.
    pub(crate) copied_bytes: Option<u64>,
    /// The times of all that `value` is one figure of, where it is a latency.
    pub(crate) latencies: Option<Latencies>,
    /// Those of each process, where several have measured them.
    pub(crate) measured: Vec<Measured>,
    /// Of a rate at which things are due, the share that was held.
    pub(crate) held_share: Option<f64>,
}

/// The times that one of several processes has measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Which of them it is.
    pub(crate) process: &'static str,
    pub(crate) latencies: Latencies,
}

impl Sample {
    /// Of a rate: `count` operations in `wall`.
    pub(crate) fn rate(count: u64, wall: Duration, spent: Spent, bytes: u64) -> Self {
        Self {
            value: count as f64 / wall.as_secs_f64(),
            wall,
            spent,
            bytes,
            copied_bytes: None,
            latencies: None,
            measured: Vec::new(),
            held_share: None,
        }
    }

    /// Of a latency, in the unit of the case.
    pub(crate) fn latency(value: f64, wall: Duration, spent: Spent) -> Self {
        Self {
            value,
            wall,
            spent,
            bytes: 0,
            copied_bytes: None,
            latencies: None,
            measured: Vec::new(),
            held_share: None,
        }
    }

    /// The same, where so many bytes were copied; none where that is not counted.
    pub(crate) fn copying(self, bytes: Option<u64>) -> Self {
        Self {
            copied_bytes: bytes,
            ..self
        }
    }

    /// The same, with all the times that its value is one figure of.
    pub(crate) fn with_latencies(self, latencies: Latencies) -> Self {
        Self {
            latencies: Some(latencies),
            ..self
        }
    }

    /// The same, whose times are those of several processes.
    pub(crate) fn measured_by(self, measured: Vec<Measured>) -> Self {
        Self { measured, ..self }
    }

    /// The same, of a rate of which this share was held.
    pub(crate) fn holding(self, share: f64) -> Self {
        Self {
            held_share: Some(share),
            ..self
        }
    }
}

impl Measured {
    pub(crate) fn by(process: &'static str, latencies: Latencies) -> Self {
        Self { process, latencies }
    }
}
