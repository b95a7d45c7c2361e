//! Joins, whose rows are kept for a while and put together anew.

use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::DataType;
use ringway::connect::Collected;
use ringway::operators::join::{IntervalBounds, JoinKind, JoinSpec, JoinTime};

use crate::Way;
use crate::batches::{ID, Input};
use crate::compared::Arrived;
use crate::jobs::{run_spread, source};

pub(crate) const WAYS: &[Way] = &[
    Way {
        name: "join",
        go: |input| pairs(input, JoinKind::Inner),
    },
    Way {
        name: "left join",
        go: |input| pairs(input, JoinKind::Left),
    },
    Way {
        name: "join of windows",
        go: windows,
    },
    Way {
        name: "join, the right side",
        go: right_side,
    },
    Way {
        name: "right join, absent left side",
        go: absent_left,
    },
    Way {
        name: "semi join",
        go: |input| alone(input, JoinKind::LeftSemi),
    },
    Way {
        name: "anti join",
        go: |input| alone(input, JoinKind::LeftAnti),
    },
    Way {
        name: "join, late rows",
        go: late,
    },
];

fn spec(kind: JoinKind, time: JoinTime) -> JoinSpec {
    JoinSpec {
        kind,
        time,
        left_keys: vec![ID],
        right_keys: vec![ID],
        left_late: None,
        right_late: None,
    }
}

fn same_time() -> JoinTime {
    JoinTime::Interval(IntervalBounds::new(0, 0).expect("in order"))
}

/// Joins the input with the part of it whose ids are wanted.
fn joined(
    input: &Input,
    right: impl Fn(i64) -> bool,
    spec: JoinSpec,
) -> Result<Vec<RecordBatch>, String> {
    let right = part(input, right);
    let [batches] = run_spread(2, |job| {
        let streams = source(job, input).connect(source(job, &right));
        let joined = streams.join("join", &input.schema, &right.schema, spec);
        let (main, left, right) = joined.map_err(|error| error.to_string())?;
        left.sink("left late", Collected::new().sink());
        right.sink("right late", Collected::new().sink());
        Ok([main])
    })?;
    Ok(batches)
}

/// The rows of the input whose ids are wanted, each a slice.
fn part(input: &Input, wanted: impl Fn(i64) -> bool) -> Input {
    let first = input.ids()[0];
    let mut batches = Vec::new();
    let mut id = first;
    for batch in &input.batches {
        for row in 0..batch.num_rows() {
            if wanted(id) {
                batches.push(batch.slice(row, 1));
            }
            id += 1;
        }
    }
    Input {
        schema: Arc::clone(&input.schema),
        batches,
    }
}

fn is_even(id: i64) -> bool {
    id % 2 == 0
}

fn pairs(input: &Input, kind: JoinKind) -> Result<Arrived, String> {
    let batches = joined(input, is_even, spec(kind, same_time()))?;
    let ids = match kind {
        JoinKind::Inner => input.ids_that(is_even),
        _ => input.ids(),
    };
    // After the event time of the pair.
    Ok(Arrived {
        shift: 1,
        ..Arrived::of(batches, ids)
    })
}

fn windows(input: &Input) -> Result<Arrived, String> {
    let time = JoinTime::SameWindow(
        ringway::operators::window::WindowAssigner::tumbling(1_000, 0).expect("a size above 0"),
    );
    let batches = joined(input, is_even, spec(JoinKind::Inner, time))?;
    Ok(Arrived {
        shift: 3,
        ..Arrived::of(batches, input.ids_that(is_even))
    })
}

/// Also where a left row has none: rows of nulls.
fn right_side(input: &Input) -> Result<Arrived, String> {
    let batches = joined(input, is_even, spec(JoinKind::Full, same_time()))?;
    let ids = input.ids().into_iter().map(|id| is_even(id).then_some(id));
    Ok(Arrived {
        batches,
        shift: 1 + input.schema.fields().len(),
        ids: ids.collect(),
        nullable: true,
        without_runs: false,
    })
}

fn absent_left(input: &Input) -> Result<Arrived, String> {
    let left = part(input, is_even);
    let [batches] = run_spread(2, |job| {
        let streams = source(job, &left).connect(source(job, input));
        let spec = spec(JoinKind::Right, same_time());
        let joined = streams.join("join", &left.schema, &input.schema, spec);
        let (main, left, right) = joined.map_err(|error| error.to_string())?;
        left.sink("left late", Collected::new().sink());
        right.sink("right late", Collected::new().sink());
        Ok([main])
    })?;
    let ids = input.ids().into_iter().map(|id| is_even(id).then_some(id));
    Ok(Arrived {
        batches,
        shift: 1,
        ids: ids.collect(),
        nullable: true,
        without_runs: false,
    })
}

fn alone(input: &Input, kind: JoinKind) -> Result<Arrived, String> {
    let batches = joined(input, is_even, spec(kind, same_time()))?;
    let wanted = |id| is_even(id) == (kind == JoinKind::LeftSemi);
    Ok(Arrived::of(batches, input.ids_that(wanted)))
}

/// Those without an event time, which match nothing.
fn late(input: &Input) -> Result<Arrived, String> {
    let untimed = |batch: &RecordBatch| {
        let mut columns = batch.columns().to_vec();
        columns[0] = new_null_array(&DataType::Int64, batch.num_rows());
        RecordBatch::try_new(batch.schema(), columns).expect("column 0 is nullable")
    };
    let untimed = Input {
        schema: Arc::clone(&input.schema),
        batches: input.batches.iter().map(untimed).collect(),
    };
    let [mut left, right] = run_spread(2, |job| {
        let streams = source(job, &untimed).connect(source(job, &untimed));
        let spec = spec(JoinKind::Inner, same_time());
        let joined = streams.join("join", &input.schema, &input.schema, spec);
        let (main, left, right) = joined.map_err(|error| error.to_string())?;
        main.sink("main", Collected::new().sink());
        Ok([left, right])
    })?;
    left.extend(right);
    Ok(Arrived::of(left, input.ids().repeat(2)))
}
