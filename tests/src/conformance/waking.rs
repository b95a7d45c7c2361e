//! Whoever parks on its bell is woken, and nobody else costs a system call.

use ringway::edge::{EdgeOptions, Popped, Receiver, RejectReason, Sender};
use ringway::element::Barrier;
use ringway_shm::Bell;

use super::EdgeSubject;
use super::elements::{
    Numbers, SenderGoes, fill, next, number, push, rejected, room_for, sees_the_end, tight,
    watermark,
};
use crate::within::LONG;

struct Rung {
    sender: Sender<Numbers>,
    receiver: Receiver<Numbers>,
    sender_bell: Bell,
    receiver_bell: Bell,
}

fn open<S: EdgeSubject>(subject: &S, options: EdgeOptions) -> Rung {
    let (sender_bell, receiver_bell) = (Bell::thread(), Bell::thread());
    let (sender, receiver) = subject.open_with(options, sender_bell.clone(), receiver_bell.clone());
    Rung {
        sender,
        receiver,
        sender_bell,
        receiver_bell,
    }
}

/// The owner announced sleep, looked once more and found nothing.
pub fn a_parked_receiver_is_woken_by_a_push<S: EdgeSubject>(subject: &S) {
    let mut edge = open(subject, room_for(1));
    edge.receiver_bell.arm();
    assert_eq!(edge.receiver.try_pop(), Popped::Empty);
    push(&mut edge.sender, number(1));
    assert!(edge.receiver_bell.park(Some(LONG)));
    assert_eq!(next(&mut edge.receiver), number(1));
}

/// Once for all that was pushed.
pub fn a_quiet_push_wakes_at_the_flush<S: EdgeSubject>(subject: &S) {
    let mut edge = open(subject, room_for(2));
    edge.receiver_bell.arm();
    edge.sender.try_push_quiet(number(1)).unwrap();
    edge.sender.try_push_quiet(number(2)).unwrap();
    edge.sender.flush();
    assert!(edge.receiver_bell.park(Some(LONG)));
    assert_eq!(edge.receiver_bell.rings_total(), 1);
    assert_eq!(next(&mut edge.receiver), number(1));
    assert_eq!(next(&mut edge.receiver), number(2));
}

/// Though nothing is queued.
pub fn a_parked_receiver_is_woken_by_a_priority_barrier<S: EdgeSubject>(subject: &S) {
    let mut edge = open(subject, room_for(1));
    edge.receiver_bell.arm();
    edge.sender
        .try_push_priority(Barrier::unaligned(1))
        .unwrap();
    assert!(edge.receiver_bell.park(Some(LONG)));
    assert!(edge.receiver.has_priority());
}

/// And finds it by then.
pub fn a_parked_receiver_is_woken_by_any_ending<S: EdgeSubject>(subject: &S) {
    let ways: [SenderGoes; 4] = [
        |sender| sender.finish().unwrap(),
        Sender::cancel,
        |sender| sender.fail("why"),
        drop,
    ];
    for go in ways {
        let mut edge = open(subject, room_for(1));
        edge.receiver_bell.arm();
        assert_eq!(edge.receiver.try_pop(), Popped::Empty);
        go(edge.sender);
        assert!(edge.receiver_bell.park(Some(LONG)));
        assert!(matches!(edge.receiver.try_pop(), Popped::Ended(_)));
    }
}

/// There is room by then, also where a control element made it.
pub fn a_parked_sender_is_woken_by_a_pop<S: EdgeSubject>(subject: &S) {
    for first in [number(1), watermark(1)] {
        let mut edge = open(subject, room_for(1));
        let taken = match subject.is_instant() {
            true => {
                push(&mut edge.sender, first.clone());
                vec![first]
            }
            false => fill(subject, &mut edge.sender, 1, |_| number(1)),
        };
        edge.sender_bell.arm();
        assert_eq!(rejected(&mut edge.sender, number(2)).0, RejectReason::Full);
        for element in taken {
            assert_eq!(next(&mut edge.receiver), element);
        }
        assert!(edge.sender_bell.park(Some(LONG)));
        push(&mut edge.sender, number(2));
    }
}

/// There is room in bytes by then.
pub fn a_parked_sender_is_woken_when_bytes_are_given_back<S: EdgeSubject>(subject: &S) {
    let mut edge = open(subject, tight(subject));
    let taken = fill(subject, &mut edge.sender, 1, |_| number(1));
    edge.sender_bell.arm();
    assert_eq!(rejected(&mut edge.sender, number(2)).0, RejectReason::Full);
    for element in taken {
        assert_eq!(next(&mut edge.receiver), element);
    }
    assert!(edge.sender_bell.park(Some(LONG)));
    push(&mut edge.sender, number(2));
}

/// In order or not.
pub fn a_parked_sender_is_woken_when_the_receiver_goes<S: EdgeSubject>(subject: &S) {
    for go in [Receiver::close, drop] {
        let mut edge = open(subject, room_for(1));
        fill(subject, &mut edge.sender, 1, |_| number(1));
        edge.sender_bell.arm();
        assert_eq!(rejected(&mut edge.sender, number(2)).0, RejectReason::Full);
        go(edge.receiver);
        assert!(edge.sender_bell.park(Some(LONG)));
        sees_the_end(subject, &mut edge.sender);
        assert_ne!(rejected(&mut edge.sender, number(2)).0, RejectReason::Full);
    }
}

/// Pops until there is something, without sleep.
fn spin(receiver: &mut Receiver<Numbers>) -> Popped<Numbers> {
    loop {
        match receiver.try_pop() {
            Popped::Empty => std::thread::yield_now(),
            popped => return popped,
        }
    }
}

/// A half that spins costs the other nothing.
pub fn a_receiver_that_is_awake_is_not_rung<S: EdgeSubject>(subject: &S) {
    let mut edge = open(subject, room_for(4));
    let accepting = edge.receiver_bell.rings_total();
    for value in 0..1_000 {
        push(&mut edge.sender, number(value));
        let popped = match subject.is_instant() {
            true => edge.receiver.try_pop(),
            false => spin(&mut edge.receiver),
        };
        assert_eq!(popped, Popped::Element(number(value)));
    }
    assert_eq!(edge.receiver_bell.rings_total(), accepting);
    assert_eq!(edge.sender_bell.rings_total(), 0);
}
