//! Structs as columns: what the derive makes beside the same written by hand.
//!
//! Both turn the same rows of six columns into a record batch (`build`) and back (`parse`), and
//! fold over the rows where they lie in one (`view`). Goal: at most 1.3 times the time of the
//! hand-written form. The results are compared in every run, outside of its time.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringBuilder,
    UInt32Array,
};
use arrow::datatypes::{Float64Type, Int64Type, SchemaRef, UInt32Type};
use ringway::batch::{Row, Rows};
use ringway::batcher::{Batcher, Columnar, ColumnarBatcher, View, view};

use crate::contest::{Contender, Contest, Harness, Measure, Sample};
use crate::error::BenchError;
use crate::pinned::run_on;
use crate::spent::Spent;

/// Rows of a batch.
const ROWS: usize = 8_192;

/// Batches of a run that is only checked.
const SMOKE_BATCHES: u64 = 2;

/// A row of six columns.
#[derive(Clone, Debug, PartialEq, Columnar)]
struct Trade {
    id: i64,
    symbol: String,
    price: f64,
    quantity: u32,
    live: bool,
    limit: Option<i64>,
}

/// What both read, and what both must give.
struct Input {
    rows: Rows<Trade>,
    batch: RecordBatch,
    schema: SchemaRef,
    turnover: f64,
}

/// Measures all cases of `columnar`.
///
/// # Errors
/// When the two forms differ in what they give, or the thread cannot be pinned.
pub(crate) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    let rows: Rows<Trade> = (0..ROWS as i64).map(trade).collect();
    let derived = ColumnarBatcher::<Trade>::new();
    let input = Input {
        batch: derived.build(&rows)?,
        schema: derived.schema(),
        turnover: rows.iter().map(|row| turnover_of(&row.value)).sum(),
        rows,
    };
    let input = &input;
    compare(
        harness,
        "columnar/build",
        contender(
            harness,
            move || Ok(derived.build(&input.rows)?),
            |batch| *batch == input.batch,
        ),
        contender(
            harness,
            || by_hand::build(&input.rows, &input.schema),
            |batch| *batch == input.batch,
        ),
    )?;
    let derived = ColumnarBatcher::<Trade>::new();
    compare(
        harness,
        "columnar/parse",
        contender(
            harness,
            move || Ok(derived.parse(&input.batch)?),
            |rows| *rows == input.rows,
        ),
        contender(
            harness,
            || Ok(by_hand::parse(&input.batch)),
            |rows| *rows == input.rows,
        ),
    )?;
    compare(
        harness,
        "columnar/view",
        contender(
            harness,
            || turnover(&input.batch),
            |sum| *sum == input.turnover,
        ),
        contender(
            harness,
            || Ok(by_hand::turnover(&input.batch)),
            |sum| *sum == input.turnover,
        ),
    )
}

fn compare<'a>(
    harness: &mut Harness,
    name: &str,
    ours: Contender<'a>,
    baseline: Contender<'a>,
) -> Result<(), BenchError> {
    harness.measure(Contest {
        name: name.to_owned(),
        unit: "ns/row",
        measure: Measure::Latency,
        baseline_name: "by hand",
        count: SMOKE_BATCHES,
        ours,
        baseline,
    })
}

/// Does the work for a number of batches, and checks what the last one gave.
fn contender<'a, R: Send>(
    harness: &Harness,
    work: impl Fn() -> Result<R, BenchError> + Sync + 'a,
    is_right: impl Fn(&R) -> bool + 'a,
) -> Contender<'a> {
    let cpu = harness.settings.cpus.first;
    Box::new(move |batches| {
        let before = Spent::of_process();
        let (result, wall) = run_on(cpu, || {
            let began = Instant::now();
            for _ in 1..batches {
                black_box(work()?);
            }
            let result = black_box(work()?);
            Ok::<_, BenchError>((result, began.elapsed()))
        })??;
        if !is_right(&result) {
            return Err(BenchError::new("the result is not that of the rows"));
        }
        let ns_per_row = wall.as_secs_f64() * 1e9 / (batches as f64 * ROWS as f64);
        Ok(Sample::latency(
            ns_per_row,
            wall,
            Spent::of_process() - before,
        ))
    })
}

fn trade(id: i64) -> Row<Trade> {
    let trade = Trade {
        id,
        symbol: format!("SYMBOL-{}", id % 500),
        price: id as f64 / 8.0,
        quantity: (id % 100) as u32,
        live: id % 3 == 0,
        limit: (id % 4 != 0).then_some(id * 2),
    };
    Row::at(1_700_000_000_000 + id, trade)
}

fn turnover_of(trade: &Trade) -> f64 {
    if trade.live && trade.symbol.ends_with('7') {
        trade.price * f64::from(trade.quantity)
    } else {
        0.0
    }
}

/// The derived form of the fold: rows borrowed from the batch.
fn turnover(batch: &RecordBatch) -> Result<f64, BenchError> {
    let trades = view::<Trade>(batch)?;
    let mut sum = 0.0;
    for row in 0..trades.len() {
        let trade = trades.get(row);
        if trade.live && trade.symbol.ends_with('7') {
            sum += trade.price * f64::from(trade.quantity);
        }
    }
    Ok(sum)
}

/// The same without the derive: one column after the other, each with the room that it needs.
mod by_hand {
    use super::*;

    pub(super) fn build(rows: &Rows<Trade>, schema: &SchemaRef) -> Result<RecordBatch, BenchError> {
        let values = || rows.iter().map(|row| &row.value);
        let bytes = values().map(|trade| trade.symbol.len()).sum();
        let mut symbols = StringBuilder::with_capacity(rows.len(), bytes);
        for trade in values() {
            symbols.append_value(&trade.symbol);
        }
        let ids: Vec<i64> = values().map(|trade| trade.id).collect();
        let prices: Vec<f64> = values().map(|trade| trade.price).collect();
        let quantities: Vec<u32> = values().map(|trade| trade.quantity).collect();
        let live: Vec<bool> = values().map(|trade| trade.live).collect();
        let mut limits = Int64Array::builder(rows.len());
        for trade in values() {
            limits.append_option(trade.limit);
        }
        let mut times = Int64Array::builder(rows.len());
        for row in rows {
            times.append_option(row.event_time);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times.finish()),
            Arc::new(Int64Array::from(ids)),
            Arc::new(symbols.finish()),
            Arc::new(Float64Array::from(prices)),
            Arc::new(UInt32Array::from(quantities)),
            Arc::new(BooleanArray::from(live)),
            Arc::new(limits.finish()),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns);
        batch.map_err(|error| BenchError::new(error.to_string()))
    }

    pub(super) fn parse(batch: &RecordBatch) -> Rows<Trade> {
        let times = batch.column(0).as_primitive::<Int64Type>();
        let ids = batch.column(1).as_primitive::<Int64Type>().values();
        let symbols = batch.column(2).as_string::<i32>();
        let prices = batch.column(3).as_primitive::<Float64Type>().values();
        let quantities = batch.column(4).as_primitive::<UInt32Type>().values();
        let live = batch.column(5).as_boolean();
        let limits = batch.column(6).as_primitive::<Int64Type>();
        let row = |row| Row {
            value: Trade {
                id: ids[row],
                symbol: symbols.value(row).to_owned(),
                price: prices[row],
                quantity: quantities[row],
                live: live.value(row),
                limit: limits.is_valid(row).then(|| limits.value(row)),
            },
            event_time: times.is_valid(row).then(|| times.value(row)),
        };
        (0..batch.num_rows()).map(row).collect()
    }

    pub(super) fn turnover(batch: &RecordBatch) -> f64 {
        let symbols = batch.column(2).as_string::<i32>();
        let prices = batch.column(3).as_primitive::<Float64Type>().values();
        let quantities = batch.column(4).as_primitive::<UInt32Type>().values();
        let live = batch.column(5).as_boolean();
        let mut sum = 0.0;
        for row in 0..batch.num_rows() {
            if live.value(row) && symbols.value(row).ends_with('7') {
                sum += prices[row] * f64::from(quantities[row]);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_the_same() {
        let rows: Rows<Trade> = (0..1_000)
            .map(trade)
            .chain([Row::untimed(trade(7).value)])
            .collect();
        let derived = ColumnarBatcher::<Trade>::new();
        let batch = derived.build(&rows).unwrap();
        assert_eq!(by_hand::build(&rows, &derived.schema()).unwrap(), batch);
        assert_eq!(by_hand::parse(&batch), derived.parse(&batch).unwrap());
        assert_eq!(by_hand::turnover(&batch), turnover(&batch).unwrap());
        assert!(by_hand::turnover(&batch) > 0.0);
    }
}
