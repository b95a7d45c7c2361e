//! Side outputs: their order, their watermarks, their bounds, their failures.

use ringway::batch::Row;
use ringway::edge::{Ending, Popped, Receiver, Sender};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::gate::InputGate;
use ringway::limits::{OUTBOX_BATCHES_MAX, OUTBOX_BYTES_MAX};
use ringway::operator::{Emitter, Operator, Progress, SideTag};
use ringway::output::{Forward, Output};
use ringway::task::{GateTask, SideOutlet, Task, TaskOutcome, TaskState, TypedSideOutlet};
use ringway_tests::within::{LONG, join_within};

use crate::parts::{Batch, Tail, batch, chain, data, edge, open, pop_all, settle, values};

/// Sends odd numbers to the side, even ones on.
struct OddAside;

impl Operator<Batch, Batch> for OddAside {
    fn process(
        &mut self,
        batch: Batch,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        let (odd, even): (Vec<_>, Vec<_>) = batch.into_iter().partition(|row| row.value % 2 != 0);
        out.emit_side(SideTag::new(0), Batch::from(odd));
        out.emit(Batch::from(even));
        Ok(Progress::Done)
    }
}

/// Replaces every watermark by one of its own.
struct OwnTime;

impl Operator<Batch, Batch> for OwnTime {
    fn process(
        &mut self,
        batch: Batch,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        out.emit(batch);
        Ok(Progress::Done)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        out.watermark(Watermark::active(watermark.timestamp.saturating_add(1_000)));
        Ok(Progress::Done)
    }
}

struct Sided {
    sender: Sender<Batch>,
    task: GateTask<Batch>,
    main: Receiver<Batch>,
    side: Receiver<Batch>,
}

/// A task of these operators, the first of which has the one side output.
fn sided(operators: Vec<Box<dyn Operator<Batch, Batch>>>, side_capacity: usize) -> Sided {
    let (sender, input) = edge("in", 1024);
    let (output, main) = edge("main", 1024);
    let (side_output, side) = edge("side", side_capacity);
    let mut to_side = Output::new();
    to_side.add_group(Box::new(Forward), vec![side_output]);
    let outlet: Box<dyn SideOutlet> = Box::new(TypedSideOutlet::new(0, Some(to_side)));
    let operators = operators.into_iter().enumerate();
    let operators = operators.map(|(at, operator)| (operator, if at == 0 { 0..1 } else { 1..1 }));
    let chain = chain("op", operators.collect(), Tail::edge(output), vec![outlet]);
    let task = open(GateTask::new(InputGate::new(vec![input]), chain));
    Sided {
        sender,
        task,
        main,
        side,
    }
}

#[test]
fn a_side_output_has_every_control_element_once_in_order_with_its_data() {
    let Sided {
        mut sender,
        mut task,
        mut main,
        mut side,
    } = sided(vec![Box::new(OddAside)], 8);
    let controls = [
        StreamElement::Watermark(Watermark::active(10)),
        StreamElement::Barrier(Barrier::aligned(1)),
        StreamElement::Drain(Drain {
            subtask: 0,
            target_parallelism: 2,
        }),
    ];
    sender.try_push(data([1])).unwrap();
    for control in &controls {
        sender.try_push(control.clone()).unwrap();
    }
    sender.try_push(data([3])).unwrap();
    sender.finish().unwrap();
    let TaskState::Finished(TaskOutcome::Ended) = settle(&mut task) else {
        panic!("the task has ended")
    };
    let max = StreamElement::Watermark(Watermark::MAX);
    let [watermark, barrier, drain] = controls;
    let expected = [
        data([1]),
        watermark.clone(),
        barrier.clone(),
        drain.clone(),
        data([3]),
        max.clone(),
    ];
    assert_eq!(pop_all(&mut side), expected);
    assert_eq!(
        pop_all(&mut main),
        [watermark, barrier, drain, max],
        "also without any data"
    );
    assert_eq!(main.try_pop(), Popped::Ended(Ending::End));
    assert_eq!(side.try_pop(), Popped::Ended(Ending::End));
}

#[test]
fn a_side_output_has_the_time_of_its_operator_not_of_those_further_down() {
    let operators: Vec<Box<dyn Operator<Batch, Batch>>> =
        vec![Box::new(OddAside), Box::new(OwnTime)];
    let Sided {
        mut sender,
        mut task,
        mut main,
        mut side,
    } = sided(operators, 8);
    sender
        .try_push(StreamElement::Watermark(Watermark::active(10)))
        .unwrap();
    settle(&mut task);
    let watermark = |time| StreamElement::Watermark(Watermark::active(time));
    assert_eq!(pop_all(&mut side), [watermark(10)]);
    assert_eq!(pop_all(&mut main), [watermark(1_010)]);
}

#[test]
fn a_stop_reaches_the_side_output_as_a_stop() {
    let Sided {
        mut sender,
        mut task,
        mut main,
        mut side,
    } = sided(vec![Box::new(OddAside)], 1);
    sender.try_push(data([1])).unwrap();
    sender
        .try_push(StreamElement::Drain(Drain::stop(0)))
        .unwrap();
    sender.finish().unwrap();
    let TaskState::Finished(TaskOutcome::Stopped) = settle(&mut task) else {
        panic!("the task was stopped")
    };
    for receiver in [&mut main, &mut side] {
        pop_all(receiver);
        assert_eq!(receiver.try_pop(), Popped::Ended(Ending::Stopped));
    }
}

#[test]
fn a_side_output_whose_receiver_fails_ends_the_task_and_names_the_edge() {
    let Sided {
        mut sender,
        mut task,
        mut main,
        side,
    } = sided(vec![Box::new(OddAside)], 8);
    side.fail("late[0] failed: disk full");
    sender.try_push(data([1, 2])).unwrap();
    let TaskState::Finished(TaskOutcome::Failed(error)) = settle(&mut task) else {
        panic!("the task has failed")
    };
    assert!(
        error.to_string().starts_with("edge side: the peer failed"),
        "{error}"
    );
    pop_all(&mut main);
    assert!(
        matches!(main.try_pop(), Popped::Ended(Ending::Failed(_))),
        "no false end"
    );
}

/// Sends batches of about a mebibyte to its side, more than it should in one call.
struct Floods;

impl Operator<Batch, Batch> for Floods {
    fn process(
        &mut self,
        batch: Batch,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        let rows = OUTBOX_BYTES_MAX / size_of::<Row<i64>>() + 1;
        for row in batch {
            let flood = std::iter::repeat_n(Row::untimed(row.value), rows);
            out.emit_side(SideTag::new(0), flood.collect::<Batch>());
        }
        Ok(Progress::Done)
    }
}

#[test]
fn nothing_is_lost_at_the_end_when_the_side_output_was_at_its_bound() {
    for _ in 0..30 {
        let Sided {
            mut sender,
            mut task,
            main,
            mut side,
        } = sided(vec![Box::new(Floods)], 1);
        sender.try_push(data(0..10)).unwrap();
        sender.finish().unwrap();
        let reader = std::thread::spawn(move || {
            let mut firsts = Vec::new();
            loop {
                match side.try_pop() {
                    Popped::Element(StreamElement::Data(batch)) => {
                        firsts.push(batch.into_vec()[0].value);
                    }
                    Popped::Element(_) | Popped::Empty => std::hint::spin_loop(),
                    Popped::Ended(ending) => return (firsts, ending),
                }
            }
        });
        while !matches!(task.step().state, TaskState::Finished(_)) {}
        let (firsts, ending) = join_within(LONG, "the side output ends", reader);
        assert_eq!((firsts, ending), ((0..10).collect(), Ending::End));
        drop(main);
    }
}

/// Sends batches to its side as long as it may.
struct UntilFull;

impl Operator<Batch, Batch> for UntilFull {
    fn process(
        &mut self,
        _: Batch,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        let mut sent = 0;
        while !out.is_full() {
            out.emit_side(SideTag::new(0), batch([sent]));
            sent += 1;
            assert!(
                sent <= OUTBOX_BATCHES_MAX as i64,
                "a side output is bounded in batches too"
            );
        }
        Ok(Progress::Done)
    }
}

#[test]
fn a_side_output_is_bounded_also_where_its_batches_weigh_nothing() {
    let Sided {
        mut sender,
        mut task,
        main,
        mut side,
    } = sided(vec![Box::new(UntilFull)], 1024);
    sender.try_push(data([0])).unwrap();
    settle(&mut task);
    assert_eq!(values(&pop_all(&mut side)).len(), OUTBOX_BATCHES_MAX);
    drop(main);
}
