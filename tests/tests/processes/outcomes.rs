//! How jobs of several processes end: in the same way in all of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ringway::batch::{Row, Rows};
use ringway::connect::Collected;
use ringway::control::{CancelCause, ProcessEnd};
use ringway::edge::Transport;
use ringway::error::OperatorError;
use ringway::job::{Job, JobHandle, JobOutcome, JobReport};
use ringway::operator::{Emitter, Source, SourceProgress, Subtask};
use ringway::task::TaskReport;
use ringway_shm::Bell;
use ringway_tests::within::{LONG, join_within, until, within};

use crate::rig::{Ended, Rig};

/// Every n-th number below `until`, a row a batch; for ever where there is no bound.
#[derive(Clone)]
struct Numbers {
    next: i64,
    step: i64,
    until: Option<i64>,
}

impl Numbers {
    fn of(subtask: &Subtask, until: Option<i64>) -> Self {
        Self {
            next: subtask.index.into(),
            step: subtask.parallelism.subtasks().into(),
            until,
        }
    }
}

impl Source<Rows<i64>> for Numbers {
    fn open(&mut self, _: &Subtask, _: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, Rows<i64>>) -> Result<SourceProgress, OperatorError> {
        if self.until.is_some_and(|until| self.next >= until) {
            return Ok(SourceProgress::End);
        }
        out.emit(Rows::from(vec![Row::untimed(self.next)]));
        self.next += self.step;
        Ok(SourceProgress::Ready)
    }
}

/// Squares of numbers, by key over all processes.
fn squares(job: &Job, until: Option<i64>, collected: &Collected<Rows<i64>>) {
    let sink = collected.clone();
    job.source("numbers", move |subtask| Ok(Numbers::of(subtask, until)))
        .batched()
        .key_by(|n: &i64| *n)
        .process("square", |_, _| {
            Ok(ringway::operators::rows::Map::new(|n: i64| n * n))
        })
        .batched()
        .rebalance()
        .sink("collect", sink.sink());
}

fn reports(ended: Vec<Ended>) -> Vec<JobReport> {
    ended.into_iter().map(|ended| ended.unwrap()).collect()
}

fn total(tasks: &[TaskReport], rows: impl Fn(&TaskReport) -> u64) -> u64 {
    tasks.iter().map(rows).sum()
}

#[test]
fn a_job_gives_the_same_rows_in_any_number_of_processes() {
    within(LONG, "the processes", || {
        for (processes, parallelism) in [(2, 1), (2, 3), (3, 4), (4, 2)] {
            let collected = Collected::new();
            let rig = Rig::new(processes, parallelism);
            let into = collected.clone();
            let reports = reports(rig.run(move |_, job| squares(job, Some(1000), &into)));
            for report in &reports {
                assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
            }
            let mut rows = collected.values::<i64>();
            rows.sort_unstable();
            let expected: Vec<i64> = (0..1000).map(|n| n * n).collect();
            assert_eq!(rows, expected, "{processes} processes");
            let runs = rig.hub.runs();
            assert!(runs.windows(2).all(|runs| runs[0] == runs[1]), "{runs:?}");
        }
    });
}

#[test]
fn process_0_reports_of_all_processes_and_the_others_of_themselves() {
    within(LONG, "the processes", || {
        let collected = Collected::new();
        let rig = Rig::new(2, 2);
        let reports = reports(rig.run(move |_, job| squares(job, Some(100), &collected)));
        let all = &reports[0].tasks;
        assert_eq!(total(all, |task| task.source_rows), 100);
        assert_eq!(total(all, |task| task.sink_rows), 100);
        let edges: Vec<_> = all.iter().flat_map(|task| &task.edges).collect();
        assert_eq!(edges.len(), 8, "from 2 to 2, twice");
        assert!(edges.iter().all(|edge| edge.transport == Transport::Local));
        let mut names: Vec<_> = all.iter().map(|task| task.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 6);
        assert_eq!(reports[1].tasks.len(), 3);
        let processes = &reports[0].processes;
        assert_eq!(processes.len(), 2);
        for process in processes {
            assert_eq!(process.end, Some(ProcessEnd::Ended));
            assert_eq!(process.tasks.len(), 3);
        }
        assert!(processes[0].name.starts_with("process 0 (127.0.0.1:"));
    });
}

/// The message of a failure, which must be one.
fn failure(report: &JobReport) -> String {
    match &report.outcome {
        JobOutcome::Failed(error) => error.to_string(),
        other => panic!("it should have failed: {other:?}"),
    }
}

#[test]
fn a_failure_in_one_process_is_the_outcome_in_all_of_them() {
    within(LONG, "the processes", || {
        for failing in 0..3_u32 {
            let rig = Rig::new(3, 3);
            let ended = rig.run(move |_, job| {
                job.source("numbers", |subtask| Ok(Numbers::of(subtask, None)))
                    .batched()
                    .rebalance()
                    .sink_with("sink", move |subtask| {
                        let fails = subtask.index == failing;
                        Ok(failing_sink(fails))
                    });
            });
            for (process, report) in reports(ended).iter().enumerate() {
                let message = failure(report);
                let cause = format!("sink[{failing}] failed: no such luck");
                assert!(message.contains(&cause), "{message}");
                if process as u32 != failing {
                    assert!(
                        message.starts_with(&format!("process {failing}")),
                        "{message}"
                    );
                }
            }
        }
    });
}

/// A sink that fails at the 100th batch, or never.
fn failing_sink(fails: bool) -> FailingSink {
    FailingSink { fails, seen: 0 }
}

struct FailingSink {
    fails: bool,
    seen: u32,
}

impl ringway::operator::Sink<Rows<i64>> for FailingSink {
    fn write(
        &mut self,
        _: Rows<i64>,
        _: ringway::clock::ProcessingTime,
    ) -> Result<ringway::operator::Progress, OperatorError> {
        self.seen += 1;
        match self.fails && self.seen == 100 {
            true => Err(OperatorError::new("no such luck")),
            false => Ok(ringway::operator::Progress::Done),
        }
    }
}

#[test]
fn what_cannot_be_made_in_one_process_ends_the_job_before_it_begins_anywhere() {
    within(LONG, "the processes", || {
        let polled = Arc::new(AtomicU64::new(0));
        let counted = polled.clone();
        let rig = Rig::new(2, 2);
        let ended = rig.run(move |_, job| {
            let counted = counted.clone();
            job.source("numbers", |subtask| Ok(Numbers::of(subtask, Some(1000))))
                .batched()
                .rebalance()
                .process("count", move |subtask| {
                    let counted = counted.clone();
                    if subtask.index == 1 {
                        return Err(OperatorError::new("no such model"));
                    }
                    Ok(ringway::operators::rows::Inspect::new(
                        move |_: &Row<i64>| {
                            counted.fetch_add(1, Ordering::SeqCst);
                        },
                    ))
                })
                .sink("nowhere", ringway::connect::Collected::new().sink());
        });
        for report in reports(ended) {
            assert!(failure(&report).contains("no such model"), "{report:?}");
        }
        assert_eq!(polled.load(Ordering::SeqCst), 0);
    });
}

/// Makes a sink of `job` that takes so long to be made in process 1.
fn slow_to_make(job: &Job, takes: Duration, collected: &Collected<Rows<i64>>) {
    let collected = collected.clone();
    job.source("numbers", |subtask| Ok(Numbers::of(subtask, Some(100))))
        .batched()
        .rebalance()
        .process("model", move |subtask| {
            if subtask.index == 1 {
                std::thread::sleep(takes);
            }
            Ok(ringway::operators::rows::Map::new(|n: i64| n))
        })
        .sink("collect", collected.sink());
}

#[test]
fn a_process_that_takes_long_to_make_its_tasks_is_heard_of_meanwhile() {
    within(LONG, "the processes", || {
        let mut rig = Rig::new(2, 2);
        rig.lost_after = Duration::from_millis(700);
        let collected = Collected::new();
        let takes = Duration::from_millis(2500);
        let ended = rig.run(move |_, job| slow_to_make(job, takes, &collected));
        for report in reports(ended) {
            assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
        }
    });
}

#[test]
fn a_job_can_be_cancelled_while_a_process_makes_its_tasks() {
    within(LONG, "the processes", || {
        let rig = Rig::new(2, 2).meanwhile(|process, handle| {
            if process == 0 {
                handle.cancel_by(CancelCause::Interrupt);
            }
        });
        let collected = Collected::new();
        let takes = Duration::from_millis(2500);
        let ended = rig.run(move |_, job| slow_to_make(job, takes, &collected));
        for report in reports(ended) {
            assert!(
                matches!(report.outcome, JobOutcome::Cancelled),
                "{report:?}"
            );
            assert_eq!(report.cancelled_by, Some(CancelCause::Interrupt));
        }
    });
}

#[test]
fn a_process_that_never_makes_its_tasks_is_given_up_by_name() {
    within(LONG, "the processes", || {
        let rig = Rig::new(2, 2).meanwhile(|process, handle| {
            if process == 0 {
                handle.cancel();
            }
        });
        let collected = Collected::new();
        let takes = Duration::from_secs(20);
        let ended = rig.run(move |_, job| slow_to_make(job, takes, &collected));
        for report in reports(ended) {
            let message = failure(&report);
            let words = "model > collect[1], which is being made, did not stop within 5 s";
            assert!(message.contains(words), "{message}");
            assert!(report.elapsed < Duration::from_secs(9), "{report:?}");
        }
    });
}

#[test]
fn a_panic_while_a_task_is_made_fails_the_job_everywhere_and_names_the_task() {
    within(LONG, "the processes", || {
        let rig = Rig::new(2, 2);
        let ended = rig.run(move |_, job| {
            job.source("numbers", |subtask| Ok(Numbers::of(subtask, Some(100))))
                .batched()
                .rebalance()
                .sink_with("sink", |subtask| {
                    assert_ne!(subtask.index, 1, "no such model");
                    Ok(failing_sink(false))
                });
        });
        for report in reports(ended) {
            let message = failure(&report);
            assert!(message.contains("sink[1] cannot be made"), "{message}");
            assert!(message.contains("no such model"), "{message}");
        }
    });
}

#[test]
fn a_cancel_in_any_process_cancels_all_for_the_same_cause() {
    within(LONG, "the processes", || {
        for cancelling in 0..2 {
            let rig = Rig::new(2, 2).meanwhile(move |process, handle| {
                if process == cancelling {
                    assert!(handle.wait_timeout(Duration::from_millis(300)).is_none());
                    handle.cancel_by(CancelCause::Terminate);
                }
            });
            let collected = Collected::new();
            let ended = rig.run(move |_, job| squares(job, None, &collected));
            for report in reports(ended) {
                assert!(
                    matches!(report.outcome, JobOutcome::Cancelled),
                    "{report:?}"
                );
                assert_eq!(report.cancelled_by, Some(CancelCause::Terminate));
            }
        }
    });
}

#[test]
fn process_0_can_ask_how_far_the_tasks_of_all_processes_are() {
    within(LONG, "the processes", || {
        let rig = Rig::new(2, 2).meanwhile(|process, handle| {
            if process != 0 {
                return;
            }
            let reading = |handle: &JobHandle| {
                let tasks = handle.progress();
                let sources = tasks.filter(|task| task.source_rows > 0);
                sources
                    .map(|task| task.name.clone())
                    .collect::<HashSet<_>>()
            };
            let since = Instant::now();
            while reading(handle).len() < 2 && since.elapsed() < LONG {
                handle.request_progress();
                assert!(handle.wait_timeout(Duration::from_millis(20)).is_none());
            }
            assert_eq!(reading(handle).len(), 2, "a source in each process");
            handle.cancel();
        });
        let collected = Collected::new();
        let ended = rig.run(move |_, job| squares(job, None, &collected));
        for report in reports(ended) {
            assert!(
                matches!(report.outcome, JobOutcome::Cancelled),
                "{report:?}"
            );
        }
    });
}

#[test]
fn a_drain_asked_for_in_any_process_ends_the_sources_of_all() {
    within(LONG, "the processes", || {
        for draining in 0..2 {
            let rig = Rig::new(2, 2).meanwhile(move |process, handle| {
                if process == draining {
                    assert!(handle.wait_timeout(Duration::from_millis(300)).is_none());
                    handle.drain();
                }
            });
            let collected = Collected::new();
            let into = collected.clone();
            let reports = reports(rig.run(move |_, job| squares(job, None, &into)));
            for report in &reports {
                assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
            }
            let emitted = total(&reports[0].tasks, |task| task.source_rows);
            assert_eq!(emitted, collected.values::<i64>().len() as u64);
        }
    });
}

#[test]
fn a_job_that_is_stopped_is_stopped_in_all_processes() {
    within(LONG, "the processes", || {
        let rig = Rig::new(2, 2).meanwhile(|process, handle| {
            if process == 1 {
                assert!(handle.wait_timeout(Duration::from_millis(300)).is_none());
                handle.stop();
            }
        });
        let collected = Collected::new();
        let ended = rig.run(move |_, job| squares(job, None, &collected));
        for report in reports(ended) {
            assert!(matches!(report.outcome, JobOutcome::Stopped), "{report:?}");
        }
    });
}

/// Plays a job of which one process falls silent until it is over in all others.
fn fall_silent(silent: usize) {
    let over = Arc::new(AtomicU64::new(0));
    let others = over.clone();
    let mut rig = Rig::new(3, 3).meanwhile(move |process, handle| {
        if process == silent {
            assert!(handle.wait_timeout(Duration::from_millis(200)).is_none());
            until(LONG, "the others notice", || {
                others.load(Ordering::SeqCst) == 2
            });
        }
    });
    // Longer than a busy machine keeps a thread from running.
    rig.lost_after = Duration::from_secs(3);
    let collected = Collected::new();
    let rig = rig.afterwards(move |_| {
        over.fetch_add(1, Ordering::SeqCst);
    });
    let reports = reports(rig.run(move |_, job| squares(job, None, &collected)));
    for (process, report) in reports.iter().enumerate() {
        let message = failure(report);
        if process != silent {
            assert!(message.contains(&format!("process {silent}")), "{message}");
            assert!(message.contains("has said nothing"), "{message}");
        }
    }
}

#[test]
fn a_process_that_is_not_heard_of_fails_the_job_everywhere_and_is_named() {
    let playing = [0, 1, 2].map(|silent| std::thread::spawn(move || fall_silent(silent)));
    for playing in playing {
        join_within(2 * LONG, "the processes", playing);
    }
}

#[test]
fn a_process_that_goes_away_fails_the_job_everywhere_and_is_named() {
    within(LONG, "the processes", || {
        for leaving in 0..2 {
            let rig = Rig::new(2, 2).meanwhile(move |process, handle| {
                if process == leaving {
                    assert!(handle.wait_timeout(Duration::from_millis(200)).is_none());
                    panic!("this process dies");
                }
            });
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let collected = Collected::new();
                rig.run_to_the_end(move |_, job| squares(job, None, &collected))
            }));
            let ended = ended.unwrap();
            assert!(ended[leaving].is_none(), "it died");
            let report = ended[1 - leaving].as_ref().unwrap().as_ref().unwrap();
            let message = failure(report);
            assert!(message.contains(&format!("process {leaving}")), "{message}");
            assert!(message.contains("died or was killed"), "{message}");
        }
    });
}
