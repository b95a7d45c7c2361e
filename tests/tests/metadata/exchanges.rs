//! Each way to spread a stream over subtasks.

use std::sync::Arc;

use arrow::array::RecordBatch;
use ringway::job::{BatchStream, Exchange};
use ringway::operators::columnar::Project;
use ringway::output::ByKeyColumns;

use crate::Way;
use crate::batches::{Input, KEY};
use crate::compared::Arrived;
use crate::jobs::{run_spread, source};

pub(crate) const WAYS: &[Way] = &[
    Way {
        name: "rebalance",
        go: |input| spread(input, 1, BatchStream::rebalance),
    },
    Way {
        name: "broadcast",
        go: |input| spread(input, 2, BatchStream::broadcast),
    },
    Way {
        name: "key",
        go: key,
    },
    Way {
        name: "union",
        go: union,
    },
];

fn pass(stream: BatchStream) -> BatchStream {
    stream.process("pass", |_| {
        Ok(Project::new(Box::new(|batch: &RecordBatch| {
            Ok(batch.clone())
        })))
    })
}

fn spread(
    input: &Input,
    copies: usize,
    by: impl FnOnce(BatchStream) -> BatchStream,
) -> Result<Arrived, String> {
    let [batches] = run_spread(2, |job| Ok([pass(by(source(job, input)))]))?;
    Ok(Arrived::of(batches, input.ids().repeat(copies)))
}

fn key(input: &Input) -> Result<Arrived, String> {
    let schema = Arc::clone(&input.schema);
    spread(input, 1, |stream| {
        stream.exchange(Exchange::key::<RecordBatch>(move || {
            Box::new(ByKeyColumns::bind(&schema, &[KEY]).expect("an integer is a key"))
        }))
    })
}

fn union(input: &Input) -> Result<Arrived, String> {
    let [batches] = run_spread(2, |job| {
        Ok([pass(source(job, input).union(source(job, input)))])
    })?;
    Ok(Arrived::of(batches, input.ids().repeat(2)))
}
