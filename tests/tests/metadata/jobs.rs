//! Running a job of batches to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;

use ringway::connect::{Collected, MemorySource};
use ringway::element::{StreamElement, Watermark};
use ringway::job::{BatchStream, Job, JobOutcome, PlanOptions, RunOptions};
use ringway::partition::Parallelism;

use crate::batches::Input;

pub(crate) fn subtasks(count: u32) -> Parallelism {
    Parallelism::new(count).unwrap()
}

/// The input as one subtask's stream, without watermarks before the end.
pub(crate) fn source(job: &Job, input: &Input) -> BatchStream {
    let batches = input.batches.clone();
    job.source("input", move |_| {
        Ok(MemorySource::of_batches(batches.clone()))
    })
    .parallelism(subtasks(1))
}

/// The input behind a watermark that makes all of it late.
pub(crate) fn late_source(job: &Job, input: &Input) -> BatchStream {
    let batches = input.batches.clone();
    job.source("input", move |_| {
        let watermark = StreamElement::Watermark(Watermark::active(1_000_000));
        let data = batches.clone().into_iter().map(StreamElement::Data);
        Ok(MemorySource::new([watermark].into_iter().chain(data)))
    })
    .parallelism(subtasks(1))
}

/// Runs a job that `build` makes, each operator as one subtask, and gives the batches of each
/// stream that it returns.
pub(crate) fn run<const N: usize>(
    build: impl FnOnce(&Job) -> Result<[BatchStream; N], String>,
) -> Result<[Vec<RecordBatch>; N], String> {
    run_spread(1, build)
}

/// As [`run`], each operator as so many subtasks.
pub(crate) fn run_spread<const N: usize>(
    parallelism: u32,
    build: impl FnOnce(&Job) -> Result<[BatchStream; N], String>,
) -> Result<[Vec<RecordBatch>; N], String> {
    let job = Job::new("columns");
    let streams = build(&job)?;
    let collected = streams.map(|stream| {
        let collected = Collected::new();
        stream.sink("collected", collected.sink());
        collected
    });
    end(job, parallelism)?;
    Ok(collected.map(|collected| {
        let mut batches = collected.batches();
        batches.retain(|batch| batch.num_rows() > 0);
        batches
    }))
}

/// Runs a job that must come to its end.
pub(crate) fn end(job: Job, parallelism: u32) -> Result<(), String> {
    let options = PlanOptions {
        parallelism: subtasks(parallelism),
        workers: vec![None; 2],
        capacity_elements: 2,
        ..PlanOptions::default()
    };
    let run = || job.run_with(&options, &RunOptions::default());
    let report = catch_unwind(AssertUnwindSafe(run)).map_err(|_| "a panic")?;
    match report.map_err(|error| error.to_string())?.outcome {
        JobOutcome::Ended => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
