//! Operators and sinks that do not finish at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringway::clock::ProcessingTime;
use ringway::edge::Ending;
use ringway::edge::Popped;
use ringway::element::{Barrier, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::gate::InputGate;
use ringway::operator::{Progress, Sink};
use ringway::task::{GateTask, Task, TaskOutcome, TaskState};

use crate::parts::{
    Batch, Log, OneByOne, Placed, Recorder, Tail, batch, chain, data, edge, open, pop_all, run_out,
    settle, single, values,
};

#[test]
fn an_operator_that_is_never_done_at_once_emits_everything_in_order() {
    let (mut sender, mut task, mut receiver) = single(OneByOne::default(), 1);
    for n in [50, 0, 70] {
        sender.try_push(data([n])).unwrap();
    }
    let watermark = StreamElement::Watermark(Watermark::active(9));
    sender.try_push(watermark.clone()).unwrap();
    sender.finish().unwrap();
    let (outcome, got) = run_out(&mut task, &mut receiver);
    assert!(matches!(outcome, TaskOutcome::Ended), "{outcome:?}");
    assert_eq!(values(&got), (0..50).chain(0..70).collect::<Vec<_>>());
    assert_eq!(
        got[120], watermark,
        "a watermark follows what came before it"
    );
    assert_eq!(receiver.try_pop(), Popped::Ended(Ending::End));
}

#[test]
fn two_operators_that_are_never_done_at_once_may_share_a_chain() {
    let (mut sender, input) = edge("in", 1024);
    let (output, mut receiver) = edge("out", 1);
    let operators: Vec<Placed> = vec![
        (Box::new(OneByOne::default()), 0..0),
        (Box::new(OneByOne::default()), 0..0),
    ];
    let chain = chain("op", operators, Tail::edge(output), Vec::new());
    let mut task = open(GateTask::new(InputGate::new(vec![input]), chain));
    sender.try_push(data([20])).unwrap();
    sender.finish().unwrap();
    let (_, got) = run_out(&mut task, &mut receiver);
    assert_eq!(values(&got), (0..20).flat_map(|n| 0..n).collect::<Vec<_>>());
}

#[test]
fn an_aligned_barrier_waits_for_a_call_that_is_not_finished() {
    let log = Log::default();
    let operator = OneByOne {
        log: log.clone(),
        ..OneByOne::default()
    };
    let (mut sender, mut task, mut receiver) = single(operator, 1);
    sender.try_push(data([10])).unwrap();
    sender
        .try_push(StreamElement::Barrier(Barrier::aligned(1)))
        .unwrap();
    sender.try_push(data([3])).unwrap();
    sender.finish().unwrap();
    let (_, got) = run_out(&mut task, &mut receiver);
    let barrier = got
        .iter()
        .position(|e| matches!(e, StreamElement::Barrier(_)))
        .unwrap();
    assert_eq!(values(&got[..barrier]), (0..10).collect::<Vec<_>>());
    assert_eq!(log.lines(), ["snapshot 1 at 10"]);
}

#[test]
fn a_barrier_that_overtakes_comes_between_two_resumptions() {
    let log = Log::default();
    let operator = OneByOne {
        log: log.clone(),
        ..OneByOne::default()
    };
    let (mut sender, mut task, mut receiver) = single(operator, 2);
    sender.try_push(data([1_000])).unwrap();
    assert!(matches!(settle(&mut task), TaskState::Blocked));
    sender.try_push_priority(Barrier::unaligned(5)).unwrap();
    settle(&mut task);
    let (barrier, _) = receiver
        .poll_priority()
        .expect("it is passed on while the task is blocked");
    assert_eq!(barrier, Barrier::unaligned(5));
    let lines = log.lines();
    assert!(
        lines[0].starts_with("snapshot 5 at ") && lines[0] != "snapshot 5 at 1000",
        "{lines:?}"
    );
    sender.finish().unwrap();
    let (_, got) = run_out(&mut task, &mut receiver);
    assert_eq!(
        values(&got),
        (0..1_000).collect::<Vec<_>>(),
        "the call goes on where it was"
    );
}

/// Takes one batch, then is busy until told that there is room.
struct Busy {
    room: Arc<AtomicBool>,
    log: Log,
}

impl Busy {
    fn progress(&self) -> Progress {
        if self.room.swap(false, Ordering::SeqCst) {
            Progress::Done
        } else {
            Progress::More
        }
    }
}

impl Sink<Batch> for Busy {
    fn write(&mut self, batch: Batch, _: ProcessingTime) -> Result<Progress, OperatorError> {
        self.log.add(format!("row {}", batch.into_vec()[0].value));
        Ok(self.progress())
    }

    fn resume(&mut self, _: ProcessingTime) -> Result<Progress, OperatorError> {
        Ok(self.progress())
    }

    fn on_end(&mut self, _: ProcessingTime) -> Result<Progress, OperatorError> {
        self.log.add("end");
        Ok(Progress::Done)
    }
}

#[test]
fn a_busy_sink_is_no_work_until_its_writer_has_room() {
    let (mut sender, input) = edge("in", 1024);
    let (room, log) = (Arc::new(AtomicBool::new(false)), Log::default());
    let sink = Busy {
        room: room.clone(),
        log: log.clone(),
    };
    let operators: Vec<Placed> = vec![(Box::new(Recorder("op", Log::default())), 0..0)];
    let chain = chain("op", operators, Tail::Sink(Box::new(sink)), Vec::new());
    let mut task = open(GateTask::new(InputGate::new(vec![input]), chain));
    for n in 0..3 {
        sender.try_push(StreamElement::Data(batch([n]))).unwrap();
    }
    sender.finish().unwrap();
    for n in 0..4 {
        // The last is the row that the operator emits at its end.
        let row = if n < 3 { n } else { -1 };
        assert!(
            matches!(settle(&mut task), TaskState::Blocked),
            "the worker may park"
        );
        assert_eq!(log.lines(), [format!("row {row}")]);
        room.store(true, Ordering::SeqCst);
    }
    let TaskState::Finished(TaskOutcome::Ended) = settle(&mut task) else {
        panic!("the task has ended")
    };
    assert_eq!(log.lines(), ["end"]);
}

#[test]
fn what_waits_in_a_chain_is_only_what_one_call_emitted() {
    let (mut sender, mut task, mut receiver) = single(OneByOne::default(), 1);
    for _ in 0..100 {
        sender.try_push(data([5])).unwrap();
    }
    settle(&mut task);
    assert!(
        sender.len() >= 98,
        "a blocked task takes no further input: {}",
        sender.len()
    );
    assert_eq!(values(&pop_all(&mut receiver)), [0]);
    assert!(task.report().rows_in <= 2);
}
