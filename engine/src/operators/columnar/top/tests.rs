//! The columnar form against the typed one, which has a model of its own.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use super::*;
use crate::batch::{Payload, Row, Rows};
use crate::operators::columnar::samples::duplicate_names;
use crate::operators::rows;
use crate::operators::testing::{Harness, Random, batch_of_values as batch};

type Value = (i64, i64);

fn spec(rows_max: usize, descending: bool, windows: Option<WindowAssigner>) -> TopNSpec {
    TopNSpec {
        rows_max,
        key_columns: vec![1],
        order: vec![(2, descending)],
        windows,
        late: Some(SideTag::new(2)),
    }
}

fn top(spec: TopNSpec, ties: bool, room: usize) -> Harness<TopN, RecordBatch> {
    let operator = TopN::new(batch(&[]).schema(), spec).expect("a fitting spec");
    let operator = if ties { operator.with_ties() } else { operator };
    Harness::new(operator, room)
}

/// Event time, window start if there is one, key, value, rank.
fn columns(batches: &[RecordBatch], by_window: bool) -> Vec<[Option<i64>; 5]> {
    let positions = match by_window {
        true => [0, 1, 4, 5, 6],
        false => [0, 0, 1, 2, 3],
    };
    let mut rows = Vec::new();
    for batch in batches {
        let cell = |at: usize, row| {
            let column = batch.column(at).as_primitive::<Int64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        for row in 0..batch.num_rows() {
            let mut cells = positions.map(|at| cell(at, row));
            cells[1] = cells[1].filter(|_| by_window);
            rows.push(cells);
        }
    }
    rows
}

fn typed(batches: Vec<Rows<rows::Ranked<i64, Value>>>) -> Vec<[Option<i64>; 5]> {
    let row = |row: Row<rows::Ranked<i64, Value>>| {
        let of = row.value;
        let start = of.window.map(Window::start);
        let (key, value) = of.value;
        [
            row.event_time,
            start,
            Some(key),
            Some(value),
            Some(of.rank as i64),
        ]
    };
    batches.into_iter().flatten().map(row).collect()
}

#[test]
fn both_forms_give_the_same_rows_in_the_same_order() {
    let mut random = Random::new("both_forms_give_the_same_rows_in_the_same_order");
    for _ in 0..40 {
        let (n, descending) = (random.below(4) as usize, random.below(2) == 0);
        let windows = (random.below(2) == 0)
            .then(|| WindowAssigner::sliding(10, random.between(3, 11), 0).expect("windows"));
        let ties = random.below(2) == 0;
        let mut wide = top(spec(n, descending, windows), ties, usize::MAX);
        let mut tight = top(spec(n, descending, windows), ties, 1);
        let (key, by) = (|value: &Value| value.0, |value: &Value| value.1);
        let other = match descending {
            true => rows::TopN::greatest(n, key, by),
            false => rows::TopN::least(n, key, by),
        };
        let other = match windows {
            Some(windows) => other.by_window(windows, None),
            None => other,
        };
        let other = if ties { other.with_ties() } else { other };
        let mut other: Harness<_, Rows<rows::Ranked<i64, Value>>> = Harness::new(other, 1);
        let mut around = 0;
        for _ in 0..40 {
            around += random.between(0, 6);
            let rows: Vec<Row<Value>> = (0..random.below(8))
                .map(|_| Row {
                    value: (random.between(0, 3), random.between(-5, 5)),
                    event_time: (random.below(9) > 0).then(|| around + random.between(-12, 8)),
                })
                .collect();
            wide.push(batch(&rows));
            tight.push(batch(&rows));
            other.push(Rows::from(rows));
            let watermark = match random.below(3) {
                0 => Watermark::idle(around + 100),
                _ => Watermark::active(around - 6),
            };
            wide.watermark::<RecordBatch>(watermark);
            tight.watermark::<RecordBatch>(watermark);
            other.watermark::<Rows<Value>>(watermark);
            let batches = wide.take_data();
            assert_eq!(tight.take_data(), batches);
            let results = columns(&batches, windows.is_some());
            assert_eq!(results, typed(other.take_data()));
        }
        let late = wide.dropped();
        assert_eq!(wide.counts(), other.counts());
        let aside = wide.take_side(SideTag::new(2));
        assert_eq!(aside.iter().map(Payload::rows).sum::<usize>() as u64, late);
        wide.watermark::<RecordBatch>(Watermark::MAX);
        if windows.is_some() {
            assert_eq!(
                wide.operator.interner.live(),
                0,
                "complete windows free their keys"
            );
        }
    }
}

#[test]
fn rows_of_one_key_that_are_left_out_at_once_would_not_have_come_out() {
    let mut random = Random::new("rows_of_one_key_that_are_left_out_at_once");
    for _ in 0..60 {
        let (n, descending) = (random.below(4) as usize, random.below(2) == 0);
        let windows = (random.below(3) > 0)
            .then(|| WindowAssigner::tumbling(random.between(1, 200), 0).expect("windows"));
        let ties = random.below(2) == 0;
        let keyed = spec(n, descending, windows);
        let unkeyed = TopNSpec {
            key_columns: vec![],
            ..keyed.clone()
        };
        let (mut all, mut some) = (top(keyed, ties, 1), top(unkeyed, ties, 1));
        assert!(some.operator.bar.is_some() && all.operator.bar.is_none());
        let (mut around, values) = (0, random.between(5, 3000));
        for _ in 0..20 {
            around += random.between(0, 200);
            let rows: Vec<Row<Value>> = (0..random.below(300))
                .map(|_| Row {
                    value: (7, random.between(-values, values)),
                    event_time: (random.below(999) > 0).then(|| around + random.between(-60, 60)),
                })
                .collect();
            let watermark = Watermark::active(around - 60);
            for harness in [&mut all, &mut some] {
                harness.push(batch(&rows));
                harness.watermark::<RecordBatch>(watermark);
            }
            let (all, some) = (all.take_data(), some.take_data());
            assert_eq!(
                columns(&some, windows.is_some()),
                columns(&all, windows.is_some())
            );
        }
    }
}

#[test]
fn rows_that_stay_do_not_hold_on_to_the_batches_that_they_came_in() {
    let mut harness = top(spec(2, true, None), false, 1);
    for round in 0..40 {
        let rows: Vec<_> = (0..4096)
            .map(|n| Row::untimed((7, round * 4096 + n)))
            .collect();
        harness.push(batch(&rows));
    }
    let last = columns(&harness.take_data(), false);
    let last: Vec<_> = last[last.len() - 2..].iter().map(|row| row[3]).collect();
    assert_eq!(last, [Some(40 * 4096 - 1), Some(40 * 4096 - 2)]);
    let held = harness.operator.held_rows;
    assert!(held <= HELD_ROWS_MAX + 4096 + 8, "{held} rows for 2");
}

#[test]
fn metadata_stays_and_columns_are_found_by_position() {
    let input = duplicate_names();
    let spec = TopNSpec {
        key_columns: vec![],
        order: vec![(2, true)],
        ..spec(5, true, None)
    };
    let operator = TopN::new(input.schema(), spec).expect("a fitting spec");
    let mut harness: Harness<_, RecordBatch> = Harness::new(operator, 1);
    harness.push(input);
    let out = harness.take_data();
    assert_eq!(out[0].schema().metadata()["origin"], "t1");
    let values = |at: usize| {
        out[0]
            .column(at)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    };
    assert_eq!((values(1), values(2)), (vec![2, 1], vec![4, 3]));
}
