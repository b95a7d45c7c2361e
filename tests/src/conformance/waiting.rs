//! The blocking and timed forms, for a thread that has nothing else to do.

use std::time::{Duration, Instant};

use ringway::edge::{Ending, Failure, Popped, Receiver, RejectReason, Sender};
use ringway::element::Barrier;
use ringway_shm::Bell;

use super::EdgeSubject;
use super::elements::{
    Numbers, ReceiverGoes, SenderGoes, expected, expected_ending, fill, next, number, push,
    room_for, told, told_ending, watermark,
};
use crate::within::{LONG, join_within, until};

/// One edge with its bells, so that a test can wait until a half sleeps.
struct Waited {
    sender: Sender<Numbers>,
    receiver: Receiver<Numbers>,
    sender_bell: Bell,
    receiver_bell: Bell,
}

impl Waited {
    fn open<S: EdgeSubject>(subject: &S, capacity: usize) -> Self {
        let (sender_bell, receiver_bell) = (Bell::thread(), Bell::thread());
        let (sender, receiver) = subject.open_with(
            room_for(capacity),
            sender_bell.clone(),
            receiver_bell.clone(),
        );
        Self {
            sender,
            receiver,
            sender_bell,
            receiver_bell,
        }
    }
}

fn asleep(bell: &Bell) {
    until(LONG, "the other half goes to sleep", || bell.is_armed());
}

/// In order: the one that waited comes after the one that was there.
pub fn a_blocked_push_goes_on_when_there_is_room<S: EdgeSubject>(subject: &S) {
    let wait = subject.waiting();
    let mut edge = Waited::open(subject, 1);
    let taken = fill(subject, &mut edge.sender, 1, |_| number(1));
    let mut sender = edge.sender;
    let pushing = std::thread::spawn(move || {
        (wait.push)(&mut sender, number(2)).unwrap();
        sender
    });
    asleep(&edge.sender_bell);
    for element in taken {
        assert_eq!(next(&mut edge.receiver), element);
    }
    assert_eq!(next(&mut edge.receiver), number(2));
    join_within(LONG, "the push returns", pushing);
}

/// With the element and the reason, in each way that a receiver goes.
pub fn a_blocked_push_learns_that_the_receiver_went<S: EdgeSubject>(subject: &S) {
    let ways: [(ReceiverGoes, RejectReason); 3] = [
        (Receiver::close, RejectReason::Closed),
        (drop, RejectReason::Failed(Failure::peer_lost("edge"))),
        (
            |receiver| receiver.fail("why"),
            RejectReason::Failed(Failure::peer_failed("edge", "why")),
        ),
    ];
    for (go, why) in ways {
        let wait = subject.waiting();
        let mut edge = Waited::open(subject, 1);
        fill(subject, &mut edge.sender, 1, |_| number(1));
        let mut sender = edge.sender;
        let is_instant = subject.is_instant();
        let pushing = std::thread::spawn(move || {
            loop {
                match (wait.push)(&mut sender, number(2)) {
                    Err(rejected) => return rejected,
                    // What is on the way may make room before the news is here.
                    Ok(()) => assert!(!is_instant, "nobody takes it"),
                }
            }
        });
        asleep(&edge.sender_bell);
        go(edge.receiver);
        let rejected = join_within(LONG, "the push returns", pushing);
        let reason = told(rejected.reason);
        assert_eq!(reason, expected(subject, why));
        assert_eq!(rejected.element, number(2));
    }
}

/// Of whatever kind it is.
pub fn a_blocked_pop_goes_on_when_there_is_an_element<S: EdgeSubject>(subject: &S) {
    for element in [number(1), watermark(1)] {
        let mut edge = Waited::open(subject, 1);
        let wait = subject.waiting();
        let mut receiver = edge.receiver;
        let popping = std::thread::spawn(move || (wait.pop)(&mut receiver));
        asleep(&edge.receiver_bell);
        push(&mut edge.sender, element.clone());
        let popped = join_within(LONG, "the pop returns", popping);
        assert_eq!(popped, Popped::Element(element));
    }
}

/// In each way that a stream stops.
pub fn a_blocked_pop_learns_how_the_stream_ended<S: EdgeSubject>(subject: &S) {
    let ways: [(SenderGoes, Ending); 4] = [
        (|sender| sender.finish().unwrap(), Ending::End),
        (Sender::cancel, Ending::Cancelled),
        (drop, Ending::Failed(Failure::peer_lost("edge"))),
        (
            |sender| sender.fail("why"),
            Ending::Failed(Failure::peer_failed("edge", "why")),
        ),
    ];
    for (go, ending) in ways {
        let edge = Waited::open(subject, 1);
        let wait = subject.waiting();
        let mut receiver = edge.receiver;
        let popping = std::thread::spawn(move || (wait.pop)(&mut receiver));
        asleep(&edge.receiver_bell);
        go(edge.sender);
        let popped = join_within(LONG, "the pop returns", popping);
        let Popped::Ended(popped) = popped else {
            panic!("the stream is over, not {popped:?}");
        };
        assert_eq!(told_ending(popped), expected_ending(subject, ending));
    }
}

/// A barrier that overtakes is not held up by a receiver that waits for what it overtakes.
pub fn a_blocked_pop_returns_for_a_priority_barrier<S: EdgeSubject>(subject: &S) {
    let mut edge = Waited::open(subject, 1);
    let wait = subject.waiting();
    let mut receiver = edge.receiver;
    let popping = std::thread::spawn(move || ((wait.pop)(&mut receiver), receiver));
    asleep(&edge.receiver_bell);
    edge.sender
        .try_push_priority(Barrier::unaligned(1))
        .unwrap();
    let (popped, mut receiver) = join_within(LONG, "the pop returns", popping);
    assert_eq!(popped, Popped::Empty);
    assert_eq!(receiver.poll_priority(), Some((Barrier::unaligned(1), 0)));
}

/// Not before the time is over.
pub fn a_timed_push_gives_the_element_back<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(1));
    let time = Duration::from_millis(20);
    let taken = fill(subject, &mut sender, 1, |_| number(1));
    let start = Instant::now();
    let rejected = sender.push_timeout(number(2), time).unwrap_err();
    assert!(start.elapsed() >= time);
    assert_eq!(
        (rejected.reason, rejected.element),
        (RejectReason::Full, number(2))
    );
    for element in taken {
        assert_eq!(next(&mut receiver), element);
    }
    sender.push_timeout(number(2), LONG).unwrap();
}

/// Not before the time is over, and nothing is lost by it.
pub fn a_timed_pop_returns_empty<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(1));
    let time = Duration::from_millis(20);
    let start = Instant::now();
    assert_eq!(receiver.pop_timeout(time), Popped::Empty);
    assert!(start.elapsed() >= time);
    push(&mut sender, number(1));
    assert_eq!(receiver.pop_timeout(LONG), Popped::Element(number(1)));
}

/// It is the `try_` form.
pub fn a_timeout_of_zero_tries_once<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(1));
    let none = Duration::ZERO;
    assert_eq!(receiver.pop_timeout(none), Popped::Empty);
    fill(subject, &mut sender, 1, |_| number(1));
    let rejected = sender.push_timeout(number(2), none).unwrap_err();
    assert_eq!(rejected.reason, RejectReason::Full);
    assert_eq!(receiver.pop_timeout(none), Popped::Element(number(1)));
}
