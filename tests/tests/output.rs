//! The output of a subtask over real edges: what is emitted arrives, in order, or is counted.

use std::time::Duration;

use ringway::batch::{Row, Rows};
use ringway::clock::Monotonic;
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, Sender, local};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};
use ringway::limits::{CONTROL_ELEMENTS_MAX, OUTBOX_BATCHES_MAX, OUTBOX_BYTES_MAX};
use ringway::output::{Broadcast, ByKeyHash, Forward, InTurn, Output, Partitioner};
use ringway::partition::{Key, Parallelism, key_group_of_hash, subtask_of};
use ringway_shm::Bell;
use ringway_tests::seed::Seeded;

type Batch = Rows<i64>;

const NOW: Monotonic = Monotonic(Duration::ZERO);

fn edge(name: &str, capacity: usize) -> (Sender<Batch>, Receiver<Batch>) {
    let options = EdgeOptions::named(name).capacity(capacity);
    local::open(options, Bell::thread(), Bell::thread())
}

/// An output with one consumer of several subtasks.
fn output(
    partitioner: impl Partitioner<Batch> + 'static,
    edges: usize,
    capacity: usize,
) -> (Output<Batch>, Vec<Receiver<Batch>>) {
    let names = (0..edges).map(|index| format!("e{index}"));
    let (senders, receivers) = names.map(|name| edge(&name, capacity)).unzip();
    let mut output = Output::new();
    output.add_group(Box::new(partitioner), senders);
    (output, receivers)
}

fn batch(values: impl IntoIterator<Item = i64>) -> Batch {
    values.into_iter().map(Row::untimed).collect()
}

fn pop_all(receiver: &mut Receiver<Batch>) -> Vec<StreamElement<Batch>> {
    let mut elements = Vec::new();
    while let Popped::Element(element) = receiver.try_pop() {
        elements.push(element);
    }
    elements
}

fn values(elements: &[StreamElement<Batch>]) -> Vec<i64> {
    let rows = elements.iter().filter_map(|element| match element {
        StreamElement::Data(batch) => Some(batch.iter().map(|row| row.value)),
        _ => None,
    });
    rows.flatten().collect()
}

fn watermark(time: i64) -> StreamElement<Batch> {
    StreamElement::Watermark(Watermark::active(time))
}

#[test]
fn nothing_is_lost_or_reordered_over_edges_of_capacity_one() {
    let mut random = Seeded::new();
    let (mut output, mut receivers) = output(Broadcast, 3, 1);
    let mut sent = Vec::new();
    let mut got = vec![Vec::new(); 3];
    for n in 0..2_000 {
        match random.below(5) {
            0 => {
                let barrier = StreamElement::Barrier(Barrier::aligned(n as u64));
                output.broadcast(&barrier, NOW).unwrap();
                sent.push(barrier);
            }
            1 | 2 => {
                output.data(batch([n]), NOW).unwrap();
                sent.push(StreamElement::Data(batch([n])));
            }
            _ => {
                let edge = random.below(3) as usize;
                got[edge].extend(pop_all(&mut receivers[edge]));
                output.flush(NOW).unwrap();
            }
        }
    }
    while !output.flush(NOW).unwrap() {
        for (got, receiver) in got.iter_mut().zip(&mut receivers) {
            got.extend(pop_all(receiver));
        }
    }
    output.finish().unwrap();
    for (got, receiver) in got.iter_mut().zip(&mut receivers) {
        got.extend(pop_all(receiver));
        assert_eq!(*got, sent);
        assert_eq!(receiver.try_pop(), Popped::Ended(Ending::End));
    }
}

#[test]
fn a_broadcast_goes_on_where_it_stopped_edge_by_edge() {
    let (mut output, mut receivers) = output(Broadcast, 2, 1);
    for n in 0..3 {
        output.data(batch([n]), NOW).unwrap();
    }
    assert!(output.is_waiting());
    for n in 0..3 {
        assert_eq!(
            values(&pop_all(&mut receivers[1])),
            [n],
            "only its own edge holds it back"
        );
        assert!(!output.flush(NOW).unwrap(), "the other edge has no room");
    }
    for n in 0..3 {
        assert_eq!(values(&pop_all(&mut receivers[0])), [n]);
        assert_eq!(output.flush(NOW).unwrap(), n > 0);
    }
    assert_eq!(pop_all(&mut receivers[1]), [], "nothing twice");
}

#[test]
fn a_step_ends_at_a_bound_of_batches_bytes_or_control_elements() {
    let (mut full, _receivers) = output(Forward, 1, 1);
    for n in 0..OUTBOX_BATCHES_MAX as i64 {
        assert!(!full.is_full(), "at {n}");
        full.data(batch([n]), NOW).unwrap();
    }
    full.data(batch([0]), NOW).unwrap();
    assert!(full.is_full(), "batches");

    let (mut full, _receivers) = output(Forward, 1, 1);
    full.data(batch([0]), NOW).unwrap();
    let rows = (OUTBOX_BYTES_MAX / size_of::<Row<i64>>()) as i64 + 1;
    assert!(!full.is_full());
    full.data(batch(0..rows), NOW).unwrap();
    assert!(full.is_full(), "bytes");

    let (mut full, mut receivers) = output(Forward, 1, 1);
    full.data(batch([0]), NOW).unwrap();
    let mut flaps = 0;
    while !full.is_full() {
        let flap = Watermark {
            timestamp: 0,
            idle: flaps % 2 == 0,
        };
        full.broadcast(&StreamElement::Watermark(flap), NOW)
            .unwrap();
        flaps += 1;
        assert!(
            flaps <= 2 * CONTROL_ELEMENTS_MAX + 1,
            "control elements are bounded"
        );
    }
    pop_all(&mut receivers[0]);
    assert!(full.flush(NOW).unwrap());
    assert!(!full.is_full());
}

#[test]
fn a_closed_receiver_discards_and_counts_and_the_others_go_on() {
    let (mut output, mut receivers) = output(Broadcast, 2, 1);
    output.data(batch([1, 2]), NOW).unwrap();
    output.data(batch([3]), NOW).unwrap();
    receivers.remove(0).close();
    output.flush(NOW).unwrap();
    assert_eq!(
        output.discarded_rows(),
        1,
        "what waited for it; what it had was its own"
    );
    output.data(batch([4, 5]), NOW).unwrap();
    assert_eq!(output.discarded_rows(), 3);
    assert!(!output.is_closed(), "one receiver still wants more");
    let mut got = pop_all(&mut receivers[0]);
    while !output.flush(NOW).unwrap() {
        got.extend(pop_all(&mut receivers[0]));
    }
    got.extend(pop_all(&mut receivers[0]));
    assert_eq!(values(&got), [1, 2, 3, 4, 5]);
    receivers.remove(0).close();
    output.broadcast(&watermark(1), NOW).unwrap();
    assert!(output.is_closed());
}

#[test]
fn an_output_without_consumers_counts_what_it_drops() {
    let mut output = Output::new();
    output.data(batch([1, 2, 3]), NOW).unwrap();
    output.broadcast(&watermark(1), NOW).unwrap();
    assert_eq!(output.discarded_rows(), 3);
    assert!(!output.is_closed() && output.flush(NOW).unwrap());
}

#[test]
fn a_receiver_that_failed_is_an_error_that_names_the_edge() {
    let (mut failing, mut receivers) = output(InTurn::default(), 2, 8);
    receivers.remove(1).fail("disk full");
    failing.data(batch([1]), NOW).unwrap();
    let error = failing.data(batch([2]), NOW).unwrap_err();
    assert_eq!(error.to_string(), "edge e1: the peer failed: disk full");
    let (mut failing, receivers) = output(Broadcast, 3, 8);
    drop(receivers);
    let error = failing.broadcast(&watermark(1), NOW).unwrap_err();
    assert!(
        error.to_string().starts_with("edge e0: the peer is gone"),
        "{error}"
    );
}

#[test]
fn an_edge_that_fails_leaves_the_others_and_their_counts_in_order() {
    // The first edge keeps the element in its outbox, then the second fails.
    let emit: [fn(&mut Output<Batch>) -> bool; 3] = [
        |output| output.broadcast(&watermark(1), NOW).is_err(),
        |output| output.data(batch([1]), NOW).is_err(),
        |output| output.overtake(Barrier::unaligned(2), NOW).is_err(),
    ];
    for emit in emit {
        let (narrow, mut receiver) = edge("narrow", 1);
        let (wide, other) = edge("wide", 8);
        let mut output = Output::new();
        output.add_group(Box::new(Broadcast), vec![narrow, wide]);
        output.data(batch([0]), NOW).unwrap();
        output.data(batch([1]), NOW).unwrap();
        output.overtake(Barrier::unaligned(1), NOW).unwrap();
        drop(other);
        assert!(emit(&mut output));
        assert!(output.is_waiting());
        while !output.flush(NOW).unwrap() {
            pop_all(&mut receiver);
        }
        output.fail("done");
    }
}

#[test]
fn adjacent_watermarks_merge_but_not_across_data_or_a_change_of_idleness() {
    let (mut output, mut receivers) = output(Forward, 1, 1);
    output.data(batch([0]), NOW).unwrap();
    output.data(batch([1]), NOW).unwrap();
    let idle = StreamElement::Watermark(Watermark::idle(3));
    for element in [
        watermark(1),
        watermark(2),
        watermark(3),
        idle.clone(),
        idle.clone(),
    ] {
        output.broadcast(&element, NOW).unwrap();
    }
    output.broadcast(&watermark(4), NOW).unwrap();
    output.data(batch([2]), NOW).unwrap();
    output.broadcast(&watermark(5), NOW).unwrap();
    let mut got = Vec::new();
    while !output.flush(NOW).unwrap() {
        got.extend(pop_all(&mut receivers[0]));
    }
    got.extend(pop_all(&mut receivers[0]));
    let data = |n| StreamElement::Data(batch([n]));
    assert_eq!(
        got,
        [
            data(0),
            data(1),
            watermark(3),
            idle,
            watermark(4),
            data(2),
            watermark(5)
        ]
    );
}

#[test]
fn an_overtaking_barrier_goes_ahead_of_queue_and_outbox() {
    let (mut output, mut receivers) = output(Forward, 1, 1);
    for n in 0..3 {
        output.data(batch([n]), NOW).unwrap();
    }
    assert_eq!(output.overtake(Barrier::unaligned(1), NOW).unwrap(), 0);
    assert_eq!(
        receivers[0].poll_priority(),
        Some((Barrier::unaligned(1), 1))
    );
    assert_eq!(output.overtake(Barrier::unaligned(2), NOW).unwrap(), 0);
    let in_order = output.overtake(Barrier::unaligned(3), NOW).unwrap();
    assert_eq!(in_order, 1, "one barrier may be ahead at a time");
    let mut got = pop_all(&mut receivers[0]);
    while !output.flush(NOW).unwrap() {
        got.extend(pop_all(&mut receivers[0]));
    }
    got.extend(pop_all(&mut receivers[0]));
    assert_eq!(values(&got), [0, 1, 2], "what it overtook follows");
    assert_eq!(
        got.last(),
        Some(&StreamElement::Barrier(Barrier::unaligned(3)))
    );
}

#[test]
fn only_a_stream_whose_last_element_is_a_stopping_drain_was_stopped() {
    let stop = StreamElement::Drain(Drain::stop(0));
    let (mut output, _receivers) = output(Forward, 1, 8);
    output.broadcast(&stop, NOW).unwrap();
    assert!(output.last_stops());
    output.data(batch([1]), NOW).unwrap();
    assert!(!output.last_stops());
    output.broadcast(&stop, NOW).unwrap();
    output.overtake(Barrier::unaligned(1), NOW).unwrap();
    assert!(
        !output.last_stops(),
        "a barrier may have followed it in order"
    );
}

#[test]
fn rows_go_to_the_subtask_that_owns_the_key_group_of_their_key() {
    for edges in [1_usize, 2, 3, 7, 128] {
        let hash = |value: &i64| value.key_hash();
        let (mut output, mut receivers) = output(ByKeyHash::new(hash), edges, 8);
        output.data(batch(0..1_000), NOW).unwrap();
        let parallelism = Parallelism::new(edges as u32).unwrap();
        let mut rows = 0;
        for (edge, receiver) in receivers.iter_mut().enumerate() {
            let got = values(&pop_all(receiver));
            assert!(got.is_sorted(), "rows for one edge keep their order");
            rows += got.len();
            for value in got {
                let group = key_group_of_hash(value.key_hash());
                assert_eq!(subtask_of(group, parallelism) as usize, edge);
            }
        }
        assert_eq!(rows, 1_000);
    }
}

#[test]
fn batches_in_turn_and_to_everyone() {
    let (mut in_turn, mut receivers) = output(InTurn::default(), 3, 8);
    let (mut everyone, mut all) = output(Broadcast, 3, 8);
    for n in 0..6 {
        in_turn.data(batch([n]), NOW).unwrap();
        everyone.data(batch([n]), NOW).unwrap();
    }
    for (edge, receiver) in receivers.iter_mut().enumerate() {
        let edge = edge as i64;
        assert_eq!(values(&pop_all(receiver)), [edge, edge + 3]);
    }
    for receiver in &mut all {
        assert_eq!(values(&pop_all(receiver)), [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn every_consumer_gets_every_batch_and_all_control_elements() {
    let mut output = Output::new();
    let (first, mut of_first) = edge("first", 1);
    let (second, mut of_second) = edge("second", 8);
    output.add_group(Box::new(Forward), vec![first]);
    output.add_group(Box::new(Forward), vec![second]);
    output.data(batch([1]), NOW).unwrap();
    output.broadcast(&watermark(1), NOW).unwrap();
    output.data(batch([2]), NOW).unwrap();
    let expected = [
        StreamElement::Data(batch([1])),
        watermark(1),
        StreamElement::Data(batch([2])),
    ];
    assert_eq!(pop_all(&mut of_second), expected);
    let mut got = pop_all(&mut of_first);
    output.flush(NOW).unwrap();
    got.extend(pop_all(&mut of_first));
    assert_eq!(got, expected);
}

#[test]
fn an_unaligned_barrier_never_overtakes_on_a_broadcast() {
    let (mut output, mut receivers) = output(Broadcast, 2, 4);
    output.data(batch([1]), Monotonic::default()).unwrap();
    let in_order = output
        .overtake(Barrier::unaligned(7), Monotonic::default())
        .unwrap();
    assert_eq!(in_order, 2);
    for receiver in &mut receivers {
        assert!(!receiver.has_priority());
        assert_eq!(
            receiver.try_pop(),
            Popped::Element(StreamElement::Data(batch([1])))
        );
        let barrier = StreamElement::Barrier(Barrier::unaligned(7));
        assert_eq!(receiver.try_pop(), Popped::Element(barrier));
    }
}
