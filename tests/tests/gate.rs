//! The input gate over real edges: what a task is promised of its inputs.

use std::collections::VecDeque;
use std::time::Duration;

use ringway::batch::{Row, Rows};
use ringway::clock::Monotonic;
use ringway::edge::{EdgeOptions, Ending, Failure, Receiver, Sender, local};
use ringway::element::{Barrier, Drain, EVENT_TIME_MAX, StreamElement, Watermark};
use ringway::gate::{GateEvent, InputGate};
use ringway_shm::Bell;
use ringway_tests::seed::Seeded;

type Batch = Rows<i64>;
type Event = GateEvent<Batch>;

fn edge(capacity: usize) -> (Sender<Batch>, Receiver<Batch>) {
    let options = EdgeOptions::named("e").capacity(capacity);
    local::open(options, Bell::thread(), Bell::thread())
}

fn gate(inputs: usize) -> (Vec<Sender<Batch>>, InputGate<Batch>) {
    let (senders, receivers) = (0..inputs).map(|_| edge(1023)).unzip();
    (senders, InputGate::new(receivers))
}

fn data(value: i64) -> StreamElement<Batch> {
    StreamElement::Data(Rows::from(vec![Row::untimed(value)]))
}

fn at(ms: u64) -> Monotonic {
    Monotonic(Duration::from_millis(ms))
}

fn send(sender: &mut Sender<Batch>, elements: impl IntoIterator<Item = StreamElement<Batch>>) {
    for element in elements {
        sender.try_push(element).unwrap();
    }
}

/// Everything the gate has now, without what only changed its state.
fn drain_gate(gate: &mut InputGate<Batch>) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match gate.poll(at(0)) {
            GateEvent::Empty => return events,
            GateEvent::Absorbed => {}
            ended @ GateEvent::Ended(_) => {
                events.push(ended);
                return events;
            }
            event => events.push(event),
        }
    }
}

fn values(events: &[Event]) -> Vec<i64> {
    let rows = events.iter().filter_map(|event| match event {
        GateEvent::Data { batch, .. } => Some(batch.iter().map(|row| row.value)),
        _ => None,
    });
    rows.flatten().collect()
}

fn barriers(events: &[Event]) -> Vec<(u64, bool)> {
    let found = events.iter().filter_map(|event| match event {
        GateEvent::Barrier {
            barrier,
            unaligned_first,
        } => Some((barrier.id, *unaligned_first)),
        _ => None,
    });
    found.collect()
}

#[test]
fn each_input_keeps_its_order_whatever_the_others_do() {
    let mut random = Seeded::new();
    let (mut senders, mut gate) = gate(5);
    let mut next = [0_i64; 5];
    let mut seen: Vec<VecDeque<i64>> = vec![VecDeque::new(); 5];
    for _ in 0..5_000 {
        let input = random.below(5) as usize;
        if random.below(3) > 0 {
            if senders[input].try_push(data(next[input])).is_ok() {
                next[input] += 1;
            }
        } else if let GateEvent::Data { input, batch } = gate.poll(at(0)) {
            seen[input].extend(batch.into_iter().map(|row| row.value));
        }
    }
    for event in drain_gate(&mut gate) {
        if let GateEvent::Data { input, batch } = event {
            seen[input].extend(batch.into_iter().map(|row| row.value));
        }
    }
    for (input, seen) in seen.into_iter().enumerate() {
        assert!(seen.into_iter().eq(0..next[input]), "input {input}");
    }
}

#[test]
fn a_busy_input_never_starves_another() {
    let (mut senders, mut gate) = gate(3);
    send(&mut senders[0], (0..500).map(data));
    send(&mut senders[2], [data(-1)]);
    let taken = (0..).map(|_| gate.poll(at(0)));
    let before = taken.take_while(|event| !matches!(event, GateEvent::Data { input: 2, .. }));
    assert!(before.count() <= 16, "the lone element comes soon");
}

#[test]
fn a_gate_with_elements_never_says_that_it_is_empty() {
    // A flood of watermarks on one input moves nothing while the other says nothing.
    let (mut senders, mut gate) = gate(2);
    send(
        &mut senders[0],
        (0..100).map(|t| StreamElement::Watermark(Watermark::active(t))),
    );
    send(&mut senders[0], [data(7)]);
    for _ in 0..100 {
        assert_eq!(gate.poll(at(0)), GateEvent::Absorbed);
    }
    assert!(matches!(gate.poll(at(0)), GateEvent::Data { input: 0, .. }));
    assert_eq!(gate.poll(at(0)), GateEvent::Empty);
    assert_eq!(gate.elements_taken(), 101);
}

#[test]
fn an_aligned_barrier_leaves_what_follows_it_on_the_edge() {
    let (mut senders, mut gate) = gate(2);
    send(
        &mut senders[0],
        [
            StreamElement::Barrier(Barrier::aligned(1)),
            data(1),
            data(2),
        ],
    );
    assert_eq!(drain_gate(&mut gate), []);
    assert!(gate.is_aligning());
    assert_eq!(senders[0].len(), 2, "the blocked input is not popped");
    send(
        &mut senders[1],
        [
            data(10),
            StreamElement::Barrier(Barrier::aligned(1)),
            data(11),
        ],
    );
    let events = drain_gate(&mut gate);
    assert_eq!(barriers(&events), [(1, false)]);
    let (before, after) = events.split_at(1);
    assert_eq!(values(before), [10], "only what came before the barrier");
    let mut after = values(after);
    after.sort_unstable();
    assert_eq!(after, [1, 2, 11]);
    assert!(!gate.is_aligning());
}

#[test]
fn the_end_of_an_input_completes_a_barrier_exactly_once() {
    let (mut senders, mut gate) = gate(3);
    let barrier = || StreamElement::Barrier(Barrier::aligned(1));
    send(&mut senders[0], [barrier(), data(1)]);
    send(&mut senders[1], [barrier()]);
    assert_eq!(drain_gate(&mut gate), []);
    senders.pop().unwrap().finish().unwrap();
    let events = drain_gate(&mut gate);
    assert_eq!(barriers(&events), [(1, false)]);
    assert_eq!(values(&events), [1]);
    for sender in senders {
        sender.finish().unwrap();
    }
    let events = drain_gate(&mut gate);
    assert_eq!(barriers(&events), [], "it went on once");
    assert_eq!(events.last(), Some(&GateEvent::Ended(Ending::End)));
}

#[test]
fn a_barrier_that_overtakes_goes_first_and_what_it_overtook_is_processed_once() {
    let (mut senders, mut gate) = gate(2);
    send(&mut senders[0], [data(1), data(2)]);
    send(&mut senders[1], [data(10), data(11)]);
    senders[1].try_push_priority(Barrier::unaligned(4)).unwrap();
    let mut events = vec![gate.poll(at(0))];
    events.extend(drain_gate(&mut gate));
    let first = events
        .iter()
        .position(|e| matches!(e, GateEvent::Barrier { .. }));
    let second_input = events
        .iter()
        .position(|e| matches!(e, GateEvent::Data { input: 1, .. }));
    assert!(
        first < second_input,
        "it overtakes what is queued on its input"
    );
    assert_eq!(barriers(&events), [(4, true)]);
    senders[0].try_push_priority(Barrier::unaligned(4)).unwrap();
    events.extend(drain_gate(&mut gate));
    assert_eq!(barriers(&events), [(4, true)], "it is forwarded once");
    assert!(events.contains(&GateEvent::RecordingsClosed { id: 4 }));
    let mut values = values(&events);
    values.sort_unstable();
    assert_eq!(values, [1, 2, 10, 11]);
}

#[test]
fn a_barrier_that_overtakes_frees_the_inputs_that_wait_for_it() {
    let (mut senders, mut gate) = gate(2);
    send(
        &mut senders[0],
        [StreamElement::Barrier(Barrier::aligned(2)), data(1)],
    );
    assert_eq!(drain_gate(&mut gate), []);
    senders[1].try_push_priority(Barrier::unaligned(2)).unwrap();
    let events = drain_gate(&mut gate);
    assert_eq!(barriers(&events), [(2, true)]);
    assert_eq!(values(&events), [1]);
}

#[test]
fn what_is_urgent_reaches_a_task_that_can_take_no_element() {
    let (mut senders, mut gate) = gate(2);
    send(&mut senders[0], [data(1)]);
    assert_eq!(gate.poll_urgent(at(0)), None, "elements are not urgent");
    senders[1].try_push_priority(Barrier::unaligned(1)).unwrap();
    let barrier = Barrier::unaligned(1);
    let urgent = GateEvent::Barrier {
        barrier,
        unaligned_first: true,
    };
    assert_eq!(gate.poll_urgent(at(0)), Some(urgent));
    assert_eq!(gate.poll_urgent(at(0)), None);
    assert_eq!(values(&drain_gate(&mut gate)), [1]);
}

#[test]
fn nothing_urgent_goes_ahead_of_what_was_taken_before_it() {
    let (mut senders, mut gate) = gate(2);
    let watermark = StreamElement::Watermark(Watermark::active(5));
    send(
        &mut senders[0],
        [watermark, StreamElement::Barrier(Barrier::aligned(1))],
    );
    assert_eq!(drain_gate(&mut gate), []);
    senders.pop().unwrap().finish().unwrap();
    let first = gate.poll(at(0));
    assert!(matches!(first, GateEvent::Barrier { .. }), "{first:?}");
    senders[0].try_push_priority(Barrier::unaligned(2)).unwrap();
    assert_eq!(
        gate.poll_urgent(at(0)),
        None,
        "the watermark is still to be told"
    );
    let events = drain_gate(&mut gate);
    assert_eq!(events[0], GateEvent::Watermark(Watermark::active(5)));
    assert_eq!(barriers(&events), [(2, true)]);
}

#[test]
fn a_checkpoint_that_an_input_passes_over_is_lost_and_its_inputs_go_on() {
    let (mut senders, mut gate) = gate(2);
    send(
        &mut senders[0],
        [StreamElement::Barrier(Barrier::aligned(1)), data(1)],
    );
    assert_eq!(drain_gate(&mut gate), []);
    send(
        &mut senders[1],
        [StreamElement::Barrier(Barrier::aligned(2))],
    );
    let events = drain_gate(&mut gate);
    let lost = |event: &Event| matches!(event, GateEvent::BarrierLost { id: 1, .. });
    assert!(events.iter().any(lost), "{events:?}");
    assert_eq!(values(&events), [1]);
    send(
        &mut senders[0],
        [StreamElement::Barrier(Barrier::aligned(2))],
    );
    assert_eq!(barriers(&drain_gate(&mut gate)), [(2, false)]);
}

#[test]
fn an_abort_releases_what_waits_and_late_deliveries_change_nothing() {
    let (mut senders, mut gate) = gate(2);
    send(
        &mut senders[0],
        [StreamElement::Barrier(Barrier::aligned(1)), data(1)],
    );
    assert_eq!(drain_gate(&mut gate), []);
    gate.abort(1);
    let events = drain_gate(&mut gate);
    assert!(
        matches!(events[0], GateEvent::BarrierLost { id: 1, .. }),
        "{events:?}"
    );
    assert_eq!(values(&events), [1]);
    send(
        &mut senders[1],
        [StreamElement::Barrier(Barrier::aligned(1)), data(2)],
    );
    let events = drain_gate(&mut gate);
    assert_eq!((barriers(&events), values(&events)), (vec![], vec![2]));
}

#[test]
fn an_alignment_that_takes_too_long_turns_unaligned_and_says_when() {
    let (mut senders, mut gate) = gate(2);
    gate.escalate_after(Some(Duration::from_millis(100)));
    assert_eq!(gate.escalates_at(), None);
    send(
        &mut senders[0],
        [StreamElement::Barrier(Barrier::aligned(1)), data(1)],
    );
    assert_eq!(gate.poll(at(10)), GateEvent::Absorbed);
    assert_eq!(gate.poll(at(10)), GateEvent::Empty);
    assert_eq!(gate.escalates_at(), Some(at(110)));
    assert_eq!(gate.poll(at(109)), GateEvent::Empty);
    let barrier = Barrier::unaligned(1);
    let forwarded = GateEvent::Barrier {
        barrier,
        unaligned_first: true,
    };
    assert_eq!(gate.poll(at(110)), forwarded);
    assert_eq!(gate.escalates_at(), None);
    assert_eq!(values(&drain_gate(&mut gate)), [1]);
}

#[test]
fn the_merged_watermark_is_that_of_the_slowest_and_the_end_of_time_comes_last() {
    let (mut senders, mut gate) = gate(2);
    let watermark = |t| StreamElement::Watermark(Watermark::active(t));
    send(&mut senders[0], [watermark(10), watermark(20)]);
    assert_eq!(drain_gate(&mut gate), []);
    send(&mut senders[1], [watermark(15)]);
    assert_eq!(
        drain_gate(&mut gate),
        [GateEvent::Watermark(Watermark::active(15))]
    );
    senders.remove(1).finish().unwrap();
    assert_eq!(
        drain_gate(&mut gate),
        [GateEvent::Watermark(Watermark::active(20))]
    );
    send(
        &mut senders[0],
        [StreamElement::Watermark(Watermark::idle(20))],
    );
    assert_eq!(
        drain_gate(&mut gate),
        [GateEvent::Watermark(Watermark::idle(20))]
    );
    senders.remove(0).finish().unwrap();
    let end = Watermark::active(EVENT_TIME_MAX);
    let ended = GateEvent::Ended(Ending::End);
    assert_eq!(
        drain_gate(&mut gate),
        [GateEvent::Watermark(end), ended.clone()]
    );
    assert_eq!(gate.poll(at(0)), ended, "it is said again");
}

#[test]
fn one_input_that_was_stopped_makes_the_end_a_stop_without_the_end_of_time() {
    let (mut senders, mut gate) = gate(2);
    senders.remove(0).finish().unwrap();
    let stop = Drain::stop(0);
    send(&mut senders[0], [data(1), StreamElement::Drain(stop)]);
    senders.remove(0).finish().unwrap();
    let events = drain_gate(&mut gate);
    assert_eq!(values(&events), [1]);
    assert_eq!(
        events[1..],
        [GateEvent::Drain(stop), GateEvent::Ended(Ending::Stopped)]
    );
}

#[test]
fn one_input_that_fails_or_is_cancelled_ends_the_gate_at_once() {
    let failed = Ending::Failed(Failure::peer_failed("e", "map[0] panicked"));
    type Close = fn(Sender<Batch>);
    let close: [(Close, Ending); 3] = [
        (|sender| sender.fail("map[0] panicked"), failed),
        (Sender::cancel, Ending::Cancelled),
        (drop, Ending::Failed(Failure::peer_lost("e"))),
    ];
    for (close, ending) in close {
        let (mut senders, mut gate) = gate(2);
        send(
            &mut senders[0],
            [StreamElement::Barrier(Barrier::aligned(1)), data(1)],
        );
        assert_eq!(drain_gate(&mut gate), []);
        send(&mut senders[1], [data(2)]);
        close(senders.pop().unwrap());
        let events = drain_gate(&mut gate);
        assert_eq!(values(&events), [2], "what was sent before is taken");
        assert!(
            matches!(events[1], GateEvent::BarrierLost { id: 1, .. }),
            "{events:?}"
        );
        assert_eq!(events.last(), Some(&GateEvent::Ended(ending)));
    }
}

#[test]
fn an_edge_can_join_between_checkpoints_and_counts_from_the_next_on() {
    let (mut senders, mut gate) = gate(1);
    let watermark = |t| StreamElement::Watermark(Watermark::active(t));
    let barrier = |id| StreamElement::Barrier(Barrier::aligned(id));
    send(&mut senders[0], [watermark(5), barrier(1), data(1)]);
    assert_eq!(barriers(&drain_gate(&mut gate)), [(1, false)]);
    let (mut joined, receiver) = edge(8);
    assert_eq!(gate.add_input(receiver).unwrap(), 1);
    send(&mut senders[0], [watermark(9), barrier(2), data(2)]);
    let events = drain_gate(&mut gate);
    assert_eq!(
        events,
        [],
        "the new input holds watermark and barrier: {events:?}"
    );
    let (_late, receiver) = edge(8);
    let receiver = gate.add_input(receiver).unwrap_err();
    assert_eq!(
        receiver.name(),
        "e",
        "it comes back while a checkpoint is pending"
    );
    send(&mut joined, [watermark(7), barrier(2)]);
    let events = drain_gate(&mut gate);
    assert_eq!(events[0], GateEvent::Watermark(Watermark::active(7)));
    assert_eq!(
        (barriers(&events), values(&events)),
        (vec![(2, false)], vec![2])
    );
}

#[test]
fn no_edge_joins_a_stream_that_is_over() {
    let (senders, mut gate) = gate(1);
    for sender in senders {
        sender.finish().unwrap();
    }
    drain_gate(&mut gate);
    let (mut sender, receiver) = edge(8);
    let receiver = gate.add_input(receiver).unwrap_err();
    drop(receiver);
    assert!(sender.try_push(data(1)).is_err(), "nothing is swallowed");
}

#[test]
fn a_gate_that_closes_or_fails_tells_its_senders_which() {
    use ringway::edge::RejectReason;
    let (mut senders, mut open) = gate(1);
    open.close();
    assert_eq!(
        senders[0].try_push(data(1)).unwrap_err().reason,
        RejectReason::Closed
    );
    let (mut senders, mut open) = gate(1);
    open.fail("sink[0] failed: disk full");
    let RejectReason::Failed(failure) = senders[0].try_push(data(1)).unwrap_err().reason else {
        panic!("the edge has failed")
    };
    assert_eq!(
        failure.to_string(),
        "edge e: the peer failed: sink[0] failed: disk full"
    );
}
