//! A barrier of an unaligned checkpoint overtakes, and the receiver knows what it overtook.

use ringway::edge::{Ending, Failure, Popped, Receiver, RejectReason};
use ringway::element::{Barrier, StreamElement};

use super::EdgeSubject;
use super::elements::{
    Numbers, ReceiverGoes, barrier, ending, expected, fill, next, number, push, rejected, room_for,
    sees_the_end, told, watermark,
};
use crate::within::{LONG, until};

const FIRST: Barrier = Barrier::unaligned(7);
const SECOND: Barrier = Barrier::unaligned(8);

/// So many elements are queued at the receiver: at once, or soon.
#[track_caller]
fn arrived<S: EdgeSubject>(subject: &S, receiver: &Receiver<Numbers>, elements: usize) {
    if !subject.is_instant() {
        until(LONG, "elements arrive", || receiver.len() == elements);
    }
}

/// A barrier has overtaken: at once, or soon.
#[track_caller]
fn overtakes<S: EdgeSubject>(subject: &S, receiver: &Receiver<Numbers>) {
    if !subject.is_instant() {
        until(LONG, "a barrier overtakes", || receiver.has_priority());
    }
    assert!(receiver.has_priority());
}

fn peeked(receiver: &Receiver<Numbers>, position: u64) -> Vec<StreamElement<Numbers>> {
    let mut elements = Vec::new();
    receiver.peek_until(position, |element| elements.push(element.clone()));
    elements
}

/// Elements of every kind that were pushed before it, none that was pushed after it.
pub fn a_priority_barrier_overtakes_and_tells_what_it_overtook<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    let before = [number(1), watermark(1), barrier(1), number(2)];
    for element in before.clone() {
        push(&mut sender, element);
    }
    arrived(subject, &receiver, 4);
    sender.try_push_priority(FIRST).unwrap();
    push(&mut sender, number(3));
    overtakes(subject, &receiver);
    let (overtaking, position) = receiver.poll_priority().unwrap();
    assert_eq!((overtaking, position), (FIRST, 4));
    assert_eq!(peeked(&receiver, position), before);
    assert_eq!(peeked(&receiver, position), before, "peeking takes nothing");
    assert!(!receiver.has_priority());
    assert_eq!(receiver.poll_priority(), None, "it is taken once");
}

/// The running job processes every element that was overtaken.
pub fn the_order_goes_on_after_a_priority_barrier<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    push(&mut sender, number(1));
    arrived(subject, &receiver, 1);
    sender.try_push_priority(FIRST).unwrap();
    push(&mut sender, number(2));
    push(&mut sender, barrier(9));
    overtakes(subject, &receiver);
    let (_, position) = receiver.poll_priority().unwrap();
    assert_eq!(peeked(&receiver, position), [number(1)]);
    for element in [number(1), number(2), barrier(9)] {
        assert_eq!(next(&mut receiver), element);
    }
    assert_eq!(receiver.try_pop(), Popped::Empty);
}

/// Its position is that of the next element.
pub fn a_priority_barrier_on_an_empty_edge_overtakes_nothing<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    for value in 0..3 {
        push(&mut sender, number(value));
        assert_eq!(next(&mut receiver), number(value));
    }
    sender.try_push_priority(FIRST).unwrap();
    push(&mut sender, number(3));
    overtakes(subject, &receiver);
    assert_eq!(receiver.poll_priority(), Some((FIRST, 3)));
    assert_eq!(receiver.position(), 3);
    assert_eq!(peeked(&receiver, 3), []);
}

/// It was processed before the barrier was seen, so it is in the snapshot.
pub fn what_was_taken_meanwhile_is_not_peeked<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    for value in 0..4 {
        push(&mut sender, number(value));
    }
    arrived(subject, &receiver, 4);
    sender.try_push_priority(FIRST).unwrap();
    overtakes(subject, &receiver);
    assert_eq!(receiver.try_pop(), Popped::Element(number(0)));
    assert_eq!(receiver.try_pop(), Popped::Element(number(1)));
    let (_, position) = receiver.poll_priority().unwrap();
    assert_eq!((receiver.position(), position), (2, 4));
    assert_eq!(peeked(&receiver, position), [number(2), number(3)]);
}

/// The second comes back and can be pushed again. Where there is a way between the halves, it
/// may wait there instead, behind the first.
pub fn one_priority_barrier_is_under_way_at_a_time<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    sender.try_push_priority(FIRST).unwrap();
    push(&mut sender, number(1));
    if !subject.is_instant() {
        overtakes(subject, &receiver);
        sender.try_push_priority(SECOND).unwrap();
        arrived(subject, &receiver, 1);
        assert_eq!(receiver.poll_priority(), Some((FIRST, 0)));
        overtakes(subject, &receiver);
        assert_eq!(receiver.poll_priority(), Some((SECOND, 1)));
        return;
    }
    let rejected = sender.try_push_priority(SECOND).unwrap_err();
    assert_eq!(rejected.reason, RejectReason::Full);
    assert_eq!(rejected.element, StreamElement::Barrier(SECOND));
    assert_eq!(receiver.poll_priority(), Some((FIRST, 0)));
    sender.try_push_priority(SECOND).unwrap();
    assert_eq!(receiver.poll_priority(), Some((SECOND, 1)));
}

/// An edge that is full is where it matters most. Where there is a way between the halves, it
/// comes after what is on the way, and ahead of what waits at its end.
pub fn a_priority_barrier_needs_no_room<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(1));
    let taken = fill(subject, &mut sender, 1, |_| number(1)).len();
    while sender.try_push(watermark(1)).is_ok() {}
    let depth = sender.len();
    sender.try_push_priority(FIRST).unwrap();
    assert_eq!(sender.len(), depth);
    if !subject.is_instant() {
        let mut popped = 0;
        while !receiver.has_priority() {
            if let Popped::Element(_) = receiver.pop_timeout(LONG) {
                popped += 1;
            }
        }
        let (barrier, position) = receiver.poll_priority().unwrap();
        assert_eq!((barrier, receiver.position()), (FIRST, popped));
        assert!(position as usize <= taken + depth);
        return;
    }
    assert_eq!(receiver.poll_priority(), Some((FIRST, depth as u64)));
    assert_eq!(peeked(&receiver, u64::MAX).len(), depth);
    assert_eq!(rejected(&mut sender, number(2)).0, RejectReason::Full);
}

/// The end waits for it, so that it is not lost.
pub fn a_priority_barrier_outlives_the_end_of_the_stream<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    push(&mut sender, number(1));
    arrived(subject, &receiver, 1);
    sender.try_push_priority(FIRST).unwrap();
    sender.finish().unwrap();
    overtakes(subject, &receiver);
    assert_eq!(receiver.try_pop(), Popped::Element(number(1)));
    assert_eq!(receiver.try_pop(), Popped::Empty);
    assert_eq!(
        receiver.pop(),
        Popped::Empty,
        "the waiting form does not wait"
    );
    assert_eq!(receiver.poll_priority(), Some((FIRST, 1)));
    assert_eq!(ending(&mut receiver), Ending::End);
}

/// With the reason.
pub fn a_priority_barrier_for_a_receiver_that_is_gone_comes_back<S: EdgeSubject>(subject: &S) {
    let lost = RejectReason::Failed(Failure::peer_lost("edge"));
    let ways: [(ReceiverGoes, RejectReason); 2] =
        [(Receiver::close, RejectReason::Closed), (drop, lost)];
    for (go, reason) in ways {
        let (mut sender, receiver) = subject.open::<Numbers>(room_for(8));
        go(receiver);
        sees_the_end(subject, &mut sender);
        let rejected = sender.try_push_priority(FIRST).unwrap_err();
        assert_eq!(told(rejected.reason), expected(subject, reason));
        assert_eq!(rejected.element, StreamElement::Barrier(FIRST));
    }
}
