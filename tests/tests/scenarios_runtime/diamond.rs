//! A fork that meets again, with as little room as there can be.

use std::time::Duration;

use ringway::connect::Collected;
use ringway::element::Barrier;
use ringway::job::Job;
use ringway::task::TaskCommand;

use crate::barriers::Counting;
use crate::parts::{Batch, How, end};

/// Runs a diamond of capacity-one edges under checkpoints, and says how many came through.
fn run_diamond(workers: usize, unaligned: bool) -> u64 {
    let job = Job::new("diamond");
    let collected = Collected::<Batch>::new();
    let source = job.source("counting", |subtask| Ok(Counting::new(subtask, 3_000, 7)));
    let fork = source.rebalance().map(|n: i64| n);
    let left = fork.clone().rebalance().flat_map(|n| [n, n]).rebalance();
    let right = fork.rebalance().filter(|n| n % 2 == 0).rebalance();
    left.union(right)
        .map(|n: i64| n)
        .sink("collect", collected.sink());
    let mut handle = How {
        capacity: 1,
        parallelism: 2,
        ..How::workers(workers)
    }
    .start(job);
    let mut sent = 0;
    let report = loop {
        if let Some(report) = handle.wait_timeout(Duration::from_millis(2)) {
            break report;
        }
        sent += 1;
        assert!(sent < 15_000, "the diamond comes to its end");
        let barrier = if unaligned {
            Barrier::unaligned(sent)
        } else {
            Barrier::aligned(sent)
        };
        handle.command(TaskCommand::Trigger(barrier)).unwrap();
    };
    assert!(
        matches!(report.outcome, ringway::job::JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    let mut values = collected.values::<i64>();
    values.sort_unstable();
    let twice = (0..6_000).flat_map(|n| [n, n]);
    let mut expected: Vec<i64> = twice.chain((0..6_000).filter(|n| n % 2 == 0)).collect();
    expected.sort_unstable();
    assert_eq!(values, expected);
    sent
}

#[test]
fn a_diamond_of_single_slots_comes_to_its_end_under_aligned_checkpoints() {
    for workers in [1, 2, 3] {
        println!(
            "{workers} workers: {} checkpoints",
            run_diamond(workers, false)
        );
    }
}

#[test]
fn a_diamond_of_single_slots_comes_to_its_end_under_overtaking_checkpoints() {
    for workers in [1, 2] {
        println!(
            "{workers} workers: {} checkpoints",
            run_diamond(workers, true)
        );
    }
}

#[test]
fn a_stop_goes_through_a_diamond() {
    let job = Job::new("diamond");
    let collected = Collected::<Batch>::new();
    let source = job.source("counting", |subtask| {
        Ok(Counting::new(subtask, i64::MAX, 7))
    });
    let fork = source.rebalance().map(|n: i64| n);
    let (even, odd) = fork.split(|n| n % 2 == 0);
    even.rebalance()
        .union(odd.rebalance())
        .map(|n| n)
        .sink("collect", collected.sink());
    let mut handle = How {
        capacity: 1,
        ..How::workers(2)
    }
    .start(job);
    assert!(handle.wait_timeout(Duration::from_millis(50)).is_none());
    handle.drain();
    let report = end(&mut handle);
    let emitted: u64 = report.tasks.iter().map(|task| task.source_rows).sum();
    assert_eq!(collected.values::<i64>().len() as u64, emitted);
}
