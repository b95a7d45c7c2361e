//! Runs a job and its loop, and compares what came out.

use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ringway::connect::{Blackhole, BlackholeOptions, MemorySource, SinkConnector, checksum};
use ringway::job::{BatchStream, Job, JobOutcome, Plan, PlanOptions, RunOptions, start};

use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::pinned::run_on;
use crate::spent::Spent;

use super::Operators;
use super::data::Input;

/// What came out of a job or of its loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) rows: u64,
    pub(crate) checksum: u64,
}

/// The streams that a query takes, one a source.
pub(crate) struct Streams(Vec<BatchStream>);

/// How many workers a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    /// One, and everything in one chain.
    One,
    /// Two, with the source on one and all the rest on the other.
    Two,
}

impl Outcome {
    /// Adds a batch of the result.
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        self.checksum = self.checksum.wrapping_add(checksum(batch));
    }

    /// # Errors
    /// When the result has another number of rows than `rows`.
    pub(crate) fn require_rows(self, rows: u64) -> Result<(), BenchError> {
        if self.rows == rows {
            return Ok(());
        }
        Err(BenchError::new(format!(
            "the loop gives {} rows, and {rows} are known to be right",
            self.rows
        )))
    }

    fn times(self, count: u64) -> Self {
        Self {
            rows: self.rows * count,
            checksum: self.checksum.wrapping_mul(count),
        }
    }

    fn require(self, expected: Self) -> Result<(), BenchError> {
        if self == expected {
            return Ok(());
        }
        Err(BenchError::new(format!(
            "the result is {self:?}, and should be {expected:?}"
        )))
    }
}

impl Streams {
    /// The stream of the only source.
    pub(crate) fn only(self) -> BatchStream {
        let [stream]: [BatchStream; 1] = self.all();
        stream
    }

    /// The streams of both sources.
    pub(crate) fn both(self) -> [BatchStream; 2] {
        self.all()
    }

    fn all<const N: usize>(self) -> [BatchStream; N] {
        let streams = self.0.try_into();
        streams.unwrap_or_else(|_| panic!("an input has a side for each stream of its query"))
    }
}

impl Workers {
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::One => "",
            Self::Two => "/2workers",
        }
    }
}

/// Runs a job over the input `count` times: in one go, or as so many jobs where the input
/// can't come twice.
///
/// # Errors
/// When a job fails, or gives another result than `expected`.
pub(crate) fn run_job(
    cpus: CpuPair,
    workers: Workers,
    input: &Input,
    operators: Operators,
    count: u64,
    expected: Outcome,
) -> Result<Sample, BenchError> {
    let (jobs, repeats) = input.jobs_and_repeats(count);
    let (mut wall, mut spent) = (Duration::ZERO, Spent::default());
    for _ in 0..jobs {
        let once = || one_job(cpus, workers, input, operators, repeats);
        let (taken, took, outcome) = match workers {
            Workers::One => run_on(cpus.first, once)??,
            Workers::Two => once()?,
        };
        outcome.require(expected.times(repeats))?;
        wall += taken;
        spent += took;
    }
    let rows = input.rows() * count;
    Ok(Sample::rate(rows, wall, spent, input.bytes() * count))
}

/// Runs the loop over the input `count` times. Where that takes so many jobs, it takes so many
/// threads too: a loop that finds the memory of the pass before would do less than a job.
///
/// # Errors
/// When it gives another result than `expected`.
pub(crate) fn run_loop(
    cpus: CpuPair,
    input: &Input,
    by_hand: fn(&Input) -> Outcome,
    count: u64,
    expected: Outcome,
) -> Result<Sample, BenchError> {
    let (threads, repeats) = input.jobs_and_repeats(count);
    let (began, before) = (Instant::now(), Spent::of_process());
    for _ in 0..threads {
        run_on(cpus.first, || {
            for _ in 0..repeats {
                by_hand(input).require(expected)?;
            }
            Ok::<_, BenchError>(())
        })??;
    }
    let (wall, spent) = (began.elapsed(), Spent::of_process() - before);
    let rows = input.rows() * count;
    Ok(Sample::rate(rows, wall, spent, input.bytes() * count))
}

fn one_job(
    cpus: CpuPair,
    workers: Workers,
    input: &Input,
    operators: Operators,
    repeats: u64,
) -> Result<(Duration, Spent, Outcome), BenchError> {
    let job = Job::new("bench");
    let blackhole = Blackhole::new(BlackholeOptions::default());
    let repeats = usize::try_from(repeats)?;
    let streams = input.sides.iter().map(|side| {
        let side = side.clone();
        let stream = job.source("memory", move |_| {
            Ok(MemorySource::new(side.elements(repeats)))
        });
        match workers {
            Workers::One => stream,
            Workers::Two => stream.rebalance(),
        }
    });
    let streams = Streams(streams.collect());
    let sink = blackhole.clone();
    operators(streams)?.sink_with("blackhole", move |_| Ok(sink.sink()));
    let first = Some(cpus.first.0);
    let options = PlanOptions {
        workers: match workers {
            Workers::One => vec![first],
            Workers::Two => vec![first, Some(cpus.second.0)],
        },
        ..PlanOptions::default()
    };
    let plan = Plan::new(job.into_graph(), &options)?;
    let before = Spent::of_process();
    let report = start(&plan, &RunOptions::default())?.wait();
    let spent = Spent::of_process() - before;
    if !matches!(report.outcome, JobOutcome::Ended) {
        return Err(BenchError::new(format!(
            "the job ended as {:?}",
            report.outcome
        )));
    }
    let counters = blackhole.stats().read();
    let outcome = Outcome {
        rows: counters.rows,
        checksum: counters.checksum.unwrap_or_default(),
    };
    Ok((report.elapsed, spent, outcome))
}
