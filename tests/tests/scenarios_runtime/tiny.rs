//! Very short streams: the end must not overtake the rows, nor the exit the end.

use ringway::connect::{Collected, MemorySource};
use ringway::job::Job;
use ringway_tests::within::{LONG, within};

use crate::parts::{Batch, How, rows};

fn run_tiny_jobs(count: i64, workers: usize) {
    for n in 0..count {
        let job = Job::new("tiny");
        let collected = Collected::<Batch>::new();
        let batch = rows(0..n % 3);
        let source = job.source("tiny", move |_| {
            Ok(MemorySource::of_batches([batch.clone()]))
        });
        source
            .rebalance()
            .map(|n: i64| n + 1)
            .rebalance()
            .sink("collect", collected.sink());
        How::workers(workers).run(job);
        assert_eq!(
            collected.values::<i64>(),
            (1..=n % 3).collect::<Vec<_>>(),
            "job {n}"
        );
    }
}

#[test]
fn b14_a_thousand_streams_of_no_one_or_two_rows_end_properly() {
    run_tiny_jobs(1_000, 2);
}

#[test]
fn b14_tiny_streams_end_properly_on_one_cpu_too() {
    within(LONG, "tiny jobs on one CPU", || {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let allowed = sched_getaffinity(None).unwrap();
        let mut one = CpuSet::new();
        let cpu = (0..CpuSet::MAX_CPU)
            .find(|&cpu| allowed.is_set(cpu))
            .unwrap();
        one.set(cpu);
        // Workers inherit the affinity of the thread that starts them.
        sched_setaffinity(None, &one).unwrap();
        run_tiny_jobs(300, 2);
    });
}
