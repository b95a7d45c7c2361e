//! How a task ends, and what its neighbours learn of it.

use ringway::connect::{Collected, MemorySource};
use ringway::edge::{Ending, Failure, Popped, RejectReason};
use ringway::element::{Barrier, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::gate::InputGate;
use ringway::operator::{Emitter, Operator, Progress, StateWriter};
use ringway::task::{GateTask, SourceTask, Task, TaskError, TaskOutcome, TaskState};

use crate::parts::{
    Batch, Endless, FailingSink, Log, Placed, Recorder, Tail, batch, chain, data, edge, open,
    pop_all, run_out, settle, single, values,
};

fn recorders(log: &Log) -> Vec<Placed> {
    let names = ["a", "b"].into_iter();
    names
        .map(|name| (Box::new(Recorder(name, log.clone())) as _, 0..0))
        .collect()
}

#[test]
fn the_end_runs_down_the_chain_after_the_end_of_time() {
    let (log, collected) = (Log::default(), Collected::new());
    let tail = Tail::Sink(Box::new(collected.sink()));
    let chain = chain("op", recorders(&log), tail, Vec::new());
    let source = MemorySource::of_batches([batch([1])]);
    let mut task = open(SourceTask::new(Box::new(source), chain));
    let TaskState::Finished(TaskOutcome::Ended) = settle(&mut task) else {
        panic!("the task has ended")
    };
    assert_eq!(
        log.lines(),
        ["a watermark max", "b watermark max", "a end", "b end"]
    );
    assert_eq!(
        collected.take(),
        [
            data([1]),
            StreamElement::Watermark(Watermark::MAX),
            data([-1]),
            data([-1])
        ]
    );
}

#[test]
fn the_end_of_an_input_is_told_after_all_that_it_caused() {
    let log = Log::default();
    let (sender, input) = edge("in", 8);
    let (output, mut receiver) = edge("out", 1);
    let chain = chain("op", recorders(&log), Tail::edge(output), Vec::new());
    let mut task = open(GateTask::new(InputGate::new(vec![input]), chain));
    sender.finish().unwrap();
    let (outcome, got) = run_out(&mut task, &mut receiver);
    assert!(matches!(outcome, TaskOutcome::Ended), "{outcome:?}");
    assert_eq!(got[0], StreamElement::Watermark(Watermark::MAX));
    assert_eq!(values(&got), [-1, -1]);
    assert_eq!(receiver.try_pop(), Popped::Ended(Ending::End));
}

#[test]
fn an_error_in_a_sink_deep_in_a_chain_names_the_sink_and_fails_the_sender() {
    let (mut sender, input) = edge("in", 8);
    let tail = Tail::Sink(Box::new(FailingSink));
    let chain = chain("op", recorders(&Log::default()), tail, Vec::new());
    let mut task = open(GateTask::new(InputGate::new(vec![input]), chain));
    sender.try_push(data([1])).unwrap();
    let TaskState::Finished(TaskOutcome::Failed(error)) = settle(&mut task) else {
        panic!("the task has failed")
    };
    assert_eq!(error.to_string(), "op2[0] failed: disk full");
    let rejected = sender.try_push(data([2])).unwrap_err();
    let failure = Failure::peer_failed("in", "op2[0] failed: disk full");
    assert_eq!(rejected.reason, RejectReason::Failed(failure));
}

#[test]
fn a_task_that_fails_never_looks_like_an_end_downstream() {
    struct Fails;
    impl Operator<Batch, Batch> for Fails {
        fn process(
            &mut self,
            batch: Batch,
            out: &mut Emitter<'_, Batch>,
        ) -> Result<Progress, OperatorError> {
            out.emit(batch);
            Err(OperatorError::new("bad row"))
        }
    }
    let (mut sender, mut task, mut receiver) = single(Fails, 8);
    sender.try_push(data([1])).unwrap();
    let TaskState::Finished(TaskOutcome::Failed(_)) = settle(&mut task) else {
        panic!("the task has failed")
    };
    pop_all(&mut receiver);
    let failure = Failure::peer_failed("out", "op0[0] failed: bad row");
    assert_eq!(receiver.try_pop(), Popped::Ended(Ending::Failed(failure)));
}

#[test]
fn a_task_whose_input_fails_passes_the_reason_on_and_is_not_the_cause() {
    let (sender, mut task, mut receiver) = single(Recorder("op", Log::default()), 8);
    sender.fail("parse[0] failed: bad row");
    let TaskState::Finished(TaskOutcome::Failed(error)) = settle(&mut task) else {
        panic!("the task has failed")
    };
    assert!(!error.is_cause() && matches!(error, TaskError::Edge(_)));
    let Popped::Ended(Ending::Failed(failure)) = receiver.try_pop() else {
        panic!("the output has failed")
    };
    assert!(
        failure.to_string().contains("parse[0] failed: bad row"),
        "{failure}"
    );
}

#[test]
fn a_task_that_nobody_listens_to_ends_in_order_and_tells_its_senders() {
    let (mut sender, mut task, receiver) = single(Recorder("op", Log::default()), 8);
    receiver.close();
    sender.try_push(data([1, 2])).unwrap();
    let TaskState::Finished(TaskOutcome::Ended) = settle(&mut task) else {
        panic!("the task has ended")
    };
    assert_eq!(task.report().discarded_rows, 2);
    assert_eq!(
        sender.try_push(data([3])).unwrap_err().reason,
        RejectReason::Closed
    );

    let (output, receiver) = edge("out", 8);
    let chain = chain("source", Vec::new(), Tail::edge(output), Vec::new());
    let mut task = open(SourceTask::new(Box::new(Endless(0)), chain));
    drop(task.step());
    receiver.close();
    let TaskState::Finished(TaskOutcome::Ended) = settle(&mut task) else {
        panic!("an endless source ends when nobody wants more")
    };
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_lost_and_the_job_goes_on() {
    struct NoState;
    impl Operator<Batch, Batch> for NoState {
        fn process(
            &mut self,
            batch: Batch,
            out: &mut Emitter<'_, Batch>,
        ) -> Result<Progress, OperatorError> {
            out.emit(batch);
            Ok(Progress::Done)
        }

        fn snapshot(&mut self, _: Barrier, _: &mut dyn StateWriter) -> Result<(), OperatorError> {
            Err(OperatorError::new("storage full"))
        }
    }
    let (mut sender, mut task, mut receiver) = single(NoState, 8);
    let barrier = StreamElement::Barrier(Barrier::aligned(1));
    sender.try_push(barrier.clone()).unwrap();
    sender.try_push(data([1])).unwrap();
    sender.finish().unwrap();
    let (outcome, got) = run_out(&mut task, &mut receiver);
    assert!(matches!(outcome, TaskOutcome::Ended), "{outcome:?}");
    assert_eq!(
        got[..2],
        [barrier, data([1])],
        "nobody downstream waits for the barrier"
    );
    assert_eq!(task.report().checkpoints_lost, 1);
}
