//! What a task does at once though its output has no room.

use ringway::edge::{Ending, Popped, Receiver, Sender};
use ringway::element::{Barrier, StreamElement};
use ringway::gate::InputGate;
use ringway::task::{GateTask, SourceTask, Task, TaskCommand, TaskOutcome, TaskState};

use crate::parts::{
    Batch, Endless, Log, Placed, Recorder, Tail, chain, data, edge, open, pop_all, run_out, settle,
    values,
};

/// A task that is blocked: its output has room for one batch, and took it.
fn blocked() -> (Vec<Sender<Batch>>, GateTask<Batch>, Receiver<Batch>, Log) {
    let (mut first, input) = edge("first", 1024);
    let (second, other) = edge("second", 1024);
    let (output, receiver) = edge("out", 1);
    let log = Log::default();
    let operators: Vec<Placed> = vec![(Box::new(Recorder("op", log.clone())), 0..0)];
    let chain = chain("op", operators, Tail::edge(output), Vec::new());
    let mut task = open(GateTask::new(InputGate::new(vec![input, other]), chain));
    for n in 0..200 {
        first.try_push(data([n])).unwrap();
    }
    assert!(matches!(settle(&mut task), TaskState::Blocked));
    (vec![first, second], task, receiver, log)
}

#[test]
fn a_blocked_task_passes_an_overtaking_barrier_on() {
    let (mut senders, mut task, mut receiver, log) = blocked();
    senders[1].try_push_priority(Barrier::unaligned(3)).unwrap();
    settle(&mut task);
    assert_eq!(
        receiver.poll_priority().map(|(barrier, _)| barrier),
        Some(Barrier::unaligned(3))
    );
    assert_eq!(log.lines(), ["op snapshot 3"]);
    for sender in senders {
        sender.finish().unwrap();
    }
    let (_, got) = run_out(&mut task, &mut receiver);
    let expected: Vec<i64> = (0..200).chain([-1]).collect();
    assert_eq!(
        values(&got),
        expected,
        "what was overtaken is processed once"
    );
}

#[test]
fn a_blocked_task_is_cancelled_at_once() {
    let (_senders, mut task, mut receiver, _) = blocked();
    task.command(&TaskCommand::Cancel);
    let state = task.step().state;
    assert!(
        matches!(state, TaskState::Finished(TaskOutcome::Cancelled)),
        "{state:?}"
    );
    pop_all(&mut receiver);
    assert_eq!(receiver.try_pop(), Popped::Ended(Ending::Cancelled));
}

#[test]
fn a_blocked_task_gives_a_checkpoint_up_and_its_inputs_go_on() {
    let (mut senders, mut task, mut receiver, log) = blocked();
    senders[0]
        .try_push(StreamElement::Barrier(Barrier::aligned(1)))
        .unwrap();
    senders[0].try_push(data([500])).unwrap();
    let mut got = Vec::new();
    while !matches!(settle(&mut task), TaskState::Running) || !receiver.is_empty() {
        got.extend(pop_all(&mut receiver));
    }
    assert_eq!(got.len(), 200, "the barrier waits for the other input");
    task.command(&TaskCommand::Abort(1));
    settle(&mut task);
    assert_eq!(values(&pop_all(&mut receiver)), [500]);
    assert_eq!(log.lines(), Vec::<String>::new(), "nothing was saved");
    assert_eq!(task.report().checkpoints_lost, 1);
}

#[test]
fn a_blocked_source_takes_a_trigger_and_saves_what_it_has_emitted() {
    let (output, mut receiver) = edge("out", 1);
    let chain = chain("source", Vec::new(), Tail::edge(output), Vec::new());
    let mut task = open(SourceTask::new(Box::new(Endless(0)), chain));
    assert!(matches!(settle(&mut task), TaskState::Blocked));
    task.command(&TaskCommand::Trigger(Barrier::aligned(1)));
    task.command(&TaskCommand::Trigger(Barrier::unaligned(2)));
    settle(&mut task);
    let emitted = task.report().source_rows;
    assert_eq!(
        receiver.poll_priority().map(|(barrier, _)| barrier.id),
        Some(2)
    );
    let mut got = Vec::new();
    while !got.contains(&StreamElement::Barrier(Barrier::aligned(1))) {
        got.extend(pop_all(&mut receiver));
        let _ = task.step();
    }
    let at = got.iter().position(|element| !element.is_data()).unwrap();
    assert_eq!(values(&got[..at]), (0..emitted as i64).collect::<Vec<_>>());
}

#[test]
fn commands_for_others_change_nothing() {
    let (mut senders, mut task, mut receiver, _) = blocked();
    for command in [TaskCommand::End, TaskCommand::Stop, TaskCommand::Commit(1)] {
        task.command(&command);
    }
    task.command(&TaskCommand::Trigger(Barrier::aligned(1)));
    task.command(&TaskCommand::Abort(77));
    senders[0].try_push(data([200])).unwrap();
    for sender in senders {
        sender.finish().unwrap();
    }
    let (outcome, got) = run_out(&mut task, &mut receiver);
    assert!(matches!(outcome, TaskOutcome::Ended), "{outcome:?}");
    assert_eq!(values(&got), (0..201).chain([-1]).collect::<Vec<_>>());
}
