//! Departures by airline, airport and hour, as a job and by hand.
//!
//! The columns are `event_time`, `carrier`, `origin`, `dep_delay`; a cancelled flight has no
//! delay. The job keeps a window until the watermark, 24 hours behind, is past it; the loop
//! keeps all to the end, which is simpler.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use ringway::expr::Expr;
use ringway::job::BatchStream;
use ringway::operators::columnar::{AssignWatermarks, Filter};
use ringway::operators::window::{EarlyResults, WindowAggregate, WindowAssigner, WindowSpec};
use ringway::operators::{AggregateKind, AggregateSpec};
use ringway::watermark::WatermarkStrategy;

use crate::error::BenchError;

use super::by_key::ByKey;
use super::data::{Input, flights_file, read_parquet};
use super::runner::{Outcome, Streams};

pub(crate) const COLUMNS: [&str; 4] = ["event_time", "carrier", "origin", "dep_delay"];

const HOUR_MS: i64 = 3_600_000;

/// No flight of the file left later than 24 hours after its schedule.
const OUT_OF_ORDERNESS_MS: u64 = 24 * 3_600_000;

/// Rows of the result over the whole file, as another engine computed them.
const RESULT_ROWS: u64 = 115_205;

/// Batches of a run that is only checked.
const SMOKE_BATCHES: usize = 1;

/// Rows of a batch of the loop's result.
const RESULT_BATCH_ROWS: usize = 8192;

/// Reads the file in `folder`.
///
/// # Errors
/// When it can't be read.
pub(crate) fn input(folder: &Path, smoke: bool) -> Result<Input, BenchError> {
    let mut batches = read_parquet(&flights_file(folder)?, &COLUMNS)?;
    if smoke {
        batches.truncate(SMOKE_BATCHES);
    }
    Ok(Input::of_file(batches, (!smoke).then_some(RESULT_ROWS)))
}

/// Count, sum, mean and maximum of the delays by airline, airport and hour.
pub(crate) fn hourly(streams: Streams) -> Result<BatchStream, BenchError> {
    let departures = streams
        .only()
        .process("watermarks", |_| {
            let strategy = WatermarkStrategy::bounded_out_of_orderness(OUT_OF_ORDERNESS_MS);
            Ok(AssignWatermarks::new(strategy))
        })
        .process("departures", |_| {
            let keep = Expr::parse("dep_delay IS NOT NULL")?.bind(&schema())?;
            Ok(Filter::new(Box::new(move |batch| {
                Ok(keep.evaluate_predicate(batch)?)
            })))
        });
    Ok(departures.process("hourly", |_| {
        let of_delay = |kind, name| AggregateSpec::of(kind, 3, name);
        let spec = WindowSpec {
            assigner: WindowAssigner::tumbling(HOUR_MS, 0)?,
            key_columns: vec![1, 2],
            aggregates: vec![
                AggregateSpec::count("n"),
                of_delay(AggregateKind::Sum, "total_delay"),
                of_delay(AggregateKind::Mean, "mean_delay"),
                of_delay(AggregateKind::Max, "max_delay"),
            ],
            allowed_lateness_ms: 0,
            early: EarlyResults::default(),
            late: None,
        };
        Ok(WindowAggregate::new(schema(), spec)?)
    }))
}

#[derive(Clone, Copy, Debug)]
struct Delays {
    count: i64,
    total: i64,
    max: i64,
}

/// The start of the window, the airline and the airport.
type Key<'a> = (i64, &'a str, &'a str);

pub(crate) fn hourly_by_hand(input: &Input) -> Outcome {
    let mut windows: ByKey<Key<'_>, Delays> = ByKey::default();
    for batch in input.batches() {
        let times = batch.column(0).as_primitive::<Int64Type>();
        let (carriers, origins) = (
            batch.column(1).as_string::<i32>(),
            batch.column(2).as_string::<i32>(),
        );
        let delays = batch.column(3).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            if delays.is_null(row) {
                continue;
            }
            let time = times.value(row);
            let start = time - time.rem_euclid(HOUR_MS);
            let delay = delays.value(row);
            let key = (start, carriers.value(row), origins.value(row));
            let window = windows.entry(key).or_insert(Delays {
                count: 0,
                total: 0,
                max: i64::MIN,
            });
            window.count += 1;
            window.total += delay;
            window.max = window.max.max(delay);
        }
    }
    let results: Vec<(Key<'_>, Delays)> = windows.into_iter().collect();
    let schema = result_schema();
    let mut outcome = Outcome::default();
    for results in results.chunks(RESULT_BATCH_ROWS) {
        outcome.add(&result_batch(&schema, results));
    }
    outcome
}

fn result_batch(schema: &SchemaRef, results: &[(Key<'_>, Delays)]) -> RecordBatch {
    let ints = |of: fn(&(Key<'_>, Delays)) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(results.iter().map(of)))
    };
    let texts = |of: for<'a> fn(&'a (Key<'_>, Delays)) -> &'a str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(results.iter().map(of)))
    };
    let means = results
        .iter()
        .map(|(_, delays)| delays.total as f64 / delays.count as f64);
    let columns = vec![
        ints(|((start, ..), _)| start + HOUR_MS - 1),
        ints(|((start, ..), _)| *start),
        ints(|((start, ..), _)| start + HOUR_MS),
        texts(|((_, carrier, _), _)| carrier),
        texts(|((.., origin), _)| origin),
        ints(|(_, delays)| delays.count),
        ints(|(_, delays)| delays.total),
        Arc::new(Float64Array::from_iter_values(means)),
        ints(|(_, delays)| delays.max),
    ];
    RecordBatch::try_new(schema.clone(), columns).expect("the columns are those of the schema")
}

fn schema() -> SchemaRef {
    let [time, carrier, origin, delay] = COLUMNS;
    Arc::new(Schema::new(vec![
        Field::new(time, DataType::Int64, true),
        Field::new(carrier, DataType::Utf8, true),
        Field::new(origin, DataType::Utf8, true),
        Field::new(delay, DataType::Int64, true),
    ]))
}

fn result_schema() -> SchemaRef {
    let int64 = |name| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![
        int64("event_time"),
        int64("window_start"),
        int64("window_end"),
        Field::new("carrier", DataType::Utf8, true),
        Field::new("origin", DataType::Utf8, true),
        int64("n"),
        int64("total_delay"),
        Field::new("mean_delay", DataType::Float64, true),
        int64("max_delay"),
    ]))
}
