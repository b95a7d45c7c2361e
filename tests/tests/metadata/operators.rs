//! Each operator that passes columns on.

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::Int64Type;
use ringway::operators::columnar::{
    AssignWatermarks, Deduplicate, DeduplicateSpec, Filter, Project, Split, TopN, TopNSpec,
};
use ringway::operators::window::{EarlyResults, WindowAggregate, WindowAssigner, WindowSpec};
use ringway::operators::{AggregateSpec, SpecError};
use ringway::watermark::WatermarkStrategy;
use std::sync::Arc;

use crate::Way;
use crate::batches::{ID, Input, KEY};
use crate::compared::Arrived;
use crate::jobs::{late_source, run, source};

pub(crate) const WAYS: &[Way] = &[
    Way {
        name: "filter",
        go: filter,
    },
    Way {
        name: "project",
        go: project,
    },
    Way {
        name: "split",
        go: split,
    },
    Way {
        name: "watermarks",
        go: watermarks,
    },
    Way {
        name: "deduplicate",
        go: deduplicate,
    },
    Way {
        name: "deduplicate, late rows",
        go: deduplicate_late,
    },
    Way {
        name: "top n",
        go: top,
    },
    Way {
        name: "top n of windows",
        go: top_of_windows,
    },
    Way {
        name: "top n, late rows",
        go: top_late,
    },
    Way {
        name: "window, late rows",
        go: window_late,
    },
];

fn is_even(batch: &RecordBatch) -> BooleanArray {
    let ids = batch.column(ID).as_primitive::<Int64Type>();
    BooleanArray::from_unary(ids, |id| id % 2 == 0)
}

fn failed(error: SpecError) -> String {
    error.to_string()
}

fn tumbling() -> WindowAssigner {
    WindowAssigner::tumbling(1_000, 0).expect("a size above 0")
}

fn filter(input: &Input) -> Result<Arrived, String> {
    let [batches] = run(|job| {
        let keep = |batch: &RecordBatch| Ok(is_even(batch));
        Ok([source(job, input).process("filter", move |_| Ok(Filter::new(Box::new(keep))))])
    })?;
    Ok(Arrived::of(batches, input.ids_that(|id| id % 2 == 0)))
}

fn project(input: &Input) -> Result<Arrived, String> {
    let [batches] = run(|job| {
        let same = |batch: &RecordBatch| Ok(batch.clone());
        Ok([source(job, input).process("project", move |_| Ok(Project::new(Box::new(same))))])
    })?;
    Ok(Arrived::of(batches, input.ids()))
}

fn split(input: &Input) -> Result<Arrived, String> {
    let [mut evens, others] = run(|job| {
        let (evens, others) = source(job, input).process_with_side("split", |_, side| {
            Ok(Split::new(
                Box::new(|batch: &RecordBatch| Ok(is_even(batch))),
                side,
            ))
        });
        Ok([evens, others])
    })?;
    evens.extend(others);
    Ok(Arrived::of(evens, input.ids()))
}

fn watermarks(input: &Input) -> Result<Arrived, String> {
    let [batches] = run(|job| {
        let assign = |_: &_| Ok(AssignWatermarks::new(WatermarkStrategy::monotonic()));
        Ok([source(job, input).process("watermarks", assign)])
    })?;
    Ok(Arrived::of(batches, input.ids()))
}

fn deduplicate(input: &Input) -> Result<Arrived, String> {
    let schema = Arc::clone(&input.schema);
    let [batches] = run(|job| {
        Ok([source(job, input).process("deduplicate", move |_| {
            let spec = DeduplicateSpec {
                key_columns: vec![KEY],
                ttl_ms: None,
                late: None,
            };
            Ok(Deduplicate::new(Arc::clone(&schema), spec)?)
        })])
    })?;
    let ids = input.ids().into_iter().take(3);
    Ok(Arrived::of(batches, ids))
}

fn deduplicate_late(input: &Input) -> Result<Arrived, String> {
    let schema = Arc::clone(&input.schema);
    let [batches] = run(|job| {
        let deduplicated =
            late_source(job, input).process_with_side("deduplicate", move |_, late| {
                let spec = DeduplicateSpec {
                    key_columns: vec![KEY],
                    ttl_ms: Some(1),
                    late: Some(late),
                };
                Ok(Deduplicate::new(Arc::clone(&schema), spec)?)
            });
        deduplicated
            .0
            .sink("others", ringway::connect::Collected::new().sink());
        Ok([deduplicated.1])
    })?;
    Ok(Arrived::of(batches, input.ids()))
}

fn top_spec(windows: Option<WindowAssigner>) -> TopNSpec {
    TopNSpec {
        rows_max: 2,
        key_columns: vec![KEY],
        order: vec![(ID, true)],
        windows,
        late: None,
    }
}

/// The last two rows of each key.
fn last_two(input: &Input) -> Vec<i64> {
    let last = ringway_tests::columns::ROWS as i64;
    input.ids_that(|id| id >= last - 6)
}

/// By how many columns the input's stand behind those of the operator itself.
fn shift(input: &Input, output: &arrow::datatypes::SchemaRef) -> Result<usize, String> {
    let columns = input.schema.fields().len();
    let is_carried = |start: &usize| {
        let fields = output.fields()[*start..*start + columns].iter();
        fields
            .zip(input.schema.fields())
            .all(|(is, was)| is.name() == was.name())
    };
    (0..=output.fields().len() - columns)
        .find(is_carried)
        .ok_or_else(|| format!("{output:?} does not hold the input's columns"))
}

fn top(input: &Input) -> Result<Arrived, String> {
    let schema = Arc::clone(&input.schema);
    let output = top_spec(None).output_schema(&schema).map_err(failed)?;
    // As one batch, since each batch gives all rows so far of its keys.
    let whole = arrow::compute::concat_batches(&schema, &input.batches);
    let whole = Input {
        schema: Arc::clone(&schema),
        batches: vec![whole.map_err(|error| error.to_string())?],
    };
    let [batches] = run(|job| {
        Ok([source(job, &whole).process("top", move |_| {
            Ok(TopN::new(Arc::clone(&schema), top_spec(None))?)
        })])
    })?;
    let arrived = Arrived::of(batches, last_two(input));
    Ok(Arrived {
        shift: shift(input, &output)?,
        ..arrived
    })
}

fn top_of_windows(input: &Input) -> Result<Arrived, String> {
    let schema = Arc::clone(&input.schema);
    let spec = || top_spec(Some(tumbling()));
    let output = spec().output_schema(&schema).map_err(failed)?;
    let [batches] =
        run(|job| {
            Ok([source(job, input)
                .process("top", move |_| Ok(TopN::new(Arc::clone(&schema), spec())?))])
        })?;
    let arrived = Arrived::of(batches, last_two(input));
    Ok(Arrived {
        shift: shift(input, &output)?,
        ..arrived
    })
}

fn top_late(input: &Input) -> Result<Arrived, String> {
    let schema = Arc::clone(&input.schema);
    let [batches] = run(|job| {
        let (main, late) = late_source(job, input).process_with_side("top", move |_, late| {
            let spec = TopNSpec {
                late: Some(late),
                ..top_spec(Some(tumbling()))
            };
            Ok(TopN::new(Arc::clone(&schema), spec)?)
        });
        main.sink(
            "others",
            ringway::connect::Collected::<RecordBatch>::new().sink(),
        );
        Ok([late])
    })?;
    Ok(Arrived::of(batches, input.ids()))
}

fn window_late(input: &Input) -> Result<Arrived, String> {
    let schema = Arc::clone(&input.schema);
    let [batches] = run(|job| {
        let (main, late) = late_source(job, input).process_with_side("window", move |_, late| {
            let spec = WindowSpec {
                assigner: tumbling(),
                key_columns: vec![KEY],
                aggregates: vec![AggregateSpec::count("rows")],
                allowed_lateness_ms: 0,
                early: EarlyResults::default(),
                late: Some(late),
            };
            Ok(WindowAggregate::new(Arc::clone(&schema), spec)?)
        });
        main.sink(
            "others",
            ringway::connect::Collected::<RecordBatch>::new().sink(),
        );
        Ok([late])
    })?;
    Ok(Arrived::of(batches, input.ids()))
}
