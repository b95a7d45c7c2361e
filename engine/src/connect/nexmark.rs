//! Makes the events of the Nexmark benchmark: an auction site's people, auctions and bids.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use nexmark::EventGenerator;
use nexmark::config::NexmarkConfig;
use nexmark::event::{Auction, Bid, Event, EventType, Person};
use ringway_shm::Bell;
use serde::Deserialize;

use crate::batch::EVENT_TIME_COLUMN;
use crate::element::{EVENT_TIME_MIN, EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Source, SourceProgress, Subtask};

use super::rate::Pace;
use super::{ConnectError, ConnectorStats, Counters, SourceConnector};

/// Which events to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NexmarkKind {
    /// Bids: `auction`, `bidder`, `price` (int64), `channel`, `url`, `extra` (text).
    #[default]
    Bid,
    /// Auctions: `id` (int64), `item_name`, `description` (text), `initial_bid`, `reserve`,
    /// `expires` (milliseconds), `seller`, `category` (int64), `extra` (text).
    Auction,
    /// People: `id` (int64), `name`, `email_address`, `credit_card`, `city`, `state`,
    /// `extra` (text).
    Person,
    /// All three in the order of the benchmark (of 50: 1 person, 3 auctions, 46 bids), with
    /// `kind` (`person`, `auction` or `bid`) and the columns of all three behind the prefixes
    /// `person_`, `auction_` and `bid_`: null in rows of another kind.
    All,
}

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

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let mut pace = Pace::new(self.options.rate);
        pace.share(subtask.index, subtask.parallelism);
        let events = generator(&self.options)
            .with_offset(u64::from(subtask.index))
            .with_step(u64::from(subtask.parallelism));
        Box::new(NexmarkSubtask {
            events,
            stride: u64::from(subtask.parallelism),
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
            batch_of(kind, &schema, &events).expect("the columns are those of the schema")
        })
        .collect()
}

/// The schema of the events of `kind`: `event_time`, and the columns of [`NexmarkKind`].
pub fn nexmark_schema(kind: NexmarkKind) -> SchemaRef {
    let mut fields = vec![Field::new(EVENT_TIME_COLUMN, DataType::Int64, true)];
    match kind {
        NexmarkKind::Bid => fields.extend(fields_of("", BID)),
        NexmarkKind::Auction => fields.extend(fields_of("", AUCTION)),
        NexmarkKind::Person => fields.extend(fields_of("", PERSON)),
        NexmarkKind::All => {
            fields.push(Field::new("kind", DataType::Utf8, true));
            fields.extend(fields_of("person_", PERSON));
            fields.extend(fields_of("auction_", AUCTION));
            fields.extend(fields_of("bid_", BID));
        }
    }
    Arc::new(Schema::new(fields))
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

/// How a column is read from an event.
enum Get<T> {
    Int(fn(&T) -> u64),
    Text(fn(&T) -> &str),
}

type Columns<T> = &'static [(&'static str, Get<T>)];

const BID: Columns<Bid> = &[
    ("auction", Get::Int(|bid| bid.auction as u64)),
    ("bidder", Get::Int(|bid| bid.bidder as u64)),
    ("price", Get::Int(|bid| bid.price as u64)),
    ("channel", Get::Text(|bid| &bid.channel)),
    ("url", Get::Text(|bid| &bid.url)),
    ("extra", Get::Text(|bid| &bid.extra)),
];

const AUCTION: Columns<Auction> = &[
    ("id", Get::Int(|auction| auction.id as u64)),
    ("item_name", Get::Text(|auction| &auction.item_name)),
    ("description", Get::Text(|auction| &auction.description)),
    (
        "initial_bid",
        Get::Int(|auction| auction.initial_bid as u64),
    ),
    ("reserve", Get::Int(|auction| auction.reserve as u64)),
    ("expires", Get::Int(|auction| auction.expires)),
    ("seller", Get::Int(|auction| auction.seller as u64)),
    ("category", Get::Int(|auction| auction.category as u64)),
    ("extra", Get::Text(|auction| &auction.extra)),
];

const PERSON: Columns<Person> = &[
    ("id", Get::Int(|person| person.id as u64)),
    ("name", Get::Text(|person| &person.name)),
    ("email_address", Get::Text(|person| &person.email_address)),
    ("credit_card", Get::Text(|person| &person.credit_card)),
    ("city", Get::Text(|person| &person.city)),
    ("state", Get::Text(|person| &person.state)),
    ("extra", Get::Text(|person| &person.extra)),
];

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

fn fields_of<T>(prefix: &'static str, columns: Columns<T>) -> impl Iterator<Item = Field> {
    columns.iter().map(move |(name, get)| {
        let data_type = match get {
            Get::Int(_) => DataType::Int64,
            Get::Text(_) => DataType::Utf8,
        };
        Field::new(format!("{prefix}{name}"), data_type, true)
    })
}

fn batch_of(
    kind: NexmarkKind,
    schema: &SchemaRef,
    events: &[Event],
) -> Result<RecordBatch, OperatorError> {
    let times = events.iter().map(|event| to_i64(event.timestamp()));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(times))];
    match kind {
        NexmarkKind::Bid => columns.extend(columns_of(BID, events, bid)),
        NexmarkKind::Auction => columns.extend(columns_of(AUCTION, events, auction)),
        NexmarkKind::Person => columns.extend(columns_of(PERSON, events, person)),
        NexmarkKind::All => {
            let kinds = events.iter().map(|event| match event {
                Event::Person(_) => "person",
                Event::Auction(_) => "auction",
                Event::Bid(_) => "bid",
            });
            columns.push(Arc::new(StringArray::from_iter_values(kinds)));
            columns.extend(columns_of(PERSON, events, person));
            columns.extend(columns_of(AUCTION, events, auction));
            columns.extend(columns_of(BID, events, bid));
        }
    }
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}

fn columns_of<'a, T: 'a>(
    columns: Columns<T>,
    events: &'a [Event],
    of_kind: fn(&'a Event) -> Option<&'a T>,
) -> impl Iterator<Item = ArrayRef> {
    columns.iter().map(move |(_, get)| -> ArrayRef {
        let events = events.iter().map(of_kind);
        match get {
            Get::Int(get) => {
                let values = events.map(|event| event.map(|event| to_i64(get(event))));
                Arc::new(values.collect::<Int64Array>())
            }
            Get::Text(get) => Arc::new(events.map(|event| event.map(get)).collect::<StringArray>()),
        }
    })
}

fn bid(event: &Event) -> Option<&Bid> {
    match event {
        Event::Bid(bid) => Some(bid),
        _ => None,
    }
}

fn auction(event: &Event) -> Option<&Auction> {
    match event {
        Event::Auction(auction) => Some(auction),
        _ => None,
    }
}

fn person(event: &Event) -> Option<&Person> {
    match event {
        Event::Person(person) => Some(person),
        _ => None,
    }
}

/// Ids, prices in cents and times are far below the largest int64.
fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
