//! Sources and options that the scenarios share.

use std::num::NonZeroUsize;

use ringway::batch::{Row, Rows};
use ringway::element::StreamElement;
use ringway::error::OperatorError;
use ringway::job::{Job, JobHandle, JobOutcome, JobReport, Plan, PlanOptions, RunOptions, start};
use ringway::operator::{Emitter, Source, SourceProgress, Subtask};
use ringway::partition::Parallelism;
use ringway::worker::IdlePolicy;
use ringway_tests::within::LONG;

pub(crate) type Batch = Rows<i64>;

pub(crate) fn rows(values: impl IntoIterator<Item = i64>) -> Batch {
    values
        .into_iter()
        .map(|value| Row::at(value, value))
        .collect()
}

pub(crate) fn subtasks(count: u32) -> Parallelism {
    Parallelism::new(count).unwrap()
}

/// How a scenario is run.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) workers: NonZeroUsize,
    pub(crate) parallelism: u32,
    pub(crate) capacity: usize,
    pub(crate) idle: IdlePolicy,
}

impl How {
    pub(crate) fn workers(workers: usize) -> Self {
        Self {
            workers: NonZeroUsize::new(workers).unwrap(),
            parallelism: 1,
            capacity: 1024,
            idle: IdlePolicy::Adaptive,
        }
    }

    #[allow(clippy::needless_update, reason = "options may be added")]
    pub(crate) fn start(self, job: Job) -> JobHandle {
        let options = PlanOptions {
            parallelism: subtasks(self.parallelism),
            workers: vec![None; self.workers.get()],
            capacity_elements: self.capacity,
            ..PlanOptions::default()
        };
        let plan = Plan::new(job.into_graph(), &options).unwrap();
        start(
            &plan,
            &RunOptions {
                idle: self.idle,
                ..RunOptions::default()
            },
        )
        .unwrap()
    }

    /// Runs a job that must come to its end.
    pub(crate) fn run(self, job: Job) -> JobReport {
        end(&mut self.start(job))
    }
}

/// Waits for the end of a job.
pub(crate) fn end(handle: &mut JobHandle) -> JobReport {
    let report = handle.wait_timeout(LONG).expect("the job comes to its end");
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    report
}

/// Emits elements at their times after the start, in milliseconds.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: std::collections::VecDeque<(i64, StreamElement<Batch>)>,
    started_ms: Option<i64>,
    lasts_ms: i64,
}

impl Scripted {
    pub(crate) fn new(
        script: impl IntoIterator<Item = (i64, StreamElement<Batch>)>,
        lasts_ms: i64,
    ) -> Self {
        Self {
            script: script.into_iter().collect(),
            started_ms: None,
            lasts_ms,
        }
    }
}

impl Source<Batch> for Scripted {
    fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, Batch>) -> Result<SourceProgress, OperatorError> {
        let started = *self.started_ms.get_or_insert(out.now());
        let due = |at: i64| started + at <= out.now();
        match self.script.front() {
            Some(&(at, _)) if due(at) => {}
            Some(&(at, _)) => return Ok(SourceProgress::Pending(Some(started + at))),
            None if due(self.lasts_ms) => return Ok(SourceProgress::End),
            None => return Ok(SourceProgress::Pending(Some(started + self.lasts_ms))),
        }
        match self.script.pop_front() {
            Some((_, StreamElement::Data(batch))) => out.emit(batch),
            Some((_, StreamElement::Watermark(watermark))) => out.watermark(watermark),
            _ => unreachable!("a source makes batches and watermarks"),
        }
        Ok(SourceProgress::Ready)
    }
}
