//! Three queries of the Nexmark benchmark over bids, as jobs and by hand.
//!
//! Bids are `event_time`, `auction`, `bidder`, `price`, `channel`, `url`, `extra`. The
//! currency of q1 is converted in integers, `price * 908 / 1000`, so that both sides agree to
//! the last bit.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use ringway::connect::{NexmarkKind, nexmark_schema};
use ringway::expr::{Expr, Projection};
use ringway::job::BatchStream;
use ringway::operators::columnar::{Filter, Project};

use crate::error::BenchError;

use super::data::Input;
use super::runner::{Outcome, Streams};

/// q2 keeps the auctions whose number is a multiple of this.
const EVERY: i64 = 123;

/// q0: every bid as it is.
pub(crate) fn q0(streams: Streams) -> Result<BatchStream, BenchError> {
    Ok(streams.only())
}

/// q1: the price in another currency.
pub(crate) fn q1(streams: Streams) -> Result<BatchStream, BenchError> {
    let schema = nexmark_schema(NexmarkKind::Bid);
    let columns = "event_time, auction, bidder, price * 908 / 1000 AS price, extra";
    Ok(project(streams.only(), columns, schema))
}

/// q2: the prices of some auctions.
pub(crate) fn q2(streams: Streams) -> Result<BatchStream, BenchError> {
    let schema = nexmark_schema(NexmarkKind::Bid);
    let prices = project(streams.only(), "event_time, auction, price", schema);
    Ok(filter(prices, "auction % 123 = 0", auction_and_price()))
}

pub(crate) fn q0_by_hand(input: &Input) -> Outcome {
    let mut outcome = Outcome::default();
    let bids = input.batches().iter();
    bids.for_each(|batch| outcome.add(batch));
    outcome
}

pub(crate) fn q1_by_hand(input: &Input) -> Outcome {
    let bid = nexmark_schema(NexmarkKind::Bid);
    let fields = [0, 1, 2, 3, 6].map(|column| bid.field(column).clone());
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let mut outcome = Outcome::default();
    for batch in input.batches() {
        let price = batch.column(3).as_primitive::<Int64Type>();
        let price: Int64Array = price.unary(|price| price * 908 / 1000);
        let columns: Vec<ArrayRef> = vec![
            batch.column(0).clone(),
            batch.column(1).clone(),
            batch.column(2).clone(),
            Arc::new(price),
            batch.column(6).clone(),
        ];
        outcome.add(&batch_of(&schema, columns));
    }
    outcome
}

pub(crate) fn q2_by_hand(input: &Input) -> Outcome {
    let schema = auction_and_price();
    let mut outcome = Outcome::default();
    for batch in input.batches() {
        let [times, auctions, prices] =
            [0, 1, 3].map(|column| batch.column(column).as_primitive::<Int64Type>().values());
        let mut kept: [Vec<i64>; 3] = Default::default();
        for ((time, auction), price) in times.iter().zip(auctions).zip(prices) {
            if auction % EVERY == 0 {
                kept[0].push(*time);
                kept[1].push(*auction);
                kept[2].push(*price);
            }
        }
        let columns = kept.map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
        outcome.add(&batch_of(&schema, columns.into()));
    }
    outcome
}

/// These columns of batches of `schema`.
pub(super) fn project(
    stream: BatchStream,
    columns: &'static str,
    schema: SchemaRef,
) -> BatchStream {
    stream.process("project", move |_| {
        let projection = Projection::parse(columns)?.bind(&schema)?;
        Ok(Project::new(Box::new(move |batch| {
            Ok(projection.evaluate(batch)?)
        })))
    })
}

/// The rows of batches of `schema` for which this is true.
pub(super) fn filter(
    stream: BatchStream,
    condition: &'static str,
    schema: SchemaRef,
) -> BatchStream {
    stream.process("filter", move |_| {
        let keep = Expr::parse(condition)?.bind(&schema)?;
        Ok(Filter::new(Box::new(move |batch| {
            Ok(keep.evaluate_predicate(batch)?)
        })))
    })
}

fn auction_and_price() -> SchemaRef {
    let int64 = |name| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![
        int64("event_time"),
        int64("auction"),
        int64("price"),
    ]))
}

/// Columns of the types of `schema` as a batch of it.
pub(super) fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(schema.clone(), columns).expect("the columns are those of the schema")
}

#[cfg(test)]
mod tests {
    use super::super::data::bids;
    use super::*;

    #[test]
    fn the_filter_of_q2_keeps_some_bids_and_not_all() {
        let input = bids(true);
        let kept = q2_by_hand(&input).rows;
        assert!(0 < kept && kept < input.rows() / 10, "{kept}");
    }
}
