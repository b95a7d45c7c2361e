//! Makes the events of the Nexmark benchmark: an auction site's people, auctions and bids.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::{Event, EventType};
use ringway_shm::Bell;
use serde::Deserialize;

use crate::element::{EVENT_TIME_MIN, EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Source, SourceProgress, Subtask};

use super::nexmark_columns::{batch_of, nexmark_schema, to_i64};
use super::rate::{Pace, describe_rows};
use super::{ConnectError, ConnectorStats, Counters, NexmarkKind, SourceConnector};

/// Options of the connector `nexmark`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NexmarkOptions {
    /// Which events: `"bid"`, `"auction"`, `"person"` or `"all"`. Default `"bid"`.
    pub events: NexmarkKind,
    /// How many of these events to make, all subtasks together. Default: without end.
    pub rows: Option<u64>,
    /// Rows per second, all subtasks together; 0 is as fast as possible. Default 0.
    pub rate: u64,
    /// Rows of a batch, at most; 1 to 8192. Default 8192.
    pub batch_rows: usize,
    /// The event time of the first event of all kinds, in milliseconds since the Unix epoch.
    /// Default 1436918400000 (2015-07-15 00:00).
    pub start_ms: u64,
    /// Events of all kinds in one second of event time; 1 to 1000000. Default 10000.
    pub events_per_second: usize,
}

impl Default for NexmarkOptions {
    fn default() -> Self {
        Self {
            events: NexmarkKind::Bid,
            rows: None,
            rate: 0,
            batch_rows: BATCH_ROWS,
            start_ms: 1_436_918_400_000,
            events_per_second: 10_000,
        }
    }
}

/// A source of Nexmark events. Event number n of a kind is the same at any parallelism and
/// rate, and event times never go back; subtask i of p makes the events i, i + p and so on.
#[derive(Clone, Debug)]
pub struct NexmarkSource {
    options: NexmarkOptions,
    schema: SchemaRef,
    stats: ConnectorStats,
}

impl NexmarkSource {
    /// A source of Nexmark events.
    ///
    /// # Errors
    /// [`ConnectError::Option`] when an option is out of its range.
    pub fn new(options: NexmarkOptions) -> Result<Self, ConnectError> {
        if !(1..=BATCH_ROWS).contains(&options.batch_rows) {
            let reason = format!("must be from 1 to {BATCH_ROWS}");
            return Err(ConnectError::option("batch_rows", reason));
        }
        if !(1..=1_000_000).contains(&options.events_per_second) {
            let reason = "must be from 1 to 1000000";
            return Err(ConnectError::option("events_per_second", reason));
        }
        if options.start_ms > START_MS_MAX {
            let reason = format!("must be at most {START_MS_MAX}");
            return Err(ConnectError::option("start_ms", reason));
        }
        Ok(Self {
            schema: nexmark_schema(options.events),
            options,
            stats: ConnectorStats::default(),
        })
    }
}

impl SourceConnector for NexmarkSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn is_bounded(&self) -> bool {
        self.options.rows.is_some()
    }

    fn describe(&self) -> String {
        describe_rows("nexmark", self.options.rows, self.options.rate)
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let mut pace = Pace::new(self.options.rate);
        pace.share(subtask.index, subtask.parallelism.subtasks());
        let events = generator(&self.options)
            .with_offset(u64::from(subtask.index))
            .with_step(u64::from(subtask.parallelism.subtasks()));
        Box::new(NexmarkSubtask {
            events,
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

/// The first `rows` events of `kind`, made with default options, in batches of `batch_rows`
/// (the last may be smaller): what a source with one subtask emits.
///
/// # Panics
/// When `batch_rows` is 0.
pub fn nexmark_batches(kind: NexmarkKind, rows: usize, batch_rows: usize) -> Vec<RecordBatch> {
    assert!(batch_rows > 0, "a batch has rows");
    let options = NexmarkOptions {
        events: kind,
        ..NexmarkOptions::default()
    };
    let schema = nexmark_schema(kind);
    let mut events = generator(&options);
    let sizes = (0..rows)
        .step_by(batch_rows)
        .map(|from| batch_rows.min(rows - from));
    sizes
        .map(|size| {
            let events: Vec<Event> = events.by_ref().take(size).collect();
            // Invariant: rows and schema are made here, from the same list of columns.
            batch_of(kind, &schema, &events).expect("the columns are those of the schema")
        })
        .collect()
}

struct NexmarkSubtask {
    events: EventGenerator,
    stride: u64,
    options: NexmarkOptions,
    schema: SchemaRef,
    pace: Pace,
    made: u64,
    /// The last watermark emitted.
    reached: EventTime,
    stats: ConnectorStats,
    /// What has not been added to the counters yet.
    delta: Counters,
}

impl NexmarkSubtask {
    /// Events that this subtask has still to make.
    fn left(&self) -> u64 {
        match self.options.rows {
            Some(rows) => rows
                .saturating_sub(self.events.offset())
                .div_ceil(self.stride),
            None => u64::MAX,
        }
    }
}

impl Source<RecordBatch> for NexmarkSubtask {
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
        let rows = usize::try_from(due)
            .unwrap_or(usize::MAX)
            .min(self.options.batch_rows);
        let events: Vec<Event> = self.events.by_ref().take(rows).collect();
        let batch = batch_of(self.options.events, &self.schema, &events)?;
        self.made += rows as u64;
        self.delta.rows += rows as u64;
        self.delta.batches += 1;
        self.stats.try_add(&mut self.delta);
        out.emit(batch);
        let reached = to_i64(self.events.timestamp());
        if reached > self.reached {
            self.reached = reached;
            out.watermark(Watermark::active(reached));
        }
        Ok(SourceProgress::Ready)
    }
}

/// What could not be added while another subtask was counting is added at the end.
impl Drop for NexmarkSubtask {
    fn drop(&mut self) {
        self.stats.add(&self.delta);
    }
}

/// The year 9999 or so: times after it may stem from a mistake in the unit.
const START_MS_MAX: u64 = 253_402_300_799_999;

fn generator(options: &NexmarkOptions) -> EventGenerator {
    let generator = EventGenerator::new(NexmarkConfig {
        base_time: options.start_ms,
        first_rate: options.events_per_second,
        next_rate: options.events_per_second,
        ..NexmarkConfig::default()
    });
    match options.events {
        NexmarkKind::Bid => generator.with_type_filter(EventType::Bid),
        NexmarkKind::Auction => generator.with_type_filter(EventType::Auction),
        NexmarkKind::Person => generator.with_type_filter(EventType::Person),
        NexmarkKind::All => generator,
    }
}
