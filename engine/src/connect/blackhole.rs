//! A sink that counts what it gets, and forgets it.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::error::OperatorError;
use crate::operator::{Progress, Sink, Subtask};

use crate::connect::{ConnectorStats, Counters, SinkConnector, checksum};

/// Options of the connector `blackhole`, a sink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BlackholeOptions {
    /// Whether to compute the checksum of all rows ([`checksum()`]). It does not depend on
    /// their order, so it is the same at any parallelism. Default true.
    pub checksum: bool,
}

impl Default for BlackholeOptions {
    fn default() -> Self {
        Self { checksum: true }
    }
}

/// A sink that counts rows, batches and bytes of memory, and sums the hashes of all rows.
#[derive(Clone, Debug)]
pub struct Blackhole {
    options: BlackholeOptions,
    stats: ConnectorStats,
}

impl Blackhole {
    /// A blackhole with counters of its own.
    pub fn new(options: BlackholeOptions) -> Self {
        Self {
            options,
            stats: ConnectorStats::default(),
        }
    }

    /// A sink for one subtask, which counts into the same counters as all others of this
    /// blackhole.
    pub fn sink(&self) -> BlackholeSink {
        BlackholeSink {
            checksum: self.options.checksum,
            stats: self.stats.clone(),
            delta: Counters::default(),
        }
    }
}

impl SinkConnector for Blackhole {
    fn describe(&self) -> String {
        "blackhole".to_owned()
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, _subtask: &Subtask, _schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>> {
        Box::new(self.sink())
    }
}

/// One subtask of a [`Blackhole`].
#[derive(Debug)]
pub struct BlackholeSink {
    checksum: bool,
    stats: ConnectorStats,
    /// What has not been added to the counters yet.
    delta: Counters,
}

impl Sink<RecordBatch> for BlackholeSink {
    fn write(
        &mut self,
        batch: RecordBatch,
        _now: ProcessingTime,
    ) -> Result<Progress, OperatorError> {
        self.delta.rows += batch.num_rows() as u64;
        self.delta.batches += 1;
        self.delta.bytes += batch.bytes() as u64;
        if self.checksum {
            let sum = self.delta.checksum.unwrap_or(0);
            self.delta.checksum = Some(sum.wrapping_add(checksum(&batch)));
        }
        self.stats.try_add(&mut self.delta);
        Ok(Progress::Done)
    }
}

/// What could not be added while another subtask was counting is added at the end.
impl Drop for BlackholeSink {
    fn drop(&mut self) {
        self.stats.add(&self.delta);
    }
}
