//! Whole jobs through the typed API: what someone who embeds the runtime is promised.

use std::time::{Duration, Instant};

use ringway::batch::{Row, Rows};
use ringway::connect::{Collected, MemorySource};
use ringway::element::{EVENT_TIME_MAX, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::job::{
    Job, JobError, JobOutcome, JobReport, Plan, PlanError, PlanOptions, RunOptions, start,
};
use ringway::operator::{Emitter, Operator, Progress, Source, SourceProgress, Subtask};
use ringway::operators::window::{Count, WindowAssigner};
use ringway::partition::Parallelism;
use ringway::task::TaskError;
use ringway::watermark::WatermarkStrategy;
use ringway_tests::within::{LONG, one_below};

type Elements = Vec<StreamElement<Rows<i64>>>;

fn subtasks(count: u32) -> Parallelism {
    Parallelism::new(count).unwrap()
}

fn options(workers: usize, parallelism: u32) -> PlanOptions {
    PlanOptions {
        parallelism: subtasks(parallelism),
        workers: vec![None; workers],
        ..PlanOptions::default()
    }
}

fn run(job: Job, workers: usize, parallelism: u32) -> JobReport {
    job.run_with(&options(workers, parallelism), &RunOptions::default())
        .unwrap()
}

/// The numbers of one subtask, of `total` dealt out to all in turn, ten a batch.
fn numbers(total: i64) -> impl Fn(&Subtask) -> Result<MemorySource<Rows<i64>>, OperatorError> {
    move |subtask| {
        let step = subtask.parallelism.subtasks() as usize;
        let mine: Vec<i64> = (0..total)
            .skip(subtask.index as usize)
            .step_by(step)
            .collect();
        let batches = mine
            .chunks(10)
            .map(|chunk| chunk.iter().map(|&n| Row::at(n, n)).collect());
        Ok(MemorySource::of_batches(
            batches.collect::<Vec<Rows<i64>>>(),
        ))
    }
}

#[test]
fn every_row_arrives_once_at_any_parallelism_and_number_of_workers() {
    for (workers, parallelism) in [(1, 1), (2, 1), (1, 4), (2, 4), (3, 64)] {
        let job = Job::new("sum");
        let collected = Collected::new();
        job.source("numbers", numbers(10_000))
            .map(|n: i64| n * 2)
            .key_by(|n| *n)
            .process("pass", |_, _| Ok(Pass))
            .rebalance()
            .filter(|n| n % 4 == 0)
            .sink("collect", collected.sink());
        let report = run(job, workers, parallelism);
        assert!(
            matches!(report.outcome, JobOutcome::Ended),
            "{:?}",
            report.outcome
        );
        let mut values = collected.values::<i64>();
        values.sort_unstable();
        let expected: Vec<i64> = (0..10_000).map(|n| n * 2).filter(|n| n % 4 == 0).collect();
        assert_eq!(
            values, expected,
            "{workers} workers, {parallelism} subtasks"
        );
        let sunk: u64 = report.tasks.iter().map(|task| task.sink_rows).sum();
        assert_eq!(sunk, 5_000);
    }
}

#[test]
fn a_key_is_always_seen_by_the_same_subtask() {
    let job = Job::new("keys");
    let collected = Collected::new();
    job.source("numbers", numbers(5_000))
        .key_by(|n| n % 50)
        .process("tag", |subtask, _| Ok(Tag(i64::from(subtask.index))))
        .sink("collect", collected.sink());
    run(job, 2, 7);
    let mut owner = std::collections::HashMap::new();
    for (key, subtask) in collected.values::<(i64, i64)>() {
        assert_eq!(
            *owner.entry(key % 50).or_insert(subtask),
            subtask,
            "key {}",
            key % 50
        );
    }
    assert!(
        owner
            .values()
            .collect::<std::collections::HashSet<_>>()
            .len()
            > 1
    );
}

#[test]
fn adjacent_operators_share_a_chain_and_have_no_edge_between() {
    let job = Job::new("chain");
    let collected = Collected::new();
    job.source("numbers", numbers(10))
        .map(|n: i64| n + 1)
        .filter(|_| true)
        .sink("collect", collected.sink());
    let plan = Plan::new(job.into_graph(), &options(1, 1)).unwrap();
    assert_eq!((plan.chains.len(), plan.links.len()), (1, 0));
    assert_eq!(
        plan.chains[0].names,
        ["numbers", "map", "filter", "collect"]
    );
}

#[test]
fn a_union_merges_rows_and_holds_the_watermark_of_the_slowest() {
    let job = Job::new("union");
    let collected = Collected::new();
    let stream = |times: [i64; 3]| -> Elements {
        let elements = times.into_iter().flat_map(|time| {
            [
                StreamElement::Data(Rows::from(vec![Row::at(time, time)])),
                StreamElement::Watermark(Watermark::active(time)),
            ]
        });
        elements.collect()
    };
    let (a, b) = (stream([100, 200, 300]), stream([50, 150, 250]));
    let left = job.source("a", move |_| Ok(MemorySource::new(a.clone())));
    let right = job.source("b", move |_| Ok(MemorySource::new(b.clone())));
    left.union(right)
        .process("pass", |_| Ok(Pass))
        .sink("collect", collected.sink());
    run(job, 2, 1);
    let mut last = i64::MIN;
    let mut rows = Vec::new();
    for element in collected.take() {
        match element {
            StreamElement::Watermark(watermark) => {
                assert!(
                    !watermark.idle && watermark.timestamp > last,
                    "watermarks only advance"
                );
                last = watermark.timestamp;
            }
            StreamElement::Data(batch) => rows.extend(batch.into_iter().map(|row| row.value)),
            other => panic!("a sink sees batches and watermarks: {other:?}"),
        }
    }
    rows.sort_unstable();
    assert_eq!(rows, [50, 100, 150, 200, 250, 300]);
    assert_eq!(last, EVENT_TIME_MAX, "the union ends at the end of time");
}

#[test]
fn a_fork_gives_every_consumer_every_row_and_a_split_each_row_to_one() {
    let job = Job::new("fork");
    let (all, even, odd) = (Collected::new(), Collected::new(), Collected::new());
    let numbers = job.source("numbers", numbers(1_000));
    numbers.clone().sink("all", all.sink());
    let (first, second) = numbers.split(|n: &i64| n % 2 == 0);
    first.sink("even", even.sink());
    second.sink("odd", odd.sink());
    let report = run(job, 2, 1);
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    assert_eq!(all.values::<i64>(), (0..1_000).collect::<Vec<_>>());
    assert_eq!(
        even.values::<i64>(),
        (0..1_000).step_by(2).collect::<Vec<_>>()
    );
    assert_eq!(
        odd.values::<i64>(),
        (1..1_000).step_by(2).collect::<Vec<_>>()
    );
}

#[test]
fn a_broadcast_gives_every_subtask_every_row() {
    let job = Job::new("broadcast");
    let collected = Collected::new();
    job.source("numbers", numbers(100))
        .parallelism(subtasks(1))
        .broadcast()
        .process("tag", |subtask| Ok(Tag(i64::from(subtask.index))))
        .sink("collect", collected.sink());
    run(job, 2, 3);
    let mut values = collected.values::<(i64, i64)>();
    values.sort_unstable();
    let expected: Vec<(i64, i64)> = (0..100).flat_map(|n| (0..3).map(move |s| (n, s))).collect();
    assert_eq!(values, expected);
}

#[test]
fn a_row_that_becomes_a_million_takes_the_memory_of_an_edge() {
    let job = Job::new("explode");
    let collected = Collected::new();
    job.rows("numbers", [1_000_000_i64])
        .flat_map(|n| 0..n)
        .rebalance()
        .filter(|n| n % 100_000 == 0)
        .sink("collect", collected.sink());
    run(job, 2, 1);
    assert_eq!(collected.values::<i64>().len(), 10);
}

#[test]
fn two_hundred_subtasks_share_two_workers() {
    let job = Job::new("many");
    let collected = Collected::new();
    let mut stream = job
        .source("numbers", numbers(2_000))
        .parallelism(subtasks(1));
    for _ in 0..2 {
        stream = stream.rebalance().map(|n: i64| n + 1);
    }
    stream.sink("collect", collected.sink());
    let report = run(job, 2, 100);
    assert!(report.tasks.len() > 200, "{} tasks", report.tasks.len());
    assert_eq!(
        collected.values::<i64>().iter().sum::<i64>(),
        (2..2_002).sum::<i64>()
    );
}

#[test]
fn an_operator_that_fails_ends_the_job_with_its_name_and_nothing_hangs() {
    let job = Job::new("fails");
    let collected = Collected::new();
    job.source("endless", |_| Ok(Endless { next: 0 }))
        .rebalance()
        .process("check", |_| Ok(FailsAt(5_000)))
        .rebalance()
        .sink("collect", collected.sink());
    let report = run(job, 2, 2);
    let JobOutcome::Failed(JobError::Task(error)) = &report.outcome else {
        panic!("the job fails: {:?}", report.outcome)
    };
    assert!(
        matches!(error, TaskError::Operator { operator, .. } if operator.starts_with("check["))
    );
    assert!(error.to_string().contains("is too large"), "{error}");
    assert!(
        !collected
            .take()
            .contains(&StreamElement::Watermark(Watermark::MAX)),
        "no false end"
    );
}

#[test]
fn an_operator_that_panics_is_named_and_nothing_downstream_takes_it_for_an_end() {
    let job = Job::new("panics");
    let collected = Collected::new();
    job.source("endless", |_| Ok(Endless { next: 0 }))
        .map(|n: i64| n)
        .map(|n| {
            assert!(n < 5_000, "row {n} is one too many");
            n
        })
        .named("second map")
        .filter(|_| true)
        .rebalance()
        .sink("collect", collected.sink());
    let report = run(job, 2, 1);
    let JobOutcome::Failed(JobError::Task(TaskError::Panicked { operator, message })) =
        &report.outcome
    else {
        panic!("the job fails: {:?}", report.outcome)
    };
    assert_eq!(operator, "second map[0]");
    assert!(message.contains("row 5000 is one too many"), "{message}");
    assert!(
        !collected
            .take()
            .contains(&StreamElement::Watermark(Watermark::MAX)),
        "no false end"
    );
}

#[test]
fn cancelling_stops_everything_within_a_second_and_says_what_was_done() {
    let report = stop_endless(|handle| handle.cancel());
    assert!(
        matches!(report.0.outcome, JobOutcome::Cancelled),
        "{:?}",
        report.0.outcome
    );
    assert!(report.0.tasks.iter().any(|task| task.source_rows > 0));
    assert!(
        !report.1.contains(&StreamElement::Watermark(Watermark::MAX)),
        "no end of time"
    );
}

fn all_that_was_emitted_is_sunk(report: &JobReport) {
    let emitted: u64 = report.tasks.iter().map(|task| task.source_rows).sum();
    let sunk: u64 = report.tasks.iter().map(|task| task.sink_rows).sum();
    assert_eq!(emitted, sunk);
}

#[test]
fn draining_ends_the_sources_and_processes_what_they_emitted() {
    let (report, elements) = stop_endless(|handle| handle.drain());
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    all_that_was_emitted_is_sunk(&report);
    assert_eq!(
        elements.last(),
        Some(&StreamElement::Watermark(Watermark::MAX))
    );
}

#[test]
fn stopping_processes_what_was_emitted_but_makes_nothing_final() {
    let (report, elements) = stop_endless(|handle| handle.stop());
    assert!(
        matches!(report.outcome, JobOutcome::Stopped),
        "{:?}",
        report.outcome
    );
    all_that_was_emitted_is_sunk(&report);
    assert!(
        !elements.contains(&StreamElement::Watermark(Watermark::MAX)),
        "no end of time"
    );
}

#[test]
fn a_plan_refuses_what_cannot_work_and_says_what_to_change() {
    let job = Job::new("mismatch");
    let stream = job
        .source("numbers", numbers(1))
        .parallelism(subtasks(2))
        .forward();
    stream
        .map(|n: i64| n)
        .parallelism(subtasks(3))
        .sink("collect", Collected::new().sink());
    let refused = Plan::new(job.into_graph(), &options(1, 3)).err().unwrap();
    assert!(matches!(
        refused,
        PlanError::ForwardMismatch {
            from_subtasks: 2,
            to_subtasks: 3,
            ..
        }
    ));

    let job = Job::new("uids");
    let stream = job.source("numbers", numbers(1)).uid("same");
    stream
        .map(|n: i64| n)
        .uid("same")
        .sink("collect", Collected::new().sink());
    let refused = Plan::new(job.into_graph(), &options(1, 1)).err().unwrap();
    assert!(refused.to_string().contains("\"same\""), "{refused}");

    let job = Job::new("memory");
    let stream = job.source("numbers", numbers(1)).rebalance();
    stream
        .map(|n: i64| n)
        .sink("collect", Collected::new().sink());
    let tight = PlanOptions {
        memory_max_bytes: 1 << 30,
        ..options(1, 128)
    };
    let refused = Plan::new(job.into_graph(), &tight).err().unwrap();
    assert!(
        matches!(refused, PlanError::Memory { edges: 16_384, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("edge_bytes_max"), "{refused}");

    assert_eq!(
        Plan::new(Job::new("empty").into_graph(), &options(1, 1)).err(),
        Some(PlanError::NoSource)
    );
}

/// Runs an endless job for a moment, stops it in this way, and waits: at most a second.
fn stop_endless(stop: impl Fn(&mut ringway::job::JobHandle)) -> (JobReport, Elements) {
    let mut last = None;
    one_below(Duration::from_secs(1), "it stops", || {
        let (report, elements, took) = run_and_stop(&stop);
        last = Some((report, elements));
        took
    });
    last.expect("it ran")
}

fn run_and_stop(stop: impl Fn(&mut ringway::job::JobHandle)) -> (JobReport, Elements, Duration) {
    let job = Job::new("endless");
    let collected = Collected::new();
    job.source("endless", |_| Ok(Endless { next: 0 }))
        .rebalance()
        .map(|n: i64| n)
        .sink("collect", collected.sink());
    let plan = Plan::new(job.into_graph(), &options(2, 1)).unwrap();
    let mut handle = start(&plan, &RunOptions::default()).unwrap();
    assert!(
        handle.wait_timeout(Duration::from_millis(50)).is_none(),
        "the job has no end"
    );
    let stopped = Instant::now();
    stop(&mut handle);
    let report = handle.wait_timeout(LONG).expect("the job stops");
    (report, collected.take(), stopped.elapsed())
}

/// Passes rows on.
struct Pass;

impl Operator<Rows<i64>, Rows<i64>> for Pass {
    fn process(
        &mut self,
        batch: Rows<i64>,
        out: &mut Emitter<'_, Rows<i64>>,
    ) -> Result<Progress, OperatorError> {
        out.emit(batch);
        Ok(Progress::Done)
    }
}

/// Pairs each row with a number.
struct Tag(i64);

impl Operator<Rows<i64>, Rows<(i64, i64)>> for Tag {
    fn process(
        &mut self,
        batch: Rows<i64>,
        out: &mut Emitter<'_, Rows<(i64, i64)>>,
    ) -> Result<Progress, OperatorError> {
        out.emit(
            batch
                .into_iter()
                .map(|row| Row::untimed((row.value, self.0)))
                .collect(),
        );
        Ok(Progress::Done)
    }
}

/// Fails at the first row of this value or above.
struct FailsAt(i64);

impl Operator<Rows<i64>, Rows<i64>> for FailsAt {
    fn process(
        &mut self,
        batch: Rows<i64>,
        out: &mut Emitter<'_, Rows<i64>>,
    ) -> Result<Progress, OperatorError> {
        match batch.iter().find(|row| row.value >= self.0) {
            Some(row) => Err(OperatorError::new(format!(
                "row {} is too large",
                row.value
            ))),
            None => {
                out.emit(batch);
                Ok(Progress::Done)
            }
        }
    }
}

/// Counts for ever, ten rows a poll.
struct Endless {
    next: i64,
}

impl Source<Rows<i64>> for Endless {
    fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, Rows<i64>>) -> Result<SourceProgress, OperatorError> {
        out.emit((self.next..self.next + 10).map(|n| Row::at(n, n)).collect());
        self.next += 10;
        out.watermark(Watermark::active(self.next));
        Ok(SourceProgress::Ready)
    }
}

#[test]
fn windows_of_a_typed_stream_count_every_row_once_and_late_rows_aside() {
    let job = Job::new("windows");
    let (counted, late) = (Collected::new(), Collected::new());
    let (windows, too_late) = job
        .rows("times", [5_i64, 1, 12, 3, 25, 14, 31])
        .assign_timestamps(WatermarkStrategy::bounded_out_of_orderness(4), |row| {
            Some(row.value)
        })
        .key_by(|time| time % 2)
        .window(WindowAssigner::tumbling(10, 0).unwrap())
        .aggregate_with_late(Count);
    windows
        .map(|result| (result.window.start(), result.key, result.value))
        .sink("counts", counted.sink());
    too_late.sink("late", late.sink());
    let report = run(job, 2, 2);
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    let mut counts = counted.values::<(i64, i64, u64)>();
    counts.sort_unstable();
    let total: u64 = counts.iter().map(|(_, _, count)| count).sum();
    assert_eq!(total + late.values::<i64>().len() as u64, 7, "{counts:?}");
    assert_eq!(counts.last(), Some(&(30, 1, 1)));
}
