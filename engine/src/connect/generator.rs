//! Makes rows of numbers, at a given rate.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use ringway_shm::Bell;
use serde::Deserialize;

use crate::batch::EVENT_TIME_COLUMN;
use crate::element::{EVENT_TIME_MAX, EVENT_TIME_MIN, EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Source, SourceProgress, Subtask};

use super::rate::{Pace, describe_rows};
use super::{ConnectError, ConnectorStats, Counters, SourceConnector};

/// Options of the connector `generator`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GeneratorOptions {
    /// How many rows to make, all subtasks together. Default: without end.
    pub rows: Option<u64>,
    /// Rows per second, all subtasks together; 0 is as fast as possible. Default 0.
    pub rate: u64,
    /// Rows of a batch, at most; 1 to 8192. Default 8192.
    pub batch_rows: usize,
    /// Equal seeds make equal rows. Default 0.
    pub seed: u64,
    /// Keys are spread evenly over 0 to this number, which is not one of them. At least 1.
    /// Default 1000.
    pub keys: u64,
    /// The event time of row 0, in milliseconds since the Unix epoch. Default 0.
    pub start_ms: EventTime,
    /// Milliseconds of event time from one row to the next. Default 1.
    pub step_ms: u64,
    /// How far, in milliseconds, a row's event time may be before its turn: rows are out of
    /// order by up to that much, and watermarks stay behind. Default 0.
    pub jitter_ms: u64,
}

impl Default for GeneratorOptions {
    fn default() -> Self {
        Self {
            rows: None,
            rate: 0,
            batch_rows: BATCH_ROWS,
            seed: 0,
            keys: 1000,
            start_ms: 0,
            step_ms: 1,
            jitter_ms: 0,
        }
    }
}

/// A source of made-up rows: `event_time`, `id` (0, 1, 2 and so on), `key` and `value` (any
/// int64), all int64. Row number n is the same at any parallelism and rate; subtask i of p
/// makes the rows i, i + p, i + 2p and so on.
#[derive(Clone, Debug)]
pub struct Generator {
    options: GeneratorOptions,
    schema: SchemaRef,
    stats: ConnectorStats,
}

impl Generator {
    /// A generator.
    ///
    /// # Errors
    /// [`ConnectError::Option`] when an option is out of its range.
    pub fn new(options: GeneratorOptions) -> Result<Self, ConnectError> {
        if !(1..=BATCH_ROWS).contains(&options.batch_rows) {
            let reason = format!("must be from 1 to {BATCH_ROWS}");
            return Err(ConnectError::option("batch_rows", reason));
        }
        if options.keys == 0 || i64::try_from(options.keys).is_err() {
            let reason = format!("must be from 1 to {}", i64::MAX);
            return Err(ConnectError::option("keys", reason));
        }
        let fields = vec![
            Field::new(EVENT_TIME_COLUMN, DataType::Int64, true),
            Field::new("id", DataType::Int64, true),
            Field::new("key", DataType::Int64, true),
            Field::new("value", DataType::Int64, true),
        ];
        Ok(Self {
            options,
            schema: Arc::new(Schema::new(fields)),
            stats: ConnectorStats::default(),
        })
    }
}

impl SourceConnector for Generator {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn is_bounded(&self) -> bool {
        self.options.rows.is_some()
    }

    fn describe(&self) -> String {
        describe_rows("generator", self.options.rows, self.options.rate)
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let mut pace = Pace::new(self.options.rate);
        pace.share(subtask.index, subtask.parallelism.subtasks());
        Box::new(GeneratorSource {
            next_id: u64::from(subtask.index),
            stride: u64::from(subtask.parallelism.subtasks()),
            options: self.options.clone(),
            schema: self.schema.clone(),
            pace,
            made: 0,
            reached: EVENT_TIME_MIN,
            stats: self.stats.clone(),
            delta: Counters::default(),
        })
    }
}

struct GeneratorSource {
    options: GeneratorOptions,
    schema: SchemaRef,
    pace: Pace,
    next_id: u64,
    stride: u64,
    made: u64,
    /// The last watermark emitted.
    reached: EventTime,
    stats: ConnectorStats,
    /// What has not been added to the counters yet.
    delta: Counters,
}

impl GeneratorSource {
    /// Rows that this subtask has still to make.
    fn left(&self) -> u64 {
        match self.options.rows {
            Some(rows) => rows.saturating_sub(self.next_id).div_ceil(self.stride),
            None => u64::MAX,
        }
    }

    fn batch(&mut self, rows: usize) -> Result<RecordBatch, OperatorError> {
        let mut columns: [Vec<i64>; 4] = std::array::from_fn(|_| Vec::with_capacity(rows));
        for _ in 0..rows {
            let id = self.next_id;
            let random = mix(self.options.seed ^ mix(id));
            let early = match self.options.jitter_ms {
                0 => 0,
                jitter_ms => mix(random ^ 1) % jitter_ms.saturating_add(1),
            };
            columns[0].push(self.turn_of(id).saturating_sub_unsigned(early));
            columns[1].push(id.cast_signed());
            columns[2].push((random % self.options.keys).cast_signed());
            columns[3].push(mix(random).cast_signed());
            self.next_id = id.saturating_add(self.stride);
        }
        self.made += rows as u64;
        let columns = columns.map(|column| Arc::new(Int64Array::from(column)) as _);
        Ok(RecordBatch::try_new(self.schema.clone(), columns.into())?)
    }

    /// The event time of a row that is not early.
    fn turn_of(&self, id: u64) -> EventTime {
        let after_ms = id.saturating_mul(self.options.step_ms);
        self.options.start_ms.saturating_add_unsigned(after_ms)
    }
}

impl Source<RecordBatch> for GeneratorSource {
    fn open(&mut self, _subtask: &Subtask, _bell: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(
        &mut self,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        let left = self.left();
        if left == 0 {
            return Ok(SourceProgress::End);
        }
        let due = self.pace.due(out.now()).saturating_sub(self.made).min(left);
        if due == 0 {
            return Ok(SourceProgress::Pending(Some(self.pace.next_at(self.made))));
        }
        if out.is_full() {
            return Ok(SourceProgress::Ready);
        }
        let rows = usize::try_from(due).unwrap_or(usize::MAX);
        let batch = self.batch(rows.min(self.options.batch_rows))?;
        self.delta.rows += batch.num_rows() as u64;
        self.delta.batches += 1;
        self.stats.try_add(&mut self.delta);
        out.emit(batch);
        // No row to come is before the turn of the next one, less what it may be early.
        let next_turn = self.turn_of(self.next_id);
        let reached = next_turn.saturating_sub_unsigned(self.options.jitter_ms);
        let reached = reached.min(EVENT_TIME_MAX - 1);
        if reached > self.reached {
            self.reached = reached;
            out.watermark(Watermark::active(reached));
        }
        Ok(SourceProgress::Ready)
    }
}

/// What could not be added while another subtask was counting is added at the end.
impl Drop for GeneratorSource {
    fn drop(&mut self) {
        self.stats.add(&self.delta);
    }
}

/// Spreads the bits of a number over all bits of another, one to one (the finaliser of
/// `SplitMix64`).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
