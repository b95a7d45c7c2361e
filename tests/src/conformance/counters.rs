//! What an edge tells about itself.

use std::time::Duration;

use ringway::batch::{Payload, Row, Rows};
use ringway::clock::Monotonic;
use ringway::edge::{EdgeOptions, Ending, RejectReason};
use ringway::element::StreamElement;
use ringway::limits::{EDGE_BYTES_MAX, EDGE_CAPACITY_ELEMENTS};

use super::EdgeSubject;
use super::elements::{
    Numbers, barrier, ending, fill, next, number, push, rejected, room_for, watermark,
};
use crate::within::{LONG, until};

/// The largest depth ever.
pub fn the_high_water_mark_never_falls<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    let mut highest = 0;
    for value in 0..5 {
        push(&mut sender, number(value));
        let high_water = sender.metrics().high_water;
        // What has left for the other half is not queued here any more.
        assert!(highest <= high_water && high_water <= value as usize + 1);
        highest = high_water;
    }
    if subject.is_instant() {
        assert_eq!(highest, 5);
    }
    for value in 0..5 {
        assert_eq!(next(&mut receiver), number(value));
    }
    assert_eq!(sender.metrics().high_water, highest);
    for value in 0..100 {
        // What has arrived may still be queued at the other half for a moment.
        until(LONG, "nothing is queued", || sender.is_empty());
        push(&mut sender, number(value));
        assert_eq!(next(&mut receiver), number(value));
    }
    assert_eq!(sender.metrics().high_water, highest);
}

/// On both sides.
pub fn depth_follows_pushes_and_pops<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    assert_eq!((sender.len(), receiver.len()), (0, 0));
    push(&mut sender, number(1));
    push(&mut sender, watermark(1));
    if !subject.is_instant() {
        // It goes from one half to the other.
        until(LONG, "it is there", || {
            (sender.len(), receiver.len()) == (0, 2)
        });
        assert_eq!(next(&mut receiver), number(1));
        assert_eq!((sender.metrics().depth, receiver.len()), (0, 1));
        return;
    }
    assert_eq!((sender.len(), receiver.len()), (2, 2));
    assert_eq!(sender.metrics().depth, 2);
    assert_eq!(next(&mut receiver), number(1));
    assert_eq!((sender.len(), receiver.len()), (1, 1));
    assert_eq!(sender.metrics().depth, 1);
}

/// Elements of every kind, rows and bytes of data.
pub fn what_was_accepted_is_counted_and_what_was_rejected_is_not<S: EdgeSubject>(subject: &S) {
    let (mut sender, _receiver) = subject.open::<Numbers>(room_for(3));
    let batch: Numbers = (0..10).map(Row::untimed).collect();
    let bytes = batch.bytes() as u64;
    assert!(bytes > 0);
    push(&mut sender, StreamElement::Data(batch.clone()));
    push(&mut sender, barrier(1));
    push(&mut sender, StreamElement::Data(Rows::new()));
    let before = sender.metrics();
    assert_eq!((before.elements, before.rows, before.bytes), (3, 10, bytes));
    assert_eq!((before.blocked, before.blocked_times), (Duration::ZERO, 0));
    let data = || StreamElement::Data(batch.clone());
    let more = match subject.is_instant() {
        true => 0,
        false => fill(subject, &mut sender, 1, |_| data()).len() as u64,
    };
    let (reason, _) = rejected(&mut sender, data());
    assert_eq!(reason, RejectReason::Full);
    let metrics = sender.metrics();
    assert_eq!(
        (metrics.elements, metrics.rows, metrics.bytes),
        (3 + more, 10 + 10 * more, bytes + bytes * more)
    );
}

/// Of the waiting form, once a wait.
pub fn blocked_time_is_counted<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(1));
    let taken = fill(subject, &mut sender, 1, |_| number(1));
    let before = sender.metrics();
    let time = Duration::from_millis(20);
    for times in 1..3 {
        let rejected = sender.push_timeout(number(2), time).unwrap_err();
        assert_eq!(rejected.reason, RejectReason::Full);
        let metrics = sender.metrics();
        assert_eq!(metrics.blocked_times - before.blocked_times, times);
        assert!(
            metrics.blocked - before.blocked >= time * times as u32 * 9 / 10,
            "{metrics:?}"
        );
    }
    let blocked = sender.metrics().blocked;
    for element in taken {
        assert_eq!(next(&mut receiver), element);
    }
    if !subject.is_instant() {
        until(LONG, "there is room", || sender.is_empty());
    }
    sender.push_timeout(number(2), time).unwrap();
    assert_eq!(sender.metrics().blocked, blocked, "that one did not wait");
}

/// As they were chosen.
pub fn both_ends_know_name_capacity_and_transport<S: EdgeSubject>(subject: &S) {
    let options = EdgeOptions::named("parse[0] -> window[1]").capacity(17);
    let (sender, receiver) = subject.open::<Numbers>(options);
    assert_eq!(sender.name(), "parse[0] -> window[1]");
    assert_eq!(receiver.name(), sender.name());
    assert_eq!((sender.capacity(), receiver.capacity()), (17, 17));
    assert_eq!(sender.transport(), receiver.transport());
    let defaults = EdgeOptions::named("edge");
    assert_eq!(defaults.capacity_elements, EDGE_CAPACITY_ELEMENTS);
    assert_eq!(defaults.bytes_max, EDGE_BYTES_MAX);
}

/// Taken elements of every kind, and it stays when the stream has ended.
pub fn positions_count_elements_on_both_sides<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    assert_eq!(receiver.position(), 0);
    for element in [number(1), watermark(1), barrier(1)] {
        push(&mut sender, element);
    }
    assert_eq!(receiver.position(), 0);
    for taken in 1..=3 {
        let _ = next(&mut receiver);
        assert_eq!(receiver.position(), taken);
    }
    sender.finish().unwrap();
    assert_eq!(ending(&mut receiver), Ending::End);
    assert_eq!(receiver.position(), 3);
}

/// Latency is measured from it. Between processes, whose clocks differ, it begins anew where
/// an element arrives.
pub fn the_origin_travels_with_its_element<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(8));
    let at = |nanos| Monotonic(Duration::from_nanos(nanos));
    if !subject.is_instant() {
        let mut last = at(0);
        for value in 0..3 {
            push(&mut sender, number(value));
            let _ = next(&mut receiver);
            assert!(receiver.origin() > last);
            last = receiver.origin();
        }
        return;
    }
    // Later than clocks of one host are apart.
    let begin = 1 << 60;
    sender.set_origin(at(begin + 5));
    push(&mut sender, number(1));
    push(&mut sender, watermark(1));
    sender.set_origin(at(begin + 9));
    push(&mut sender, number(2));
    let origins = [(); 3].map(|()| {
        let _ = next(&mut receiver);
        receiver.origin()
    });
    let first = match subject.has_one_clock() {
        true => at(begin + 5),
        false => origins[0],
    };
    assert_eq!(
        origins,
        [first, first, first.after(Duration::from_nanos(4))]
    );
}
