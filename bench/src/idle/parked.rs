//! The CPU that a job takes while its source has nothing.

use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ringway::connect::{Blackhole, BlackholeOptions};
use ringway::error::OperatorError;
use ringway::job::{Job, JobOutcome, Plan, PlanOptions, RunOptions, start};
use ringway::operator::{Emitter, Source, SourceProgress, Subtask};
use ringway_shm::Bell;

use crate::case::Case;
use crate::contest::Settings;
use crate::error::BenchError;
use crate::spent::Spent;

/// The name of the case.
pub(crate) const NAME: &str = "idle/parked_job";

/// Percent of a core that a parked job may take.
const LIMIT_PERCENT: f64 = 2.0;

/// Time after the start that is not counted: threads start, and workers spin before they park.
const SETTLE: Duration = Duration::from_millis(100);

/// A run that is only checked is this long.
const SMOKE: Duration = Duration::from_millis(50);

/// Percent of a core that a job with two workers takes, everything in the process included.
pub(crate) fn measure(settings: Settings) -> Result<Case, BenchError> {
    let length = if settings.smoke {
        SMOKE
    } else {
        Duration::from_secs_f64(settings.seconds)
    };
    let job = Job::new("quiet");
    let blackhole = Blackhole::new(BlackholeOptions::default());
    job.source("quiet", |_| Ok(Quiet))
        .rebalance()
        .sink_with("blackhole", move |_| Ok(blackhole.sink()));
    let options = PlanOptions {
        workers: vec![Some(settings.cpus.first.0), Some(settings.cpus.second.0)],
        ..PlanOptions::default()
    };
    let plan = Plan::new(job.into_graph(), &options)?;
    let mut handle = start(&plan, &RunOptions::default())?;
    let mut is_over = handle.wait_timeout(SETTLE).is_some();
    let mut percents = Vec::new();
    for _ in 0..settings.runs {
        if is_over {
            return Err(BenchError::new("the quiet job ended by itself"));
        }
        let (began, spent) = (Instant::now(), Spent::of_process());
        is_over = handle.wait_timeout(length).is_some();
        let share = (Spent::of_process() - spent).cpu_s / began.elapsed().as_secs_f64();
        percents.push(share * 100.0);
    }
    handle.cancel();
    let report = handle.wait();
    if !matches!(report.outcome, JobOutcome::Cancelled) {
        return Err(BenchError::new(format!(
            "the quiet job ended as {:?}",
            report.outcome
        )));
    }
    let unit = "% of a core";
    Ok(Case::against_limit(NAME, unit, &percents, LIMIT_PERCENT))
}

/// A source that has nothing, and does not know when it will.
struct Quiet;

impl Source<RecordBatch> for Quiet {
    fn open(&mut self, _subtask: &Subtask, _bell: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(
        &mut self,
        _out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        Ok(SourceProgress::Pending(None))
    }
}
