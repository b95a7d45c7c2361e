//! Every output sees every control element exactly once and in order.

use ringway::clock::Clock;
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, Sender, local};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::gate::InputGate;
use ringway::operator::Subtask;
use ringway::output::{Broadcast, Output, Partitioner};
use ringway::task::{Chain, GateTask, OutputStage, Task, TaskState};
use ringway_shm::Bell;

use crate::parts::{Batch, rows};

/// Gives every batch to the edges but the last.
struct NotTheLast;

impl Partitioner<Batch> for NotTheLast {
    fn partition(
        &mut self,
        batch: Batch,
        edges: usize,
        give: &mut dyn FnMut(usize, Batch),
    ) -> Result<(), OperatorError> {
        (0..edges - 1).for_each(|edge| give(edge, batch.clone()));
        Ok(())
    }
}

fn edges(count: usize, capacity: usize) -> (Vec<Sender<Batch>>, Vec<Receiver<Batch>>) {
    let edge = |index| {
        let options = EdgeOptions::named(format!("edge {index}")).capacity(capacity);
        local::open(options, Bell::thread(), Bell::thread())
    };
    (0..count).map(edge).unzip()
}

fn script() -> Vec<StreamElement<Batch>> {
    vec![
        StreamElement::Data(rows([1])),
        StreamElement::Watermark(Watermark::active(10)),
        StreamElement::Barrier(Barrier::aligned(1)),
        StreamElement::Drain(Drain {
            subtask: 7,
            target_parallelism: 2,
        }),
        StreamElement::Data(rows([2])),
    ]
}

/// Steps a union of `inputs` streams of the script with a fan-out of three to its end.
fn fan_out(
    inputs: usize,
    capacity: usize,
    partitioner: impl Partitioner<Batch> + 'static,
) -> Vec<Vec<StreamElement<Batch>>> {
    let (mut senders, into_gate) = edges(inputs, 64);
    let (out_of_task, mut receivers) = edges(3, capacity);
    let mut output = Output::new();
    output.add_group(Box::new(partitioner), out_of_task);
    let stage = Box::new(OutputStage::new(output, 0));
    let chain = Chain::new(stage, vec![Subtask::single("union")], Vec::new());
    let mut task = GateTask::new(InputGate::new(into_gate), chain);
    task.open(Clock::start(), &Bell::thread()).unwrap();
    for sender in &mut senders {
        script()
            .into_iter()
            .for_each(|element| sender.try_push(element).unwrap());
    }
    for sender in senders {
        sender.finish().unwrap();
    }
    let mut seen = vec![Vec::new(); 3];
    loop {
        let step = task.step();
        for (seen, receiver) in seen.iter_mut().zip(&mut receivers) {
            while let Popped::Element(element) = receiver.try_pop() {
                seen.push(element);
            }
        }
        if matches!(step.state, TaskState::Finished(_)) {
            break;
        }
    }
    for receiver in &mut receivers {
        assert_eq!(receiver.try_pop(), Popped::Ended(Ending::End));
    }
    seen
}

#[test]
fn b12_an_output_without_data_sees_every_control_element_once_and_in_order() {
    for capacity in [1, 64] {
        let seen = fan_out(1, capacity, NotTheLast);
        let mut expected = script();
        expected.push(StreamElement::Watermark(Watermark::MAX));
        assert_eq!(seen[0], expected);
        assert_eq!(seen[1], expected);
        expected.retain(|element| !element.is_data());
        assert_eq!(seen[2], expected);
    }
}

#[test]
fn b12_a_union_passes_each_checkpoint_and_watermark_on_once_and_every_drain_and_row() {
    for capacity in [1, 64] {
        for seen in fan_out(2, capacity, Broadcast) {
            let count = |wanted: fn(&StreamElement<Batch>) -> bool| {
                seen.iter().filter(|element| wanted(element)).count()
            };
            assert_eq!(count(|e| matches!(e, StreamElement::Barrier(_))), 1);
            assert_eq!(
                count(|e| matches!(e, StreamElement::Watermark(_))),
                2,
                "{seen:?}"
            );
            assert_eq!(count(|e| matches!(e, StreamElement::Drain(_))), 2);
            assert_eq!(count(StreamElement::is_data), 4);
            let barrier = seen
                .iter()
                .position(|e| matches!(e, StreamElement::Barrier(_)));
            let before = &seen[..barrier.unwrap()];
            assert_eq!(before.iter().filter(|element| element.is_data()).count(), 2);
        }
    }
}
