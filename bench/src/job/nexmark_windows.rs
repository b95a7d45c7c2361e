//! Queries of the Nexmark benchmark over windows of bids, as jobs and by hand.
//!
//! Bids come in order and are never late. The loops know that and keep one window, or the parts
//! of one, at a time; the jobs don't.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use ringway::connect::{NexmarkKind, nexmark_schema};
use ringway::element::Watermark;
use ringway::error::OperatorError;
use ringway::job::BatchStream;
use ringway::operator::{Emitter, Operator, Progress};
use ringway::operators::AggregateSpec;
use ringway::operators::columnar::{Project, TopN, TopNSpec};
use ringway::operators::window::{
    EarlyResults, SessionAggregate, SessionSpec, WindowAggregate, WindowAssigner, WindowSpec,
};

use crate::error::BenchError;

use super::by_key::ByKey;
use super::data::{Input, bids_in_time, bids_without_watermarks, times};
use super::nexmark::batch_of;
use super::runner::{Outcome, Streams};

/// The column behind the event time, which is the key of q5, q11 and q12.
const KEY: usize = 1;

/// The price among the columns of q7.
const Q7_PRICE: usize = 2;

const Q5_COLUMNS: [usize; 2] = [0, 1];
/// Event time, auction, price, bidder, extra.
const Q7_COLUMNS: [usize; 5] = [0, 1, 3, 2, 6];
/// Event time and bidder.
const BIDDERS: [usize; 2] = [0, 2];

/// Windows of q5 are five times as long as they are apart.
const Q5_SLIDE_MS: i64 = 2_000;
const Q5_PANES: i64 = 5;

/// Windows of q7 and q12, and the gap between sessions of q11.
const TEN_SECONDS_MS: i64 = 10_000;

/// What the fixed clock of q12 goes on by with each batch, as 8,192 bids come in a second.
const Q12_BATCH_MS: i64 = 1_000;

/// Event time and auction.
pub(crate) fn q5_events(smoke: bool) -> Input {
    bids_in_time(smoke, &Q5_COLUMNS)
}

/// q5: the auctions with the most bids of each window.
pub(crate) fn q5(streams: Streams) -> Result<BatchStream, BenchError> {
    let bids = chosen(NexmarkKind::Bid, &Q5_COLUMNS)?;
    let windows = WindowAssigner::sliding(Q5_PANES * Q5_SLIDE_MS, Q5_SLIDE_MS, 0)?;
    let count = count_by_key(windows);
    let counted = count.output_schema(&bids)?;
    // All results of a window have its last event time, and no other window ends so near.
    let first = first_by(4, WindowAssigner::tumbling(Q5_SLIDE_MS, 0)?);
    let counts = streams.only().process("count", move |_| {
        Ok(WindowAggregate::new(bids.clone(), count.clone())?)
    });
    let most = counts.process("most", move |_| {
        Ok(TopN::new(counted.clone(), first.clone())?.with_ties())
    });
    // The windows of the counts come behind those by which they were ranked.
    Ok(columns(most, &[4, 5, 6, 7]))
}

pub(crate) fn q5_by_hand(input: &Input) -> Outcome {
    let schema = int64_schema(["window_start", "window_end", "auction", "num"]);
    let mut outcome = Outcome::default();
    let mut panes: VecDeque<(i64, ByKey<i64, i64>)> = VecDeque::new();
    for batch in input.batches() {
        let auctions = batch.column(KEY).as_primitive::<Int64Type>().values();
        for (time, auction) in times(batch).iter().zip(auctions) {
            let pane = time.div_euclid(Q5_SLIDE_MS);
            if panes.back().is_none_or(|(last, _)| *last != pane) {
                q5_close(&mut panes, pane, &schema, &mut outcome);
                panes.push_back((pane, ByKey::default()));
            }
            let (_, counts) = panes.back_mut().expect("a pane was begun");
            *counts.entry(*auction).or_default() += 1;
        }
    }
    q5_close(&mut panes, i64::MAX, &schema, &mut outcome);
    outcome
}

/// Gives the results of the windows that end before the pane `next`, and drops what no later
/// window needs.
fn q5_close(
    panes: &mut VecDeque<(i64, ByKey<i64, i64>)>,
    next: i64,
    schema: &SchemaRef,
    outcome: &mut Outcome,
) {
    let Some(mut last) = panes.back().map(|(pane, _)| *pane) else {
        return;
    };
    while last < next && !panes.is_empty() {
        let mut all: ByKey<i64, i64> = ByKey::default();
        for (_, counts) in panes.iter() {
            for (auction, count) in counts {
                *all.entry(*auction).or_default() += count;
            }
        }
        let most = all.values().copied().max().unwrap_or_default();
        let auctions = all.iter().filter(|(_, count)| **count == most);
        let auctions: Vec<i64> = auctions.map(|(auction, _)| *auction).collect();
        let end = (last + 1) * Q5_SLIDE_MS;
        let same = |value| Arc::new(Int64Array::from_value(value, auctions.len())) as ArrayRef;
        let columns = vec![
            same(end - Q5_PANES * Q5_SLIDE_MS),
            same(end),
            Arc::new(Int64Array::from(auctions.clone())),
            same(most),
        ];
        outcome.add(&batch_of(schema, columns));
        last += 1;
        while panes
            .front()
            .is_some_and(|(pane, _)| *pane <= last - Q5_PANES)
        {
            panes.pop_front();
        }
    }
}

/// Event time, auction, price, bidder and extra.
pub(crate) fn q7_events(smoke: bool) -> Input {
    bids_in_time(smoke, &Q7_COLUMNS)
}

/// q7: the bids with the highest price of each window.
pub(crate) fn q7(streams: Streams) -> Result<BatchStream, BenchError> {
    let bids = chosen(NexmarkKind::Bid, &Q7_COLUMNS)?;
    let first = first_by(Q7_PRICE, WindowAssigner::tumbling(TEN_SECONDS_MS, 0)?);
    let highest = streams.only().process("highest", move |_| {
        Ok(TopN::new(bids.clone(), first.clone())?.with_ties())
    });
    // The three columns of the window come before those of the bid, its rank behind.
    Ok(columns(highest, &[4, 5, 6, 3, 7]))
}

pub(crate) fn q7_by_hand(input: &Input) -> Outcome {
    let mut outcome = Outcome::default();
    let mut window = i64::MIN;
    let mut price = i64::MIN;
    let mut highest: Vec<(&RecordBatch, u32)> = Vec::new();
    for batch in input.batches() {
        let prices = batch.column(Q7_PRICE).as_primitive::<Int64Type>().values();
        for (row, (time, bid)) in times(batch).iter().zip(prices).enumerate() {
            if *time >= window.saturating_add(TEN_SECONDS_MS) {
                q7_close(&mut highest, &mut outcome);
                window = time - time.rem_euclid(TEN_SECONDS_MS);
                price = i64::MIN;
            }
            if *bid >= price {
                if *bid > price {
                    highest.clear();
                    price = *bid;
                }
                highest.push((batch, row as u32));
            }
        }
    }
    q7_close(&mut highest, &mut outcome);
    outcome
}

fn q7_close(highest: &mut Vec<(&RecordBatch, u32)>, outcome: &mut Outcome) {
    for (batch, row) in highest.drain(..) {
        let bid = batch.project(&[1, 2, 3, 0, 4]);
        let bid = bid.and_then(|bid| take_record_batch(&bid, &UInt32Array::from(vec![row])));
        outcome.add(&bid.expect("columns and a row of the batch"));
    }
}

/// Event time and bidder.
pub(crate) fn q11_events(smoke: bool) -> Input {
    bids_in_time(smoke, &BIDDERS)
}

/// q11: how many bids each bidder made in each session.
pub(crate) fn q11(streams: Streams) -> Result<BatchStream, BenchError> {
    let bids = chosen(NexmarkKind::Bid, &BIDDERS)?;
    let sessions = streams.only().process("sessions", move |_| {
        let spec = SessionSpec {
            gap_ms: TEN_SECONDS_MS,
            key_columns: vec![1],
            aggregates: vec![AggregateSpec::count("bid_count")],
            allowed_lateness_ms: 0,
            late: None,
        };
        Ok(SessionAggregate::new(bids.clone(), spec)?)
    });
    Ok(columns(sessions, &[3, 4, 1, 2]))
}

struct Session {
    start: i64,
    last: i64,
    bids: i64,
}

pub(crate) fn q11_by_hand(input: &Input) -> Outcome {
    let schema = int64_schema(["bidder", "bid_count", "window_start", "window_end"]);
    let mut outcome = Outcome::default();
    let mut sessions: ByKey<i64, Session> = ByKey::default();
    let mut over: Vec<[i64; 4]> = Vec::new();
    for (at, batch) in input.batches().iter().enumerate() {
        let bidders = batch.column(KEY).as_primitive::<Int64Type>().values();
        for (time, bidder) in times(batch).iter().zip(bidders) {
            let session = sessions.entry(*bidder).or_insert(Session {
                start: *time,
                last: *time,
                bids: 0,
            });
            if time - session.last >= TEN_SECONDS_MS {
                over.push(q11_row(*bidder, session));
                (session.start, session.bids) = (*time, 0);
            }
            session.last = *time;
            session.bids += 1;
        }
        let watermark = input.sides[0].watermark_after(at);
        sessions.retain(|bidder, session| {
            let is_over = watermark - session.last >= TEN_SECONDS_MS;
            if is_over {
                over.push(q11_row(*bidder, session));
            }
            !is_over
        });
        outcome.add(&rows_of(&schema, &mut over));
    }
    outcome
}

fn q11_row(bidder: i64, session: &Session) -> [i64; 4] {
    [
        bidder,
        session.bids,
        session.start,
        session.last + TEN_SECONDS_MS,
    ]
}

/// Event time and bidder.
pub(crate) fn q12_events(smoke: bool) -> Input {
    bids_without_watermarks(smoke, &BIDDERS)
}

/// q12: how many bids each bidder made in each window of processing time, of a clock that goes
/// on by a second with each batch, so that both sides see the same.
pub(crate) fn q12(streams: Streams) -> Result<BatchStream, BenchError> {
    let count = count_by_key(WindowAssigner::tumbling(TEN_SECONDS_MS, 0)?);
    let bids = chosen(NexmarkKind::Bid, &BIDDERS)?;
    let arrived = streams
        .only()
        .process("arrival", |_| Ok(Arrival::default()));
    let counted = arrived.process("count", move |_| {
        Ok(WindowAggregate::new(bids.clone(), count.clone())?)
    });
    Ok(columns(counted, &[3, 4, 1, 2]))
}

/// Gives rows the time at which they arrive as event time, by the fixed clock, and watermarks.
#[derive(Default)]
struct Arrival {
    batches: i64,
}

impl Operator<RecordBatch, RecordBatch> for Arrival {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        let arrival = q12_arrival(self.batches);
        self.batches += 1;
        let mut columns = batch.columns().to_vec();
        columns[0] = Arc::new(Int64Array::from_value(arrival, batch.num_rows()));
        out.emit(RecordBatch::try_new(batch.schema(), columns)?);
        // The next batch is later.
        out.watermark(Watermark::active(arrival));
        Ok(Progress::Done)
    }
}

pub(crate) fn q12_by_hand(input: &Input) -> Outcome {
    let schema = int64_schema(["bidder", "bid_count", "window_start", "window_end"]);
    let mut outcome = Outcome::default();
    let mut counts: ByKey<i64, i64> = ByKey::default();
    let batches = input.batches();
    for (at, batch) in batches.iter().enumerate() {
        let bidders = batch.column(KEY).as_primitive::<Int64Type>().values();
        for bidder in bidders {
            *counts.entry(*bidder).or_default() += 1;
        }
        let window = |at| q12_arrival(at).div_euclid(TEN_SECONDS_MS);
        if at + 1 == batches.len() || window(at as i64 + 1) != window(at as i64) {
            let start = window(at as i64) * TEN_SECONDS_MS;
            let rows = counts.drain();
            let rows = rows.map(|(bidder, bids)| [bidder, bids, start, start + TEN_SECONDS_MS]);
            outcome.add(&rows_of(&schema, &mut rows.collect()));
        }
    }
    outcome
}

const fn q12_arrival(batch: i64) -> i64 {
    batch * Q12_BATCH_MS
}

/// Counts rows by the column behind the event time and window.
fn count_by_key(assigner: WindowAssigner) -> WindowSpec {
    WindowSpec {
        assigner,
        key_columns: vec![1],
        aggregates: vec![AggregateSpec::count("num")],
        allowed_lateness_ms: 0,
        early: EarlyResults::default(),
        late: None,
    }
}

/// The row of each window with the greatest value of a column.
fn first_by(column: usize, windows: WindowAssigner) -> TopNSpec {
    TopNSpec {
        rows_max: 1,
        key_columns: vec![],
        order: vec![(column, true)],
        windows: Some(windows),
        late: None,
    }
}

/// The columns at these positions.
pub(super) fn columns(stream: BatchStream, positions: &'static [usize]) -> BatchStream {
    stream.process("columns", move |_| {
        Ok(Project::new(Box::new(move |batch| {
            Ok(batch.project(positions)?)
        })))
    })
}

/// The schema of these columns of events of `kind`.
pub(super) fn chosen(kind: NexmarkKind, positions: &[usize]) -> Result<SchemaRef, BenchError> {
    Ok(Arc::new(nexmark_schema(kind).project(positions)?))
}

fn int64_schema<const N: usize>(names: [&str; N]) -> SchemaRef {
    let fields = names.map(|name| Field::new(name, DataType::Int64, true));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Rows as a batch; none is left.
fn rows_of<const N: usize>(schema: &SchemaRef, rows: &mut Vec<[i64; N]>) -> RecordBatch {
    let column = |at: usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row[at])))
    };
    let batch = batch_of(schema, (0..N).map(column).collect());
    rows.clear();
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bids_that_go_on_in_time_fill_several_windows_and_sessions() {
        assert!(q5_by_hand(&q5_events(true)).rows > 5);
        assert!(q7_by_hand(&q7_events(true)).rows > 5);
        let input = q11_events(true);
        assert!(q12_by_hand(&input).rows > 5, "{}", q12_by_hand(&input).rows);
        let sessions = q11_by_hand(&input).rows;
        assert!(50 < sessions && sessions < input.rows(), "{sessions}");
    }
}
