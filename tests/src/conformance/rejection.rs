//! What the edge did not take comes back, with the reason.

use std::sync::Arc;

use ringway::edge::{Failure, Receiver, RejectReason};
use ringway::element::StreamElement;

use super::EdgeSubject;
use super::elements::{
    Counted, Numbers, barrier, counted, expected, fill, nobody_else_has, number, push, rejected,
    room_for, sees_the_end, stop, told, watermark,
};

/// The same one, not a copy.
pub fn a_rejected_element_comes_back<S: EdgeSubject>(subject: &S) {
    let own = Arc::new(());
    let is_own = |element: &StreamElement<Counted>| match element {
        StreamElement::Data(rows) => rows.iter().all(|row| Arc::ptr_eq(&row.value.0, &own)),
        _ => false,
    };
    let (mut sender, receiver) = subject.open::<Counted>(room_for(1));
    fill(subject, &mut sender, 1, |_| counted(&Arc::new(())));
    let (reason, element) = rejected(&mut sender, counted(&own));
    assert_eq!(reason, RejectReason::Full);
    assert!(is_own(&element));
    receiver.close();
    sees_the_end(subject, &mut sender);
    let (reason, element) = rejected(&mut sender, element);
    assert_eq!(reason, expected(subject, RejectReason::Closed));
    assert!(is_own(&element));
    drop(element);
    assert_eq!(Arc::strong_count(&own), 1);
}

/// Every kind of element is answered so.
pub fn a_receiver_that_closes_says_so_and_it_is_no_failure<S: EdgeSubject>(subject: &S) {
    every_push_says(subject, Receiver::close, RejectReason::Closed);
}

/// It did not close the edge, so what was accepted may be lost.
pub fn a_receiver_that_is_dropped_is_a_lost_peer_of_the_named_edge<S: EdgeSubject>(subject: &S) {
    let lost = RejectReason::Failed(Failure::peer_lost("edge"));
    assert!(lost.to_string().contains("edge edge"), "{lost}");
    every_push_says(subject, drop, lost);
}

/// Its reason travels back.
pub fn a_receiver_that_fails_tells_why<S: EdgeSubject>(subject: &S) {
    let reason = RejectReason::Failed(Failure::peer_failed("edge", "disk full"));
    assert!(reason.to_string().contains("disk full"), "{reason}");
    every_push_says(subject, |receiver| receiver.fail("disk full"), reason);
}

fn every_push_says<S: EdgeSubject>(
    subject: &S,
    go: impl FnOnce(Receiver<Numbers>),
    why: RejectReason,
) {
    let (mut sender, receiver) = subject.open::<Numbers>(room_for(2));
    push(&mut sender, number(1));
    assert!(!sender.is_closed());
    go(receiver);
    sees_the_end(subject, &mut sender);
    let why = expected(subject, why);
    for element in [number(2), watermark(1), barrier(1), stop()] {
        let answer = rejected(&mut sender, element.clone());
        assert_eq!(answer, (why.clone(), element.clone()));
        let blocking = sender.push(element.clone()).unwrap_err();
        assert_eq!(
            (told(blocking.reason), blocking.element),
            (why.clone(), element)
        );
    }
}

/// A sender that keeps trying to get rid of one element sees the reason change.
pub fn closed_is_told_apart_from_full_on_the_same_element<S: EdgeSubject>(subject: &S) {
    let (mut sender, receiver) = subject.open::<Numbers>(room_for(1));
    fill(subject, &mut sender, 1, |_| number(1));
    let (reason, element) = rejected(&mut sender, number(2));
    assert_eq!(reason, RejectReason::Full);
    receiver.close();
    sees_the_end(subject, &mut sender);
    let (reason, element) = rejected(&mut sender, element);
    let closed = expected(subject, RejectReason::Closed);
    assert_eq!((reason, element), (closed, number(2)));
}

/// What nobody will take is dropped, and not counted as queued.
pub fn nothing_stays_queued_when_the_receiver_is_gone<S: EdgeSubject>(subject: &S) {
    for go in [drop, Receiver::close] {
        let alive = Arc::new(());
        let (mut sender, receiver) = subject.open::<Counted>(room_for(8));
        for _ in 0..3 {
            push(&mut sender, counted(&alive));
        }
        go(receiver);
        sees_the_end(subject, &mut sender);
        nobody_else_has(subject, &alive);
        assert_eq!(sender.len(), 0);
    }
}

/// A sender whose last call is `finish` learns it there.
pub fn finish_tells_that_the_receiver_went_before_it<S: EdgeSubject>(subject: &S) {
    let finish_after = |go: fn(Receiver<Numbers>)| {
        let (mut sender, receiver) = subject.open::<Numbers>(room_for(2));
        push(&mut sender, number(1));
        go(receiver);
        sees_the_end(subject, &mut sender);
        told(sender.finish().expect_err("it went before"))
    };
    let closed = expected(subject, RejectReason::Closed);
    assert_eq!(finish_after(Receiver::close), closed);
    let lost = RejectReason::Failed(Failure::peer_lost("edge"));
    assert_eq!(finish_after(drop), lost);
    let failed = RejectReason::Failed(Failure::peer_failed("edge", "why"));
    let failed = expected(subject, failed);
    assert_eq!(finish_after(|receiver| receiver.fail("why")), failed);
}
