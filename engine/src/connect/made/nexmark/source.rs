//! Makes the events of the Nexmark benchmark: an auction site's people, auctions and bids.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::{Event, EventType};
use serde::Deserialize;

use crate::connect::connector::SourceForm;
use crate::connect::made::source::{Amount, MadeSource, RowMaker};
use crate::connect::{ConnectError, SourceConnector};
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;

use super::columns::{NexmarkKind, batch_of, nexmark_schema, to_i64};

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
pub struct NexmarkSource(MadeSource<Events>);

impl NexmarkSource {
    /// A source of Nexmark events.
    ///
    /// # Errors
    /// [`ConnectError::Option`] when an option is out of its range.
    pub fn new(options: NexmarkOptions) -> Result<Self, ConnectError> {
        let amount = Amount::new(options.rows, options.rate, options.batch_rows)?;
        if !(1..=1_000_000).contains(&options.events_per_second) {
            let reason = "must be from 1 to 1000000";
            return Err(ConnectError::option("events_per_second", reason));
        }
        if options.start_ms > START_MS_MAX {
            let reason = format!("must be at most {START_MS_MAX}");
            return Err(ConnectError::option("start_ms", reason));
        }
        let events = Events {
            kind: options.events,
            schema: nexmark_schema(options.events),
            generator: generator(&options),
        };
        Ok(Self(MadeSource::new(events, amount)))
    }
}

impl SourceForm for NexmarkSource {
    fn form(&self) -> &dyn SourceConnector {
        &self.0
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

/// Makes the events of one kind.
#[derive(Clone, Debug)]
struct Events {
    kind: NexmarkKind,
    schema: SchemaRef,
    /// At the event that is likely to be wanted next.
    generator: EventGenerator,
}

impl Events {
    fn go_to(&mut self, number: u64) {
        if self.generator.offset() != number {
            self.generator = std::mem::take(&mut self.generator).with_offset(number);
        }
    }
}

impl RowMaker for Events {
    const CONNECTOR: &'static str = "nexmark";

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn set_stride(&mut self, stride: u64) {
        self.generator = std::mem::take(&mut self.generator).with_step(stride);
    }

    fn batch(&mut self, numbers: &[u64]) -> Result<RecordBatch, OperatorError> {
        let mut events: Vec<Event> = Vec::with_capacity(numbers.len());
        for &number in numbers {
            self.go_to(number);
            events.extend(self.generator.next());
        }
        batch_of(self.kind, &self.schema, &events)
    }

    fn earliest_from(&mut self, number: u64) -> EventTime {
        self.go_to(number);
        to_i64(self.generator.timestamp())
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
