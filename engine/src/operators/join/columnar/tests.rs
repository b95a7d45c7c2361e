//! Columnar joins: against the model, and what becomes of columns.

use std::collections::HashMap;

use arrow::array::{
    ArrayRef, AsArray, DictionaryArray, Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};

use super::*;
use crate::limits::BATCH_ROWS;
use crate::operators::join::model::{Form, LEFT_LATE, Output, RIGHT_LATE, follows_the_model};
use crate::operators::join::{IntervalBounds, JoinKind, JoinTime};
use crate::operators::testing::Harness;

type Side = Either<RecordBatch, RecordBatch>;

/// Joins by a number and a text, which says whether the number is even.
struct Columnar;

fn input() -> SchemaRef {
    let field = |name, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("event_time", DataType::Int64),
        field("parity", DataType::Utf8),
        field("number", DataType::Int64),
        field("key", DataType::Int64),
    ]))
}

fn spec(kind: JoinKind, time: JoinTime) -> JoinSpec {
    JoinSpec {
        kind,
        time,
        left_keys: vec![3, 1],
        right_keys: vec![3, 1],
        left_late: Some(SideTag::new(LEFT_LATE)),
        right_late: Some(SideTag::new(RIGHT_LATE)),
    }
}

fn within(lower_ms: i64, upper_ms: i64) -> JoinTime {
    JoinTime::Interval(IntervalBounds::new(lower_ms, upper_ms).expect("in order"))
}

impl Form for Columnar {
    type Side = RecordBatch;
    type Out = RecordBatch;
    type Op = Join;

    const NULL_KEYS: bool = true;

    fn operator(kind: JoinKind, time: JoinTime) -> Join {
        Join::new(input(), input(), spec(kind, time)).expect("a fitting spec")
    }

    fn batch(rows: &[(Option<i64>, Option<i64>, i64)]) -> RecordBatch {
        let times: Int64Array = rows.iter().map(|row| row.0).collect();
        let parity = |key: i64| if key % 2 == 0 { "even" } else { "odd" };
        let parities: StringArray = rows.iter().map(|row| row.1.map(parity)).collect();
        let numbers: Int64Array = rows.iter().map(|row| Some(row.2)).collect();
        let keys: Int64Array = rows.iter().map(|row| row.1).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(parities),
            Arc::new(numbers),
            Arc::new(keys),
        ];
        RecordBatch::try_new(input(), columns).expect("columns and schema agree")
    }

    fn results(kind: JoinKind, batch: &RecordBatch) -> Vec<Output> {
        let numbers = |at: usize| batch.column(at).as_primitive::<Int64Type>();
        let (first, width) = match batch.schema().field(1).name().as_str() {
            "window_start" => (3, 7),
            _ if kind.gives_pairs() => (1, 5),
            _ => (0, 4),
        };
        let cell = |at: usize, row| {
            let column = numbers(at);
            column.is_valid(row).then(|| column.value(row))
        };
        let row = |row| {
            let time = cell(0, row).expect("a time");
            let number = cell(first + 2, row);
            match kind {
                JoinKind::RightSemi | JoinKind::RightAnti => (time, None, number),
                _ if kind.gives_pairs() => (time, number, cell(width + 2, row)),
                _ => (time, number, None),
            }
        };
        (0..batch.num_rows()).map(row).collect()
    }

    fn counts(operator: &Join) -> (u64, u64, bool) {
        let nothing = operator.waiting() == (0, 0, 0);
        let counts = operator.row_counts().expect("a join counts rows");
        (counts.late_rows, counts.untimed_rows, nothing)
    }
}

fn harness(kind: JoinKind, time: JoinTime, room: usize) -> Harness<Join, RecordBatch> {
    Harness::new(Columnar::operator(kind, time), room)
}

#[test]
fn columnar_joins_of_every_kind_follow_the_model() {
    follows_the_model::<Columnar>("columnar_joins_of_every_kind_follow_the_model");
}

#[test]
fn a_row_with_very_many_matches_takes_the_memory_of_one_batch() {
    let many = 3 * BATCH_ROWS as i64 + 1;
    let rows: Vec<_> = (0..many)
        .map(|number| (Some(number), Some(1), number))
        .collect();
    let run = |room| {
        let mut harness = harness(JoinKind::Full, within(-many, many), room);
        harness.push(Side::Right(Columnar::batch(&rows)));
        harness.push(Side::Left(Columnar::batch(&[(Some(0), Some(1), -1)])));
        harness.push(Side::Left(Columnar::batch(&[(Some(0), Some(2), -2)])));
        harness.watermark::<Side>(Watermark::MAX);
        let batches = harness.take_data();
        assert!(batches.iter().all(|batch| batch.num_rows() <= BATCH_ROWS));
        assert_eq!(harness.operator.waiting(), (0, 0, 0));
        batches
    };
    let all = run(usize::MAX);
    let rows: usize = all.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows as i64, many + 1);
    assert_eq!(run(1), all);
}

#[test]
fn very_many_rows_without_a_match_come_out_in_bounded_batches() {
    let many = 3 * BATCH_ROWS as i64 + 1;
    let rows: Vec<_> = (0..many)
        .map(|number| (Some(number), Some(number), number))
        .collect();
    let mut harness = harness(JoinKind::LeftAnti, within(0, 5), 1);
    harness.push(Side::Left(Columnar::batch(&rows)));
    harness.watermark::<Side>(Watermark::idle(i64::MAX));
    assert!(
        harness.take_data().is_empty(),
        "an idle watermark proves nothing"
    );
    harness.watermark::<Side>(Watermark::active(many / 2));
    let before: usize = harness.take_data().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(before as i64, many / 2 - 5);
    harness.watermark::<Side>(Watermark::MAX);
    let after = harness.take_data();
    assert_eq!(after.len(), 2);
    assert_eq!(after[1].schema(), input(), "rows alone keep their schema");
}

#[test]
fn one_step_lets_go_of_so_many_rows_and_no_more() {
    const ROWS: i64 = 200_000;
    let rows: Vec<_> = (0..ROWS).map(|n| (Some(0), Some(n), n)).collect();
    let windows = crate::operators::window::WindowAssigner::tumbling(10, 0).expect("windows");
    for time in [within(0, 5), JoinTime::SameWindow(windows)] {
        let mut harness = harness(JoinKind::Inner, time, usize::MAX);
        harness.push(Side::Left(Columnar::batch(&rows)));
        harness.watermark::<Side>(Watermark::active(9));
        assert!(harness.steps >= 4, "{} {time:?}", harness.steps);
        assert_eq!(harness.operator.waiting(), (0, 0, 0));
    }
}

#[test]
fn a_batch_is_held_for_as_long_as_the_window_of_one_of_its_rows() {
    let windows = crate::operators::window::WindowAssigner::tumbling(10, 0).expect("windows");
    let mut harness = harness(JoinKind::Inner, JoinTime::SameWindow(windows), 1);
    // Out of order, so that the rows of a window are apart.
    let rows = [5, 25, 6, 15].map(|time| (Some(time), Some(1), time));
    harness.push(Side::Left(Columnar::batch(&rows)));
    assert_eq!(harness.operator.waiting(), (4, 0, 3));
    for (watermark, waiting) in [(9, 2), (19, 1), (24, 1)] {
        harness.watermark::<Side>(Watermark::active(watermark));
        assert_eq!(harness.operator.waiting(), (waiting, 0, waiting));
        harness.take();
    }
    harness.push(Side::Right(Columnar::batch(&[(Some(29), Some(1), 7)])));
    let out = harness.take_data();
    let results = Columnar::results(JoinKind::Inner, &out[0]);
    assert_eq!(results, [(29, Some(25), Some(7))]);
    harness.watermark::<Side>(Watermark::active(29));
    assert_eq!(harness.operator.waiting(), (0, 0, 0));
}

/// A batch with a text key whose other columns are of types that joins do not look at.
fn wide(word: &str, name: &str) -> RecordBatch {
    let words: StringArray = [word].into_iter().map(Some).collect();
    let dictionary: DictionaryArray<Int32Type> = [word].into_iter().collect();
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None])]);
    let views = arrow::compute::cast(&words, &DataType::Utf8View).expect("text");
    let decimals = arrow::array::Decimal128Array::from(vec![7]);
    let runs = arrow::array::RunArray::<Int32Type>::try_new(
        &arrow::array::Int32Array::from(vec![1]),
        &words,
    );
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![10])),
        Arc::new(words),
        Arc::new(dictionary),
        Arc::new(lists),
        views,
        Arc::new(decimals),
        Arc::new(runs.expect("a run")),
    ];
    let origin = HashMap::from([("origin".to_owned(), name.to_owned())]);
    let field = |(at, column): (usize, &ArrayRef)| {
        let field = Field::new("same", column.data_type().clone(), false);
        match at {
            0 => Field::new("event_time", DataType::Int64, true),
            _ => field.with_metadata(origin.clone()),
        }
    };
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    let metadata = HashMap::from([(name.to_owned(), "t1".to_owned())]);
    let schema = Schema::new_with_metadata(fields, metadata);
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns and schema agree")
}

#[test]
fn columns_of_any_type_and_name_and_their_metadata_come_through() {
    let (left, right) = (wide("a", "left"), wide("a", "right"));
    let spec = JoinSpec {
        left_keys: vec![1],
        right_keys: vec![1],
        ..spec(JoinKind::Full, within(0, 0))
    };
    let join = Join::new(left.schema(), right.schema(), spec).expect("a fitting spec");
    let mut harness: Harness<_, RecordBatch> = Harness::new(join, 1);
    harness.push(Side::Left(left.clone()));
    harness.push(Side::Right(right.clone()));
    harness.push(Side::Left(wide("b", "left")));
    harness.watermark::<Side>(Watermark::MAX);
    let out = harness.take_data();
    let both = &out[0];
    assert_eq!(both.num_columns(), 15);
    for at in 0..7 {
        assert_eq!(both.column(1 + at), left.column(at));
        assert_eq!(both.column(8 + at), right.column(at));
    }
    let schema = both.schema();
    assert_eq!(schema.metadata()["left"], "t1");
    assert_eq!(schema.metadata()["right"], "t1");
    assert_eq!(schema.field(9).metadata()["origin"], "right");
    let alone = &out[1];
    assert_eq!(alone.column(1 + 3), wide("b", "left").column(3));
    assert!((8..15).all(|at| alone.column(at).logical_null_count() == 1));
}

#[test]
fn keys_that_do_not_fit_are_refused_before_anything_runs() {
    let refused = |left_keys: &[usize], right_keys: &[usize]| {
        let spec = JoinSpec {
            left_keys: left_keys.to_vec(),
            right_keys: right_keys.to_vec(),
            ..spec(JoinKind::Inner, within(0, 0))
        };
        let refused = Join::new(input(), input(), spec);
        refused
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert!(refused(&[], &[]).contains("one"), "{}", refused(&[], &[]));
    assert!(refused(&[1], &[1, 2]).contains("as many"));
    assert!(refused(&[1], &[2]).contains("cast one"));
    assert!(refused(&[9], &[2]).contains("column 9"));
}

#[test]
fn a_batch_of_other_columns_than_planned_is_an_error() {
    let mut harness = harness(JoinKind::Inner, within(0, 0), 1);
    let other = wide("a", "left");
    assert!(harness.process(Side::Right(other)).is_err());
}
