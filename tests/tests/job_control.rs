//! Running jobs from outside: commands, failures, and what a handle is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ringway::batch::{Row, Rows};
use ringway::clock::ProcessingTime;
use ringway::connect::Collected;
use ringway::control::CancelCause;
use ringway::element::{Barrier, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::job::{
    Job, JobError, JobHandle, JobOutcome, JobReport, Plan, PlanOptions, RunOptions, start,
};
use ringway::operator::{Emitter, Operator, Progress, Sink, Source, SourceProgress, Subtask};
use ringway::task::{TaskCommand, TaskError};
use ringway_tests::within::{LONG, one_below, within};

type Batch = Rows<i64>;

fn started(job: Job, workers: usize) -> JobHandle {
    let options = PlanOptions {
        workers: vec![None; workers],
        ..PlanOptions::default()
    };
    let plan = Plan::new(job.into_graph(), &options).unwrap();
    start(&plan, &RunOptions::default()).unwrap()
}

fn ended(handle: &mut JobHandle) -> JobReport {
    handle.wait_timeout(LONG).expect("the job comes to its end")
}

/// Counts for ever, one row a poll.
#[derive(Clone, Default)]
struct Endless {
    next: i64,
}

impl Source<Batch> for Endless {
    fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, Batch>) -> Result<SourceProgress, OperatorError> {
        out.emit(Rows::from(vec![Row::untimed(self.next)]));
        self.next += 1;
        Ok(SourceProgress::Ready)
    }
}

/// A sink whose hooks misbehave on demand.
#[derive(Clone, Default)]
struct Odd {
    open_fails: bool,
    open_blocks: Option<Arc<AtomicBool>>,
    write_fails_at: Option<i64>,
    commit_panics: bool,
    writes_block: Option<Arc<AtomicBool>>,
    written: Arc<AtomicU64>,
}

impl Sink<Batch> for Odd {
    fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
        wait_while(self.open_blocks.as_deref());
        if self.open_fails {
            Err(OperatorError::new("no such directory"))
        } else {
            Ok(())
        }
    }

    fn write(&mut self, batch: Batch, _: ProcessingTime) -> Result<Progress, OperatorError> {
        wait_while(self.writes_block.as_deref());
        self.written.fetch_add(batch.len() as u64, Ordering::SeqCst);
        match self.write_fails_at {
            Some(at) if batch.iter().any(|row| row.value >= at) => {
                Err(OperatorError::new("disk full"))
            }
            _ => Ok(Progress::Done),
        }
    }

    fn commit(&mut self, id: u64) -> Result<(), OperatorError> {
        assert!(!self.commit_panics, "cannot commit {id}");
        Ok(())
    }
}

fn wait_while(block: Option<&AtomicBool>) {
    while block.is_some_and(|block| block.load(Ordering::SeqCst)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn endless_into(sink: Odd) -> Job {
    let job = Job::new("endless");
    let stream = job
        .source("endless", |_| Ok(Endless::default()))
        .rebalance();
    stream.sink("odd", sink);
    job
}

#[test]
fn a_receiver_that_fails_fails_the_job_with_its_name_and_never_success() {
    let report = ended(&mut started(
        endless_into(Odd {
            write_fails_at: Some(1_000),
            ..Odd::default()
        }),
        2,
    ));
    let JobOutcome::Failed(JobError::Task(error)) = &report.outcome else {
        panic!("the job fails: {:?}", report.outcome)
    };
    assert_eq!(error.to_string(), "odd[0] failed: disk full");
}

#[test]
fn an_input_that_breaks_off_fails_the_job_and_its_tail_is_not_taken_for_all() {
    struct BreaksOff(i64);
    impl Source<Batch> for BreaksOff {
        fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
            Ok(())
        }

        fn poll(&mut self, out: &mut Emitter<'_, Batch>) -> Result<SourceProgress, OperatorError> {
            if self.0 == 3 {
                return Err(OperatorError::new("frame 3 cannot be decoded"));
            }
            out.emit(Rows::from(vec![Row::untimed(self.0)]));
            self.0 += 1;
            Ok(SourceProgress::Ready)
        }
    }
    let job = Job::new("breaks off");
    let collected = Collected::new();
    let stream = job.source("reader", |_| Ok(BreaksOff(0))).rebalance();
    stream.sink("collect", collected.sink());
    let report = ended(&mut started(job, 2));
    let JobOutcome::Failed(error) = &report.outcome else {
        panic!("the job fails: {:?}", report.outcome)
    };
    assert_eq!(
        error.to_string(),
        "reader[0] failed: frame 3 cannot be decoded"
    );
    let elements: Vec<StreamElement<Batch>> = collected.take();
    assert!(
        !elements.contains(&StreamElement::Watermark(Watermark::MAX)),
        "no false end"
    );
}

#[test]
fn nothing_runs_when_a_part_cannot_open() {
    let sink = Odd {
        open_fails: true,
        ..Odd::default()
    };
    let written = sink.written.clone();
    let job = endless_into(sink);
    let other = job.source("other", |_| Ok(Endless::default())).rebalance();
    other.sink(
        "fine",
        Odd {
            written: written.clone(),
            ..Odd::default()
        },
    );
    let report = ended(&mut started(job, 2));
    let JobOutcome::Failed(JobError::Task(error)) = &report.outcome else {
        panic!("the job fails: {:?}", report.outcome)
    };
    assert_eq!(error.to_string(), "odd[0] failed: no such directory");
    assert_eq!(written.load(Ordering::SeqCst), 0);
    assert!(report.tasks.iter().all(|task| task.source_rows == 0));
}

#[test]
fn a_panic_while_committing_fails_the_job_and_names_the_sink() {
    let mut handle = started(
        endless_into(Odd {
            commit_panics: true,
            ..Odd::default()
        }),
        2,
    );
    handle.command(TaskCommand::Commit(4)).unwrap();
    let report = ended(&mut handle);
    let JobOutcome::Failed(JobError::Task(TaskError::Panicked { operator, message })) =
        &report.outcome
    else {
        panic!("the job fails: {:?}", report.outcome)
    };
    assert_eq!(
        (operator.as_str(), message.as_str()),
        ("odd[0]", "cannot commit 4")
    );
}

#[test]
fn a_panic_where_a_timer_is_asked_for_fails_the_job() {
    struct BadTimer;
    impl Operator<Batch, Batch> for BadTimer {
        fn process(
            &mut self,
            batch: Batch,
            out: &mut Emitter<'_, Batch>,
        ) -> Result<Progress, OperatorError> {
            out.emit(batch);
            Ok(Progress::Done)
        }

        fn next_timer(&self) -> Option<ProcessingTime> {
            panic!("no timer today")
        }
    }
    let job = Job::new("bad timer");
    let stream = job
        .source("endless", |_| Ok(Endless::default()))
        .rebalance();
    stream
        .process("bad", |_| Ok(BadTimer))
        .sink("odd", Odd::default());
    let report = ended(&mut started(job, 2));
    assert!(
        matches!(
            &report.outcome,
            JobOutcome::Failed(JobError::Task(TaskError::Panicked { .. }))
        ),
        "{:?}",
        report.outcome
    );
}

#[test]
fn a_cancel_is_never_lost_however_many_commands_wait() {
    let block = Arc::new(AtomicBool::new(true));
    let sink = Odd {
        writes_block: Some(block.clone()),
        ..Odd::default()
    };
    let written = sink.written.clone();
    let mut handle = started(endless_into(sink), 2);
    let mut refused = None;
    for id in 1..2_000 {
        handle.request_progress();
        if let Err(error) = handle.command(TaskCommand::Abort(id)) {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.expect("a worker that takes no commands is told of");
    assert!(
        refused.to_string().contains("does not take its commands"),
        "{refused}"
    );
    handle.cancel();
    block.store(false, Ordering::SeqCst);
    let report = ended(&mut handle);
    assert!(
        matches!(report.outcome, JobOutcome::Cancelled),
        "{:?}",
        report.outcome
    );
    assert!(written.load(Ordering::SeqCst) < 1_000_000);
}

#[test]
fn a_task_that_does_not_return_is_named_and_left_behind() {
    let block = Arc::new(AtomicBool::new(true));
    let sink = Odd {
        writes_block: Some(block.clone()),
        ..Odd::default()
    };
    let mut handle = started(endless_into(sink), 2);
    assert!(handle.wait_timeout(Duration::from_millis(50)).is_none());
    handle.cancel();
    let report = ended(&mut handle);
    let JobOutcome::Failed(JobError::Stuck { names }) = &report.outcome else {
        panic!("the job is stuck: {:?}", report.outcome)
    };
    assert_eq!(names, &["odd[0]"]);
    block.store(false, Ordering::SeqCst);
}

/// A job whose sink does not open while the flag is set.
fn opening() -> (JobHandle, Arc<AtomicBool>, Arc<AtomicU64>) {
    let block = Arc::new(AtomicBool::new(true));
    let sink = Odd {
        open_blocks: Some(block.clone()),
        ..Odd::default()
    };
    let written = sink.written.clone();
    (started(endless_into(sink), 2), block, written)
}

#[test]
fn a_job_can_be_cancelled_while_a_task_does_not_open_and_the_task_is_named() {
    within(LONG, "the job", || {
        let (mut handle, block, written) = opening();
        handle.cancel_by(CancelCause::Interrupt);
        let report = ended(&mut handle);
        let JobOutcome::Failed(JobError::Stuck { names }) = &report.outcome else {
            panic!("the job is stuck: {:?}", report.outcome)
        };
        assert_eq!(names, &["odd[0]"]);
        block.store(false, Ordering::SeqCst);
        assert_eq!(written.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_job_that_takes_long_to_open_runs_when_it_is_open() {
    within(LONG, "the job", || {
        let (mut handle, block, written) = opening();
        let wait = Duration::from_millis(100);
        assert!(handle.wait_timeout(wait).is_none());
        assert_eq!(written.load(Ordering::SeqCst), 0, "nothing runs before");
        block.store(false, Ordering::SeqCst);
        while written.load(Ordering::SeqCst) == 0 {
            assert!(handle.wait_timeout(wait).is_none());
        }
        handle.drain();
        let report = ended(&mut handle);
        assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
    });
}

#[test]
fn a_job_that_is_drained_before_it_is_open_ends_when_it_is() {
    within(LONG, "the job", || {
        let (mut handle, block, _) = opening();
        handle.drain();
        block.store(false, Ordering::SeqCst);
        let report = ended(&mut handle);
        assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
        assert!(report.drained);
    });
}

#[test]
fn the_cause_of_a_cancel_is_reported_the_first_one_where_there_are_several() {
    let mut handle = started(endless_into(Odd::default()), 2);
    handle.cancel_by(CancelCause::Terminate);
    handle.cancel_by(CancelCause::Interrupt);
    let report = ended(&mut handle);
    assert!(
        matches!(report.outcome, JobOutcome::Cancelled),
        "{report:?}"
    );
    assert_eq!(report.cancelled_by, Some(CancelCause::Terminate));
}

#[test]
fn a_job_that_is_cancelled_by_command_has_not_ended() {
    let mut handle = started(endless_into(Odd::default()), 2);
    handle.command(TaskCommand::Cancel).unwrap();
    let report = ended(&mut handle);
    assert!(
        matches!(report.outcome, JobOutcome::Cancelled),
        "{:?}",
        report.outcome
    );
}

#[test]
fn commands_after_the_tasks_are_over_change_nothing() {
    let job = Job::new("short");
    let collected = Collected::<Batch>::new();
    job.rows("one", [1_i64])
        .rebalance()
        .sink("collect", collected.sink());
    let mut handle = started(job, 2);
    std::thread::sleep(Duration::from_millis(50));
    for id in 0..1_000 {
        let _ = handle.command(TaskCommand::Trigger(Barrier::aligned(id)));
    }
    handle.drain();
    handle.stop();
    handle.drain();
    let report = ended(&mut handle);
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    assert_eq!(collected.values::<i64>(), [1]);
}

#[test]
#[should_panic(expected = "a job has one report")]
fn asking_for_a_second_report_is_a_mistake_and_never_a_false_success() {
    let mut handle = started(endless_into(Odd::default()), 1);
    handle.cancel();
    drop(ended(&mut handle));
    drop(handle.wait_timeout(Duration::ZERO));
}

#[test]
fn a_handle_that_is_dropped_cancels_the_job() {
    let dropped = Arc::new(AtomicBool::new(false));
    struct SaysWhenDropped(Arc<AtomicBool>);
    impl Drop for SaysWhenDropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    impl Sink<Batch> for SaysWhenDropped {
        fn write(&mut self, _: Batch, _: ProcessingTime) -> Result<Progress, OperatorError> {
            Ok(Progress::Done)
        }
    }
    let job = Job::new("dropped");
    let says = dropped.clone();
    let stream = job
        .source("endless", |_| Ok(Endless::default()))
        .rebalance();
    stream.sink_with("says", move |_| Ok(SaysWhenDropped(says.clone())));
    drop(started(job, 2));
    ringway_tests::within::until(LONG, "the sink is dropped", || {
        dropped.load(Ordering::SeqCst)
    });
}

#[test]
fn waiting_takes_no_longer_than_asked_for() {
    let mut handle = started(endless_into(Odd::default()), 1);
    one_below(Duration::from_millis(600), "the wait", || {
        let begun = Instant::now();
        assert!(handle.wait_timeout(Duration::from_millis(120)).is_none());
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_millis(120), "{waited:?}");
        waited
    });
    handle.cancel();
    drop(within(LONG, "the job is cancelled", move || handle.wait()));
}

/// A sink that panics where the runtime lets go of it, or takes it up.
struct PanicsAround {
    in_open: bool,
}

impl Sink<Batch> for PanicsAround {
    fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
        assert!(!self.in_open, "not today");
        Ok(())
    }

    fn write(&mut self, _: Batch, _: ProcessingTime) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }
}

impl Drop for PanicsAround {
    fn drop(&mut self) {
        assert!(self.in_open, "cannot let go");
    }
}

#[test]
fn a_panic_while_opening_fails_the_job_and_one_while_dropping_changes_nothing() {
    for in_open in [true, false] {
        let job = Job::new("panics around");
        let stream = job.rows("one", [1_i64]).rebalance();
        stream.sink_with("odd", move |_| Ok(PanicsAround { in_open }));
        let report = ended(&mut started(job, 2));
        match report.outcome {
            JobOutcome::Failed(JobError::Task(TaskError::Panicked { message, .. })) if in_open => {
                assert_eq!(message, "not today");
            }
            JobOutcome::Ended if !in_open => {}
            other => panic!("{other:?}"),
        }
    }
}
