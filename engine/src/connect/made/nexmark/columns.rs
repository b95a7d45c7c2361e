//! The columns of the events of the Nexmark benchmark.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use nexmark::event::{Auction, Bid, Event, Person};
use serde::Deserialize;

use crate::batch::EVENT_TIME_COLUMN;
use crate::error::OperatorError;

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

/// The events, all of `kind`, as a batch of `schema`.
pub(crate) fn batch_of(
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

/// Ids, prices in cents and times are far below the largest int64.
pub(crate) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

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

fn fields_of<T>(prefix: &'static str, columns: Columns<T>) -> impl Iterator<Item = Field> {
    columns.iter().map(move |(name, get)| {
        let data_type = match get {
            Get::Int(_) => DataType::Int64,
            Get::Text(_) => DataType::Utf8,
        };
        Field::new(format!("{prefix}{name}"), data_type, true)
    })
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
