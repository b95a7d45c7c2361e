//! The halves as the stream and the sink of the futures crates.

use std::thread;

use futures_util::{SinkExt, StreamExt, stream};
use ringway::edge::{Ending, Failure, Popped, RejectReason, Sender, local};
use ringway::element::{Barrier, StreamElement};
use ringway_tests::block_on::block_on;
use ringway_tests::conformance::elements::{
    Numbers, ending, next, number, push, room_for, value_of, watermark,
};
use ringway_tests::within::{LONG, join_within, within};

use crate::polled::Task;

#[test]
fn a_stream_gives_every_element_and_then_nothing() {
    let (mut sender, receiver) = local::pair(room_for(4));
    push(&mut sender, number(1));
    push(&mut sender, watermark(1));
    sender.finish().unwrap();
    let elements: Vec<_> = block_on(receiver.into_stream().collect());
    assert_eq!(elements, [Ok(number(1)), Ok(watermark(1))]);
}

#[test]
fn every_ending_but_the_end_is_an_error_of_the_stream_once() {
    let ways: [(fn(Sender<Numbers>), Ending); 3] = [
        (Sender::cancel, Ending::Cancelled),
        (drop, Ending::Failed(Failure::peer_lost("edge"))),
        (
            |sender| sender.fail("why"),
            Ending::Failed(Failure::peer_failed("edge", "why")),
        ),
    ];
    for (go, expected) in ways {
        let (mut sender, receiver) = local::pair(room_for(4));
        push(&mut sender, number(1));
        go(sender);
        let elements: Vec<_> = block_on(receiver.into_stream().collect());
        assert_eq!(elements, [Ok(number(1)), Err(expected)]);
    }
}

#[test]
fn a_barrier_that_overtakes_comes_before_what_it_overtakes() {
    let (mut sender, receiver) = local::pair(room_for(4));
    push(&mut sender, number(1));
    sender.try_push_priority(Barrier::unaligned(7)).unwrap();
    sender.finish().unwrap();
    let elements: Vec<_> = block_on(receiver.into_stream().collect());
    let barrier = StreamElement::Barrier(Barrier::unaligned(7));
    assert_eq!(elements, [Ok(barrier), Ok(number(1))]);
}

#[test]
fn a_stream_goes_back_to_a_receiver_that_has_lost_nothing() {
    let (mut sender, receiver) = local::pair(room_for(4));
    let task = Task::new();
    push(&mut sender, number(1));
    let mut elements = receiver.into_stream();
    assert_eq!(block_on(elements.next()), Some(Ok(number(1))));
    assert!(task.poll(&mut elements.next()).is_pending());
    push(&mut sender, number(2));
    let mut receiver = elements.into_receiver();
    assert!(!task.is_held());
    assert_eq!(next(&mut receiver), number(2));
}

#[test]
fn a_sink_sends_every_element_and_the_end_when_it_is_closed() {
    let (sender, mut receiver) = local::pair(room_for(1));
    let sending = thread::spawn(move || {
        let mut elements = stream::iter((0..1_000).map(|value| Ok(number(value))));
        let mut sink = sender.into_sink();
        block_on(sink.send_all(&mut elements)).unwrap();
        block_on(sink.close()).unwrap();
    });
    for value in 0..1_000 {
        assert_eq!(next(&mut receiver), number(value));
    }
    assert_eq!(ending(&mut receiver), Ending::End);
    join_within(LONG, "the sink is closed", sending);
}

#[test]
fn a_sink_that_is_dropped_has_failed() {
    let (sender, mut receiver) = local::pair(room_for(4));
    let mut sink = sender.into_sink();
    block_on(sink.send(number(1))).unwrap();
    drop(sink);
    assert_eq!(next(&mut receiver), number(1));
    assert_eq!(
        ending(&mut receiver),
        Ending::Failed(Failure::peer_lost("edge"))
    );
}

#[test]
fn a_sink_keeps_what_the_edge_has_not_taken() {
    let (sender, receiver) = local::pair(room_for(1));
    let task = Task::new();
    let mut sink = sender.into_sink();
    block_on(sink.feed(number(1))).unwrap();
    block_on(sink.feed(number(2))).unwrap();
    assert!(task.poll(&mut sink.flush()).is_pending());
    receiver.close();
    assert_eq!(task.wakes(), 1);
    assert_eq!(block_on(sink.flush()), Err(RejectReason::Closed));
    assert_eq!(sink.take_element(), Some(number(2)));
    assert_eq!(block_on(sink.close()), Err(RejectReason::Closed));
}

#[test]
fn a_sink_comes_apart_without_loss() {
    let (sender, mut receiver) = local::pair(room_for(1));
    let task = Task::new();
    let mut sink = sender.into_sink();
    block_on(sink.feed(number(1))).unwrap();
    block_on(sink.feed(number(2))).unwrap();
    assert!(task.poll(&mut sink.flush()).is_pending());
    let (sender, element) = sink.into_parts();
    assert!(!task.is_held());
    assert_eq!(element, Some(number(2)));
    assert_eq!(next(&mut receiver), number(1));
    drop(sender);
}

#[test]
fn a_stream_forwards_into_a_sink() {
    let (sender, from_sender) = local::pair(room_for(2));
    let (to_receiver, mut receiver) = local::pair(room_for(2));
    let feeding = thread::spawn(move || block_on(crate::parts::send_all(sender, 1_000)));
    let forwarding = thread::spawn(move || {
        let elements = from_sender
            .into_stream()
            .map(|element| element.map_err(|_| RejectReason::Closed));
        block_on(elements.forward(to_receiver.into_sink()))
    });
    let values = within(LONG, "everything is forwarded", move || {
        let mut values = Vec::new();
        loop {
            match receiver.pop() {
                Popped::Element(element) if element.is_data() => values.push(value_of(element)),
                Popped::Element(_) => {}
                Popped::Empty => panic!("the waiting form has no lull"),
                Popped::Ended(ending) => return (values, ending),
            }
        }
    });
    assert_eq!(values, ((0..1_000).collect(), Ending::End));
    feeding.join().unwrap();
    forwarding.join().unwrap().unwrap();
}
