//! The typed windows against the columnar ones, which agree with a model of their own.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};

use super::*;
use crate::element::StreamElement;
use crate::operator::Operator;
use crate::operators::testing::{Harness, Random, batch_of_values as batch};
use crate::operators::window::{
    Count, EarlyResults, Extreme, Mean, Sum, WindowAggregate, WindowSpec,
};
use crate::operators::{AggregateKind, AggregateSpec};

const LATE: SideTag<Rows<Value>> = SideTag::new(0);

type Value = (i64, i64);
type Results = (((u64, i64), f64), (i64, i64));
type Out = Rows<WindowResult<i64, Results>>;
type Typed = Box<dyn Operator<Rows<Value>, Out>>;

fn typed(
    assigner: WindowAssigner,
    lateness_ms: u64,
    room: usize,
) -> Harness<Typed, Out, Rows<Value>> {
    let number = |value: &Value| value.1;
    let aggregator = (
        ((Count, Sum(number)), Mean(number)),
        (Extreme::min(number), Extreme::max(number)),
    );
    let operator = KeyedWindow::new(
        |value: &Value| value.0,
        assigner,
        aggregator,
        lateness_ms,
        Some(LATE),
    );
    Harness::new(Box::new(operator), room)
}

fn columnar(assigner: WindowAssigner, lateness_ms: u64) -> Harness<WindowAggregate, RecordBatch> {
    use AggregateKind::{Max, Mean, Min, Sum};
    let spec = WindowSpec {
        assigner,
        key_columns: vec![1],
        aggregates: vec![
            AggregateSpec::count("count"),
            AggregateSpec::of(Sum, 2, "sum"),
            AggregateSpec::of(Mean, 2, "mean"),
            AggregateSpec::of(Min, 2, "min"),
            AggregateSpec::of(Max, 2, "max"),
        ],
        allowed_lateness_ms: lateness_ms,
        early: EarlyResults::default(),
        late: Some(SideTag::new(0)),
    };
    let operator = WindowAggregate::new(batch(&[]).schema(), spec).expect("a fitting spec");
    Harness::new(operator, usize::MAX)
}

fn as_row(result: Row<WindowResult<i64, Results>>) -> ([i64; 8], f64) {
    let WindowResult { key, window, value } = result.value;
    let (((count, sum), mean), (min, max)) = value;
    let time = result.event_time.expect("results have a time");
    let ints = [
        time,
        window.start(),
        window.end(),
        key,
        count as i64,
        sum,
        min,
        max,
    ];
    (ints, mean)
}

fn columnar_rows(elements: Vec<StreamElement<RecordBatch>>) -> Vec<([i64; 8], f64)> {
    let mut rows = Vec::new();
    for element in elements {
        let StreamElement::Data(batch) = element else {
            continue;
        };
        let int = |column: usize, row| batch.column(column).as_primitive::<Int64Type>().value(row);
        for row in 0..batch.num_rows() {
            let mean = batch.column(6).as_primitive::<Float64Type>().value(row);
            rows.push((
                [0, 1, 2, 3, 4, 5, 7, 8].map(|column| int(column, row)),
                mean,
            ));
        }
    }
    rows
}

fn check_against_columnar(random: &mut Random) {
    let size = random.between(1, 30);
    let slide = if random.below(2) == 0 {
        size
    } else {
        random.between(1, size + 1)
    };
    let assigner = WindowAssigner::sliding(size, slide, random.between(-9, 9)).expect("a size");
    let lateness_ms = random.below(2) * random.below(40);
    let mut tight = typed(assigner, lateness_ms, 1);
    let mut wide = typed(assigner, lateness_ms, usize::MAX);
    let mut other = columnar(assigner, lateness_ms);
    let mut around = random.between(-100, 100);
    for step in 0..30 {
        if random.below(3) > 0 {
            let rows: Vec<Row<Value>> = (0..random.below(12))
                .map(|_| Row {
                    value: (random.between(0, 4), random.between(-50, 50)),
                    event_time: (random.below(15) > 0).then(|| around + random.between(-60, 40)),
                })
                .collect();
            tight.push(Rows::from(rows.clone()));
            wide.push(Rows::from(rows.clone()));
            other.push(batch(&rows));
        } else {
            around += random.between(0, 50);
            let watermark = match (step, random.below(4)) {
                (29, _) => Watermark::MAX,
                (_, 0) => Watermark::idle(around + 500),
                _ => Watermark::active(around - 20),
            };
            tight.watermark::<Rows<Value>>(watermark);
            wide.watermark::<Rows<Value>>(watermark);
            other.watermark::<RecordBatch>(watermark);
        }
        let got = wide.take();
        assert_eq!(tight.take(), got, "room for one batch at a time");
        let got: Vec<_> = got
            .into_iter()
            .filter_map(|element| match element {
                StreamElement::Data(batch) => Some(batch),
                _ => None,
            })
            .flatten()
            .map(as_row)
            .collect();
        assert_eq!(got, columnar_rows(other.take()), "same results, same order");
    }
    let late = wide.take_side(LATE).iter().map(Rows::len).sum::<usize>() as u64;
    assert_eq!(late, other.dropped());
    assert_eq!(wide.counts(), other.counts());
}

#[test]
fn typed_and_columnar_windows_give_the_same_results_in_the_same_order() {
    let mut random = Random::new("typed_and_columnar_windows");
    for _ in 0..200 {
        check_against_columnar(&mut random);
    }
}

#[test]
fn a_watermark_that_completes_a_window_of_many_keys_is_resumable() {
    let assigner = WindowAssigner::tumbling(10, 0).expect("a size");
    let mut tight = typed(assigner, 0, 1);
    let keys = 2 * BATCH_ROWS as i64 + 3;
    tight.push(Rows::from_iter((0..keys).map(|key| Row::at(1, (key, 1)))));
    tight.watermark::<Rows<Value>>(Watermark::active(9));
    let elements = tight.take();
    assert_eq!(elements.len(), 4, "three batches, then the watermark");
    assert_eq!(
        elements.last(),
        Some(&StreamElement::Watermark(Watermark::active(9)))
    );
}

#[test]
fn one_step_frees_so_many_keys_of_a_window_that_is_past_and_no_more() {
    const KEYS: i64 = 200_000;
    let mut harness = typed(
        WindowAssigner::tumbling(10, 0).expect("windows"),
        0,
        usize::MAX,
    );
    let rows = (0..KEYS).map(|key| Row::at(key % 10, (key, 1)));
    harness.push(rows.collect::<Rows<Value>>());
    harness.watermark::<Rows<Value>>(Watermark::active(9));
    let results = harness.take_data();
    assert_eq!(results.iter().map(Rows::len).sum::<usize>(), KEYS as usize);
    assert_eq!(harness.steps, 4);
}
