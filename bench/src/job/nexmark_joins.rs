//! Queries of the Nexmark benchmark over two streams, as jobs and by hand.
//!
//! Neither stream waits for the other, so both sides keep the rows of both streams by key for as
//! long as a match may come. The loops take the batches of both in turn, which cover the same
//! time.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use ringway::connect::NexmarkKind;
use ringway::job::BatchStream;
use ringway::operators::join::{IntervalBounds, JoinKind, JoinSpec, JoinTime};
use ringway::operators::window::WindowAssigner;

use crate::error::BenchError;

use super::by_key::ByKey;
use super::data::{Input, auctions_and_bids, auctions_and_people, times};
use super::nexmark::{batch_of, filter};
use super::nexmark_windows::{chosen, columns};
use super::runner::{Outcome, Streams};

/// The number of an auction or person, behind the event time of all columns here.
const ID: usize = 1;

/// Of auctions: event time, number, seller, category.
const Q3_AUCTIONS: [usize; 4] = [0, 1, 7, 8];
const SELLER: usize = 2;
const CATEGORY: usize = 3;
/// Of people: event time, number, name, city, state.
const Q3_PEOPLE: [usize; 5] = [0, 1, 2, 5, 6];
const NAME: usize = 2;
const CITY: usize = 3;
const STATE: usize = 4;

/// Event time and seller; event time, number and name.
const Q8_AUCTIONS: [usize; 2] = [0, 7];
const Q8_SELLER: usize = 1;
const Q8_PEOPLE: [usize; 3] = [0, 1, 2];

/// Event time, number, category; event time, auction, bidder, price.
const INTERVAL_AUCTIONS: [usize; 3] = [0, 1, 8];
const INTERVAL_CATEGORY: usize = 2;
const INTERVAL_BIDS: [usize; 4] = [0, 1, 2, 3];
const AUCTION: usize = 1;
const BIDDER: usize = 2;
const PRICE: usize = 3;

const Q3_CATEGORY: i64 = 10;
const Q3_STATES: [&str; 3] = ["or", "id", "ca"];

/// Windows of q8, and how long bids match after the beginning of their auction.
const TEN_SECONDS_MS: i64 = 10_000;

/// Auctions and people.
pub(crate) fn q3_events(smoke: bool) -> Input {
    auctions_and_people(smoke, &Q3_AUCTIONS, &Q3_PEOPLE)
}

/// q3: who sells in a category and lives in one of three states, without an end in time.
pub(crate) fn q3(streams: Streams) -> Result<BatchStream, BenchError> {
    let [auctions, people] = streams.both();
    let left = chosen(NexmarkKind::Auction, &Q3_AUCTIONS)?;
    let right = chosen(NexmarkKind::Person, &Q3_PEOPLE)?;
    let of_category = filter(auctions, "category = 10", left.clone());
    let in_states = "state = 'or' OR state = 'id' OR state = 'ca'";
    let in_states = filter(people, in_states, right.clone());
    let time = JoinTime::Interval(IntervalBounds::new(i64::MIN, i64::MAX)?);
    let of_sellers = of_category.connect(in_states);
    let joined = of_sellers.join("join", &left, &right, inner(time, SELLER, ID))?;
    // The time of the pair, four columns of the auction, then five of the person.
    Ok(columns(joined.0, &[7, 8, 9, 2]))
}

struct Person<'a> {
    name: &'a str,
    city: &'a str,
    state: &'a str,
}

pub(crate) fn q3_by_hand(input: &Input) -> Outcome {
    let mut outcome = Outcome::default();
    let mut sellers: ByKey<i64, Vec<i64>> = ByKey::default();
    let mut people: ByKey<i64, Person<'_>> = ByKey::default();
    for (auctions, persons) in in_turn(input) {
        let mut pairs = Q3Pairs::default();
        let [ids, of, categories] = [ID, SELLER, CATEGORY].map(|column| ints(auctions, column));
        for ((id, seller), category) in ids.iter().zip(of).zip(categories) {
            if *category == Q3_CATEGORY {
                if let Some(person) = people.get(seller) {
                    pairs.push(person, *id);
                }
                sellers.entry(*seller).or_default().push(*id);
            }
        }
        let [names, cities, states] = [NAME, CITY, STATE].map(|column| texts(persons, column));
        for (row, id) in ints(persons, ID).iter().enumerate() {
            let state = states.value(row);
            if Q3_STATES.contains(&state) {
                let (name, city) = (names.value(row), cities.value(row));
                let person = Person { name, city, state };
                for auction in sellers.get(id).into_iter().flatten() {
                    pairs.push(&person, *auction);
                }
                people.insert(*id, person);
            }
        }
        outcome.add(&pairs.finish());
    }
    outcome
}

#[derive(Default)]
struct Q3Pairs {
    texts: [StringBuilder; 3],
    auctions: Vec<i64>,
}

impl Q3Pairs {
    fn push(&mut self, person: &Person<'_>, auction: i64) {
        let [name, city, state] = &mut self.texts;
        name.append_value(person.name);
        city.append_value(person.city);
        state.append_value(person.state);
        self.auctions.push(auction);
    }

    fn finish(self) -> RecordBatch {
        let text = |name| Field::new(name, DataType::Utf8, true);
        let id = Field::new("id", DataType::Int64, true);
        let schema = Schema::new(vec![text("name"), text("city"), text("state"), id]);
        let texts = self
            .texts
            .map(|mut text| Arc::new(text.finish()) as ArrayRef);
        let mut columns = Vec::from(texts);
        columns.push(Arc::new(Int64Array::from(self.auctions)));
        batch_of(&Arc::new(schema), columns)
    }
}

/// Auctions and people.
pub(crate) fn q8_events(smoke: bool) -> Input {
    auctions_and_people(smoke, &Q8_AUCTIONS, &Q8_PEOPLE)
}

/// q8: who registered and began to sell in the same window.
pub(crate) fn q8(streams: Streams) -> Result<BatchStream, BenchError> {
    let [auctions, people] = streams.both();
    let windows = WindowAssigner::tumbling(TEN_SECONDS_MS, 0)?;
    let spec = JoinSpec {
        kind: JoinKind::LeftSemi,
        ..inner(JoinTime::SameWindow(windows), ID, Q8_SELLER)
    };
    let left = chosen(NexmarkKind::Person, &Q8_PEOPLE)?;
    let right = chosen(NexmarkKind::Auction, &Q8_AUCTIONS)?;
    let joined = people.connect(auctions).join("join", &left, &right, spec)?;
    // Three columns of the window, then those of the person.
    Ok(columns(joined.0, &[4, 5, 1]))
}

pub(crate) fn q8_by_hand(input: &Input) -> Outcome {
    let mut outcome = Outcome::default();
    // Windows begin with either stream, and are over when both are past them.
    let mut windows: VecDeque<Q8Window<'_>> = VecDeque::new();
    for (at, (auctions, persons)) in in_turn(input).enumerate() {
        for (time, seller) in times(auctions).iter().zip(ints(auctions, Q8_SELLER)) {
            Q8Window::at(&mut windows, *time).sellers.insert(*seller);
        }
        let names = texts(persons, NAME);
        for (row, (time, id)) in times(persons).iter().zip(ints(persons, ID)).enumerate() {
            let window = Q8Window::at(&mut windows, *time);
            window.people.insert(*id, names.value(row));
        }
        let watermarks = input.sides.iter().map(|side| side.watermark_after(at));
        let watermark = watermarks.min().unwrap_or(i64::MAX);
        let is_over = |window: &mut Q8Window<'_>| window.start + TEN_SECONDS_MS - 1 <= watermark;
        while let Some(window) = windows.pop_front_if(is_over) {
            outcome.add(&window.finish());
        }
    }
    outcome
}

#[derive(Default)]
struct Q8Window<'a> {
    start: i64,
    people: ByKey<i64, &'a str>,
    sellers: HashSet<i64, std::hash::BuildHasherDefault<super::by_key::KeyHasher>>,
}

impl<'a> Q8Window<'a> {
    /// The window of `time`, of those that are in order.
    fn at(windows: &mut VecDeque<Self>, time: i64) -> &mut Self {
        let start = time - time.rem_euclid(TEN_SECONDS_MS);
        let at = match windows.iter().position(|window| window.start >= start) {
            Some(at) if windows[at].start == start => return &mut windows[at],
            Some(at) => at,
            None => windows.len(),
        };
        windows.insert(
            at,
            Self {
                start,
                ..Self::default()
            },
        );
        &mut windows[at]
    }

    fn finish(self) -> RecordBatch {
        let sellers = self.sellers;
        let new = self
            .people
            .into_iter()
            .filter(|(id, _)| sellers.contains(id));
        let (ids, names): (Vec<i64>, Vec<&str>) = new.unzip();
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("name", DataType::Utf8, true),
            Field::new("starttime", DataType::Int64, true),
        ]);
        let starts = Int64Array::from_value(self.start, ids.len());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(ids)),
            Arc::new(StringArray::from(names)),
            Arc::new(starts),
        ];
        batch_of(&Arc::new(schema), columns)
    }
}

/// Auctions and bids.
pub(crate) fn interval_join_events(smoke: bool) -> Input {
    auctions_and_bids(smoke, &INTERVAL_AUCTIONS, &INTERVAL_BIDS)
}

/// Auctions with the bids of their first ten seconds.
pub(crate) fn interval_join(streams: Streams) -> Result<BatchStream, BenchError> {
    let [auctions, bids] = streams.both();
    let first_seconds = IntervalBounds::new(0, TEN_SECONDS_MS)?;
    let spec = inner(JoinTime::Interval(first_seconds), ID, AUCTION);
    let left = chosen(NexmarkKind::Auction, &INTERVAL_AUCTIONS)?;
    let right = chosen(NexmarkKind::Bid, &INTERVAL_BIDS)?;
    Ok(auctions.connect(bids).join("join", &left, &right, spec)?.0)
}

struct KeptAuction {
    time: i64,
    category: i64,
}

struct KeptBid {
    time: i64,
    bidder: i64,
    price: i64,
}

/// What the loop keeps of both streams, by auction and by time.
#[derive(Default)]
struct Kept {
    auctions: ByKey<i64, KeptAuction>,
    bids: ByKey<i64, VecDeque<KeptBid>>,
    auctions_by_time: VecDeque<(i64, i64)>,
    bids_by_time: VecDeque<(i64, i64)>,
    /// Event time; time, auction and category; time, auction, bidder and price.
    pairs: [Vec<i64>; 8],
}

pub(crate) fn interval_join_by_hand(input: &Input) -> Outcome {
    let mut outcome = Outcome::default();
    let schema = interval_schema();
    let mut kept = Kept::default();
    for (at, (auctions, bids)) in in_turn(input).enumerate() {
        let [ids, categories] = [ID, INTERVAL_CATEGORY].map(|column| ints(auctions, column));
        for ((time, id), category) in times(auctions).iter().zip(ids).zip(categories) {
            let (time, category) = (*time, *category);
            kept.add_auction(*id, KeptAuction { time, category });
        }
        let [of, bidders, prices] = [AUCTION, BIDDER, PRICE].map(|column| ints(bids, column));
        for (((time, auction), bidder), price) in
            times(bids).iter().zip(of).zip(bidders).zip(prices)
        {
            let (time, bidder, price) = (*time, *bidder, *price);
            kept.add_bid(
                *auction,
                KeptBid {
                    time,
                    bidder,
                    price,
                },
            );
        }
        let watermarks = input.sides.iter().map(|side| side.watermark_after(at));
        kept.drop_before(watermarks.min().unwrap_or(i64::MAX));
        let columns = kept
            .pairs
            .each_mut()
            .map(|pairs| Arc::new(Int64Array::from(std::mem::take(pairs))) as ArrayRef);
        outcome.add(&batch_of(&schema, columns.into()));
    }
    outcome
}

impl Kept {
    fn add_auction(&mut self, id: i64, auction: KeptAuction) {
        for bid in self.bids.get(&id).into_iter().flatten() {
            give(&mut self.pairs, id, &auction, bid);
        }
        self.auctions_by_time.push_back((auction.time, id));
        self.auctions.insert(id, auction);
    }

    fn add_bid(&mut self, id: i64, bid: KeptBid) {
        if let Some(auction) = self.auctions.get(&id) {
            give(&mut self.pairs, id, auction, &bid);
        }
        self.bids_by_time.push_back((bid.time, id));
        self.bids.entry(id).or_default().push_back(bid);
    }

    /// Drops what no row after `watermark` matches.
    fn drop_before(&mut self, watermark: i64) {
        let is_past = |(time, _): &mut (i64, i64)| *time < watermark - TEN_SECONDS_MS;
        while let Some((_, id)) = self.auctions_by_time.pop_front_if(is_past) {
            self.auctions.remove(&id);
        }
        while let Some((_, id)) = self
            .bids_by_time
            .pop_front_if(|(time, _)| *time < watermark)
        {
            let bids = self.bids.get_mut(&id).expect("a bid that is kept");
            bids.pop_front();
            if bids.is_empty() {
                self.bids.remove(&id);
            }
        }
    }
}

fn give(pairs: &mut [Vec<i64>; 8], id: i64, auction: &KeptAuction, bid: &KeptBid) {
    if auction.time <= bid.time && bid.time <= auction.time + TEN_SECONDS_MS {
        let pair = [
            bid.time,
            auction.time,
            id,
            auction.category,
            bid.time,
            id,
            bid.bidder,
            bid.price,
        ];
        for (column, value) in pairs.iter_mut().zip(pair) {
            column.push(value);
        }
    }
}

fn interval_schema() -> SchemaRef {
    let names = [
        "time", "opened", "id", "category", "bid", "auction", "bidder", "price",
    ];
    let fields = names.map(|name| Field::new(name, DataType::Int64, true));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Pairs of one key column each.
fn inner(time: JoinTime, left_key: usize, right_key: usize) -> JoinSpec {
    JoinSpec {
        kind: JoinKind::Inner,
        time,
        left_keys: vec![left_key],
        right_keys: vec![right_key],
        left_late: None,
        right_late: None,
    }
}

/// The batches of both sides that cover the same time.
fn in_turn(input: &Input) -> impl Iterator<Item = (&RecordBatch, &RecordBatch)> {
    let [left, right] = [0, 1].map(|side| input.sides[side].batches.iter());
    left.zip(right)
}

fn ints(batch: &RecordBatch, column: usize) -> &[i64] {
    batch.column(column).as_primitive::<Int64Type>().values()
}

fn texts(batch: &RecordBatch, column: usize) -> &StringArray {
    batch.column(column).as_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_have_as_many_batches_and_some_rows_that_match() {
        let input = q8_events(true);
        let [left, right] = [0, 1].map(|side| input.sides[side].batches.len());
        assert_eq!(left, right);
        assert!(q8_by_hand(&input).rows > 10);
        assert!(q3_by_hand(&q3_events(true)).rows > 10);
        let input = interval_join_events(true);
        let pairs = interval_join_by_hand(&input).rows;
        assert!(100 < pairs && pairs < input.rows(), "{pairs}");
    }
}
