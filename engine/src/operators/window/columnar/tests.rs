//! The windows against a model that keeps every row and computes every result from scratch.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::util::display::array_value_to_string;

use super::*;
use crate::element::StreamElement;
use crate::limits::BATCH_ROWS;
use crate::operators::AggregateKind;
use crate::operators::testing::{Harness, Random};
use crate::operators::window::Window;

const LATE: SideTag<RecordBatch> = SideTag::new(3);

type Input = (Option<i64>, Option<i64>, &'static str, Option<i64>);

fn schema() -> SchemaRef {
    let field = |name, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("event_time", DataType::Int64),
        field("number", DataType::Int64),
        field("text", DataType::Utf8),
        field("value", DataType::Int64),
        field("float", DataType::Float64),
        field("odd", DataType::Boolean),
    ]))
}

fn batch(rows: &[Input]) -> RecordBatch {
    let ints = |of: fn(&Input) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<Int64Array>())
    };
    let texts: StringArray = rows.iter().map(|row| Some(row.2)).collect();
    let floats: Float64Array = rows.iter().map(|row| row.3.map(|v| v as f64)).collect();
    let odd: BooleanArray = rows.iter().map(|row| row.3.map(|v| v % 2 != 0)).collect();
    let columns = vec![
        ints(|row| row.0),
        ints(|row| row.1),
        Arc::new(texts),
        ints(|row| row.3),
        Arc::new(floats),
        Arc::new(odd),
    ];
    RecordBatch::try_new(schema(), columns).expect("columns and schema agree")
}

fn spec(assigner: WindowAssigner, key_columns: &[usize], lateness_ms: u64) -> WindowSpec {
    use AggregateKind::{CountColumn, Max, Mean, Min, Sum};
    WindowSpec {
        assigner,
        key_columns: key_columns.to_vec(),
        aggregates: vec![
            AggregateSpec::count("rows"),
            AggregateSpec::count("odd_rows").filtered_by(5),
            AggregateSpec::of(CountColumn, 3, "values"),
            AggregateSpec::of(Sum, 3, "sum"),
            AggregateSpec::of(Mean, 3, "mean"),
            AggregateSpec::of(Min, 4, "least"),
            AggregateSpec::of(Max, 3, "most_odd").filtered_by(5),
            AggregateSpec::of(Max, 2, "last_text"),
        ],
        allowed_lateness_ms: lateness_ms,
        early: EarlyResults::default(),
        late: Some(LATE),
    }
}

fn window_operator(spec: WindowSpec, room: usize) -> Harness<WindowAggregate, RecordBatch> {
    let operator = WindowAggregate::new(schema(), spec).expect("a fitting spec");
    Harness::new(operator, room)
}

fn texts(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let row = |batch: &RecordBatch, row| {
        let columns = batch.columns().iter();
        columns
            .map(|column| array_value_to_string(column, row).expect("a printable value"))
            .collect()
    };
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |at| row(batch, at)))
        .collect()
}

/// Keeps all rows that are in a window that takes rows in.
struct Model {
    spec: WindowSpec,
    rows: Vec<Input>,
    watermark: Option<i64>,
    late: usize,
}

impl Model {
    fn expired(&self, window: Window) -> bool {
        let lateness = self.spec.allowed_lateness_ms;
        self.watermark
            .is_some_and(|watermark| window.is_expired(watermark, lateness))
    }

    fn key(&self, row: &Input) -> Vec<String> {
        let number = row.1.map_or_else(String::new, |number| number.to_string());
        let columns = self.spec.key_columns.iter();
        columns
            .map(|column| match column {
                1 => number.clone(),
                _ => row.2.to_owned(),
            })
            .collect()
    }

    fn result(&self, window: Window, key: &[String]) -> Vec<String> {
        let in_window = |row: &&Input| {
            let time = row.0.expect("kept rows have a time");
            self.spec.assigner.windows_of(time).any(|of| of == window) && self.key(row) == key
        };
        let rows: Vec<&Input> = self.rows.iter().filter(in_window).collect();
        let values: Vec<i64> = rows.iter().filter_map(|row| row.3).collect();
        let odd = values.iter().filter(|value| **value % 2 != 0);
        let sum: i64 = values.iter().sum();
        let float = |value: Option<f64>| {
            let column: ArrayRef = Arc::new(Float64Array::from(vec![value]));
            array_value_to_string(&column, 0).expect("a float")
        };
        let some = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
        let any = !values.is_empty();
        let mut out = vec![
            window.last().to_string(),
            window.start().to_string(),
            window.end().to_string(),
        ];
        out.extend(key.iter().cloned());
        out.extend([
            rows.len().to_string(),
            odd.clone().count().to_string(),
            values.len().to_string(),
            some(any.then_some(sum)),
            float(any.then(|| sum as f64 / values.len() as f64)),
            float(values.iter().min().map(|least| *least as f64)),
            some(odd.max().copied()),
            rows.iter().map(|row| row.2).max().unwrap_or("").to_owned(),
        ]);
        out
    }

    /// The results of the windows of `rows` that `due` says are to be emitted.
    fn results(&self, rows: &[Input], due: impl Fn(Window) -> bool) -> Vec<Vec<String>> {
        let mut wanted: Vec<(Window, Vec<String>)> = Vec::new();
        for row in rows {
            for window in self.spec.assigner.windows_of(row.0.expect("a time")) {
                let one = (window, self.key(row));
                if due(window) && !wanted.contains(&one) {
                    wanted.push(one);
                }
            }
        }
        wanted.sort();
        wanted
            .iter()
            .map(|(window, key)| self.result(*window, key))
            .collect()
    }

    fn process(&mut self, rows: &[Input]) -> Vec<Vec<String>> {
        let kept = |row: &&Input| {
            row.0.is_some_and(|time| {
                let mut windows = self.spec.assigner.windows_of(time);
                windows.any(|window| !self.expired(window))
            })
        };
        let kept: Vec<Input> = rows.iter().filter(kept).copied().collect();
        self.late += rows.len() - kept.len();
        self.rows.extend(&kept);
        self.results(&kept, |window| {
            let complete = self.watermark.is_some_and(|wm| window.is_complete(wm));
            complete && !self.expired(window)
        })
    }

    fn advance(&mut self, watermark: i64) -> Vec<Vec<String>> {
        let before = self.watermark;
        let results = self.results(&self.rows, |window| {
            let was = before.is_some_and(|before| window.is_complete(before));
            window.is_complete(watermark) && !was
        });
        self.watermark = Some(watermark);
        results
    }
}

fn random_rows(random: &mut Random, around: i64) -> Vec<Input> {
    let count = random.below(12);
    (0..count)
        .map(|_| {
            let time = around.saturating_add(random.between(-60, 40));
            let value = (random.below(8) > 0).then(|| random.between(-50, 50));
            (
                (random.below(20) > 0).then_some(time),
                (random.below(9) > 0).then(|| random.between(0, 3)),
                ["", "a", "b", "äö"][random.below(4) as usize],
                value,
            )
        })
        .collect()
}

fn check_against_model(random: &mut Random) {
    let size = random.between(1, 30);
    let slide = match random.below(3) {
        0 => size,
        _ => random.between(1, size + 1),
    };
    let offset = random.between(-50, 50);
    let assigner = WindowAssigner::sliding(size, slide, offset).expect("a size");
    let lateness = random.below(2) * random.below(40);
    let keys: &[usize] = [&[1][..], &[2], &[1, 2], &[]][random.below(4) as usize];
    let spec = spec(assigner, keys, lateness);
    let mut tight = window_operator(spec.clone(), 1);
    let mut wide = window_operator(spec.clone(), usize::MAX);
    let mut model = Model {
        spec,
        rows: Vec::new(),
        watermark: None,
        late: 0,
    };
    let mut around = random.between(-100, 100);
    for step in 0..30 {
        let expected = if random.below(3) > 0 {
            let rows = random_rows(random, around);
            tight.push(batch(&rows));
            wide.push(batch(&rows));
            model.process(&rows)
        } else {
            around += random.between(0, 50);
            let watermark = if step == 29 { i64::MAX } else { around - 20 };
            let idle = Watermark::idle(watermark + 1000 * i64::from(step != 29));
            tight.watermark::<RecordBatch>(idle);
            wide.watermark::<RecordBatch>(idle);
            assert_eq!(tight.take(), [StreamElement::Watermark(idle)]);
            assert_eq!(wide.take(), [StreamElement::Watermark(idle)]);
            tight.watermark::<RecordBatch>(Watermark::active(watermark));
            wide.watermark::<RecordBatch>(Watermark::active(watermark));
            model.advance(watermark)
        };
        let got = wide.take();
        assert_eq!(tight.take(), got, "room for one batch at a time");
        let got: Vec<RecordBatch> = got
            .into_iter()
            .filter_map(|element| match element {
                StreamElement::Data(batch) => Some(batch),
                _ => None,
            })
            .collect();
        let mut got = texts(&got);
        let ends: Vec<i64> = got
            .iter()
            .map(|row| row[0].parse().expect("a time"))
            .collect();
        assert!(ends.is_sorted(), "windows come by their end: {ends:?}");
        let mut expected = expected;
        got.sort();
        expected.sort();
        assert_eq!(got, expected, "step {step}");
    }
    let late: usize = wide.take_side(LATE).iter().map(RecordBatch::num_rows).sum();
    assert_eq!(late, model.late);
    assert_eq!(wide.dropped(), late as u64);
}

#[test]
fn random_rows_and_watermarks_give_what_the_model_gives() {
    let mut random = Random::new("window_model");
    for _ in 0..120 {
        check_against_model(&mut random);
    }
}

#[test]
fn a_watermark_that_completes_a_window_of_many_keys_is_resumable() {
    let keys = 3 * BATCH_ROWS as i64 + 5;
    let rows: Vec<Input> = (0..keys)
        .map(|key| (Some(key % 10), Some(key), "", Some(1)))
        .collect();
    for (size, slide) in [(10, 10), (10, 5)] {
        let assigner = WindowAssigner::sliding(size, slide, 0).expect("a size");
        let mut tight = window_operator(spec(assigner, &[1], 0), 1);
        tight.push(batch(&rows));
        tight.watermark::<RecordBatch>(Watermark::active(9));
        let elements = tight.take();
        assert_eq!(
            elements.last(),
            Some(&StreamElement::Watermark(Watermark::active(9))),
            "the watermark follows what it caused"
        );
        let sizes = elements.iter().filter_map(|element| match element {
            StreamElement::Data(batch) => Some(batch.num_rows()),
            _ => None,
        });
        assert!(sizes.clone().all(|rows| rows <= BATCH_ROWS));
        let half_windows = if slide == size { 0 } else { (keys + 1) / 2 };
        assert_eq!(sizes.sum::<usize>() as i64, keys + half_windows);
    }
}

#[test]
fn keys_come_in_the_order_in_which_they_were_first_seen() {
    let assigner = WindowAssigner::tumbling(10, 0).expect("a size");
    let mut harness = window_operator(spec(assigner, &[1], 0), 1);
    harness.push(batch(&[
        (Some(12), Some(1), "", None),
        (Some(3), Some(9), "", None),
        (Some(4), Some(2), "", None),
        (Some(5), Some(9), "", None),
    ]));
    harness.watermark::<RecordBatch>(Watermark::MAX);
    let out = harness.take_data();
    assert_eq!(out.len(), 1, "small windows share a batch");
    assert_eq!(
        out[0].column(3).as_primitive::<Int64Type>().values(),
        &[9, 2, 1]
    );
}

#[test]
fn the_state_of_a_window_and_of_keys_that_are_gone_is_freed() {
    let assigner = WindowAssigner::sliding(20, 10, 0).expect("a size");
    let mut harness = window_operator(spec(assigner, &[1, 2], 5), 1);
    let mut most = (0, 0);
    for step in 0..200_i64 {
        let rows: Vec<Input> = (0..50)
            .map(|n| (Some(step * 10 + n % 10), Some(step * 50 + n), "k", Some(n)))
            .collect();
        harness.push(batch(&rows));
        harness.watermark::<RecordBatch>(Watermark::active(step * 10));
        let live = harness.operator.panes.live();
        most = (most.0.max(live.0), most.1.max(live.1));
    }
    assert!(
        most.0 <= 200 && most.1 <= 200,
        "10,000 keys passed: {most:?}"
    );
    harness.watermark::<RecordBatch>(Watermark::MAX);
    assert_eq!(harness.operator.panes.live(), (0, 0));
}

#[test]
fn a_sum_that_does_not_fit_names_its_column_and_one_that_fits_again_is_right() {
    let assigner = WindowAssigner::tumbling(10, 0).expect("a size");
    let rows = [
        (Some(1), Some(1), "", Some(i64::MAX)),
        (Some(1), Some(1), "", Some(i64::MAX)),
        (Some(1), Some(1), "", Some(i64::MIN)),
    ];
    let mut fits = window_operator(spec(assigner, &[1], 0), 1);
    fits.push(batch(&rows));
    fits.watermark::<RecordBatch>(Watermark::MAX);
    let sums = fits.take_data()[0].column(7).clone();
    assert_eq!(sums.as_primitive::<Int64Type>().values(), &[i64::MAX - 1]);

    let spec = WindowSpec {
        allowed_lateness_ms: 100,
        early: EarlyResults::default(),
        ..spec(assigner, &[1], 0)
    };
    let mut overflows = window_operator(spec, 1);
    overflows.watermark::<RecordBatch>(Watermark::active(50));
    let error = overflows.process(batch(&rows[..2])).expect_err("too large");
    assert!(error.to_string().contains("`sum`"), "{error}");
}

#[test]
fn the_results_have_the_stated_schema() {
    let assigner = WindowAssigner::tumbling(10, 0).expect("a size");
    let output = spec(assigner, &[2], 0)
        .output_schema(&schema())
        .expect("fits");
    let fields: Vec<String> = output
        .fields()
        .iter()
        .map(|field| {
            let null = if field.is_nullable() { "?" } else { "" };
            format!("{} {}{null}", field.name(), field.data_type())
        })
        .collect();
    assert_eq!(
        fields,
        [
            "event_time Int64?",
            "window_start Int64",
            "window_end Int64",
            "text Utf8?",
            "rows Int64",
            "odd_rows Int64",
            "values Int64",
            "sum Int64?",
            "mean Float64?",
            "least Float64?",
            "most_odd Int64?",
            "last_text Utf8?",
        ]
    );
}

#[test]
fn a_spec_that_does_not_fit_the_input_is_refused() {
    let assigner = WindowAssigner::tumbling(10, 0).expect("a size");
    let with = |aggregate| WindowSpec {
        aggregates: vec![aggregate],
        ..spec(assigner, &[1], 0)
    };
    let refused = |spec: WindowSpec| WindowAggregate::new(schema(), spec).err();
    let sum_of_text = with(AggregateSpec::of(AggregateKind::Sum, 2, "s"));
    assert!(matches!(
        refused(sum_of_text),
        Some(SpecError::ColumnType { column: 2, .. })
    ));
    let no_column = with(AggregateSpec::of(AggregateKind::Min, 17, "m"));
    assert!(matches!(
        refused(no_column),
        Some(SpecError::NoColumn { column: 17, .. })
    ));
    let not_boolean = with(AggregateSpec::count("c").filtered_by(3));
    assert!(matches!(
        refused(not_boolean),
        Some(SpecError::ColumnType { column: 3, .. })
    ));
    let no_key = spec(assigner, &[6], 0);
    assert!(matches!(
        refused(no_key),
        Some(SpecError::NoColumn { column: 6, .. })
    ));
}

#[test]
fn counts_that_are_all_that_is_asked_for_are_those_among_others() {
    let mut random = Random::new("counts_that_are_all_that_is_asked_for");
    for _ in 0..20 {
        let (size, lateness_ms) = (random.between(1, 20), random.below(10));
        let windows = WindowAssigner::sliding(size, random.between(1, size + 1), 0);
        let all = spec(windows.expect("windows"), &[1], lateness_ms);
        let alone = WindowSpec {
            aggregates: all.aggregates[..1].to_vec(),
            ..all.clone()
        };
        let (mut all, mut alone) = (window_operator(all, 1), window_operator(alone, 1));
        let mut around = 0;
        for _ in 0..30 {
            around += random.between(0, 9);
            let rows: Vec<Input> = (0..random.below(40))
                .map(|_| {
                    let time = (random.below(9) > 0).then(|| around + random.between(-12, 8));
                    (time, Some(random.between(0, 9)), "text", None)
                })
                .collect();
            for harness in [&mut all, &mut alone] {
                harness.push(batch(&rows));
                harness.watermark::<RecordBatch>(Watermark::active(around - 4));
            }
            let first = |batches: Vec<RecordBatch>| {
                let columns = batches.iter().map(|batch| batch.project(&[0, 1, 2, 3, 4]));
                texts(
                    &columns
                        .collect::<Result<Vec<_>, _>>()
                        .expect("five columns"),
                )
            };
            assert_eq!(first(alone.take_data()), first(all.take_data()));
        }
    }
}
