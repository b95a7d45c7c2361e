//! The flights job on the same flights in other orders.
//!
//! The results must not depend on the order of the input as long as it stays within the bound
//! that the job states, nor on the parallelism. What comes later than the bound is taken in
//! within the allowed lateness, and changes results that were given before: the last ones count.

use crate::example::Example;
use ringway::job::file::{LoadedJob, Overrides};
use ringway::job::{JobOutcome, JobReport, RunOptions, start};
use ringway::partition::Parallelism;

const HOUR_MS: i64 = 3_600_000;

fn run(flights: &Example, parallelism: u32) -> JobReport {
    let overrides = Overrides {
        parallelism: Some(Parallelism::new(parallelism).unwrap()),
        ..Overrides::default()
    };
    let mut job = LoadedJob::load(flights.job().as_ref(), &overrides).unwrap();
    let plan = job.plan(vec![None, None]).unwrap();
    let report = start(&plan, &RunOptions::default()).unwrap().wait();
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    report
}

fn discarded(report: &JobReport) -> u64 {
    report.tasks.iter().map(|task| task.discarded_rows).sum()
}

/// From the environment, to replay what failed.
fn seed() -> u64 {
    let given = std::env::var("RINGWAY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| std::process::id().into());
    println!("RINGWAY_SEED={seed}");
    seed
}

#[test]
fn the_order_of_the_input_within_the_bound_does_not_matter() {
    let seed = seed();
    for parallelism in [1, 2, 4] {
        let flights = Example::in_folder_of_its_own();
        flights.shuffle(24 * HOUR_MS, seed.wrapping_add(parallelism.into()));
        let report = run(&flights, parallelism);
        assert_eq!(discarded(&report), 0);
        flights.assert_outputs();
    }
}

#[test]
fn the_last_result_of_a_window_has_all_rows_that_the_allowed_lateness_took_in() {
    let flights = Example::in_folder_of_its_own();
    flights.shuffle(24 * HOUR_MS, seed());
    flights.change("out_of_orderness = \"24h\"", "out_of_orderness = \"1h\"");
    flights.change("size = \"1h\"", "size = \"1h\"\nallowed_lateness = \"24h\"");
    flights.change(
        "size = \"24h\"",
        "size = \"24h\"\nallowed_lateness = \"24h\"",
    );
    let report = run(&flights, 1);
    assert_eq!(discarded(&report), 0);
    for name in ["hourly", "daily", "union_hourly"] {
        flights.assert_last_results(name, 2);
    }
    assert!(
        flights.written("hourly").len() > 115_205,
        "some results came more than once"
    );
}

#[test]
fn rows_that_come_too_late_are_counted() {
    let flights = Example::in_folder_of_its_own();
    flights.shuffle(24 * HOUR_MS, seed());
    flights.change("out_of_orderness = \"24h\"", "out_of_orderness = \"1h\"");
    assert!(discarded(&run(&flights, 1)) > 0);
}
