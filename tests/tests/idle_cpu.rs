//! What an idle job costs. The CPU time of the whole process is measured, so that this is the
//! only test of its process.

use std::time::Duration;

use ringway::batch::Rows;
use ringway::error::OperatorError;
use ringway::job::{Job, JobOutcome, Plan, PlanOptions, RunOptions, start};
use ringway::operator::{Emitter, Source, SourceProgress, Subtask};
use ringway::worker::IdlePolicy;
use ringway_tests::within::{LONG, one_below};

/// Says nothing until it is told to end.
struct Silent;

impl Source<Rows<i64>> for Silent {
    fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, _: &mut Emitter<'_, Rows<i64>>) -> Result<SourceProgress, OperatorError> {
        Ok(SourceProgress::Pending(None))
    }
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time that an idle job of four stages on two workers takes in two seconds.
#[allow(clippy::needless_update, reason = "options may be added")]
fn idle_cpu_time(idle: IdlePolicy) -> Duration {
    let job = Job::new("idle");
    let stream = job.source("silent", |_| Ok(Silent)).rebalance();
    let stream = stream
        .map(|n: i64| n)
        .rebalance()
        .map(|n: i64| n)
        .rebalance();
    stream.sink("collect", ringway::connect::Collected::new().sink());
    let options = PlanOptions {
        workers: vec![None; 2],
        ..PlanOptions::default()
    };
    let plan = Plan::new(job.into_graph(), &options).unwrap();
    let mut handle = start(
        &plan,
        &RunOptions {
            idle,
            ..RunOptions::default()
        },
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let before = cpu_time();
    std::thread::sleep(Duration::from_secs(2));
    let used = cpu_time() - before;
    handle.drain();
    let report = handle.wait_timeout(LONG).expect("the job ends");
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    used
}

#[test]
fn an_idle_job_uses_less_than_two_percent_of_a_core() {
    for idle in [IdlePolicy::Park, IdlePolicy::Adaptive] {
        let what = format!("the CPU time of 2 s with {idle}");
        one_below(Duration::from_millis(40), &what, || idle_cpu_time(idle));
    }
}
