//! What is in flight is bounded, in elements and in bytes.

use ringway::batch::{Payload, Row, Rows};
use ringway::edge::{EdgeOptions, RejectReason};
use ringway::element::StreamElement;
use ringway::limits::CONTROL_ELEMENTS_MAX;

use super::elements::{Numbers, fill, next, number, push, rejected, room_for, tight, watermark};
use super::{EdgeSubject, subjects};
use crate::within::LONG;

/// What the kernel holds of a connection that was asked to hold little: twice what it was asked
/// for, at either end.
const KERNEL_BYTES: usize = 4 * subjects::KERNEL_BYTES;

/// Back-pressure is not for ever.
pub fn a_full_edge_takes_data_again_after_a_pop<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(2));
    let taken = fill(subject, &mut sender, 2, |value| number(value as i64));
    assert!(sender.len() >= 2);
    assert_eq!(rejected(&mut sender, number(-1)).0, RejectReason::Full);
    // On the way there may be room for all that is taken; not for more than that.
    for _ in 1..taken.len() {
        assert!(matches!(next(&mut receiver), StreamElement::Data(_)));
    }
    push(&mut sender, number(-1));
    assert_eq!(next(&mut receiver), taken[taken.len() - 1]);
    assert_eq!(next(&mut receiver), number(-1));
    assert!(sender.is_empty() && receiver.is_empty());
}

/// Also where it is no power of two, and after the positions have gone round. On an edge with
/// a way between its halves it is what the sender's half holds, beside what is on the way.
pub fn the_capacity_is_exact<S: EdgeSubject>(subject: &S) {
    // What takes a moment to be full is filled less often.
    let (capacities, rounds) = match subject.is_instant() {
        true => (&[1, 2, 3, 7, 255, 1_000][..], 3),
        false => (&[1, 7, 255][..], 2),
    };
    for &capacity in capacities {
        let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(capacity));
        for round in 0..rounds {
            let taken = fill(subject, &mut sender, capacity, |value| number(value as i64));
            assert_eq!(sender.len(), capacity, "{round}");
            let (reason, _) = rejected(&mut sender, number(-1));
            assert_eq!(reason, RejectReason::Full, "capacity {capacity}, {round}");
            for element in taken {
                assert_eq!(next(&mut receiver), element);
            }
        }
    }
}

/// However much room there is in elements. Where there is a way between the halves, each of them
/// holds so many bytes: the sender as they are in memory, the receiver as they are sent.
pub fn the_bytes_in_flight_are_bounded<S: EdgeSubject>(subject: &S) {
    let batch = Rows::from(vec![Row::at(1, 1_i64); 1_000]);
    let bytes_max = 3 * batch.bytes() + batch.bytes() / 2;
    let options = EdgeOptions::named("edge").bytes(bytes_max);
    let (mut sender, mut receiver) = subject.open(options);
    let batch = StreamElement::Data(batch);
    let rounds = if subject.is_instant() { 100 } else { 2 };
    for _ in 0..rounds {
        let taken = fill(subject, &mut sender, 3, |_| batch.clone()).len();
        if let Some(sent) = sender.remote_stats() {
            let each = (sent.wire_bytes / sent.frames) as usize;
            let most = 3 + (bytes_max + KERNEL_BYTES) / each;
            assert!(taken <= most, "{taken} where there is room for {most}");
        }
        let (reason, element) = rejected(&mut sender, batch.clone());
        assert_eq!((reason, &element), (RejectReason::Full, &batch));
        for _ in 0..taken {
            assert_eq!(next(&mut receiver), batch);
        }
    }
    push(&mut sender, watermark(1));
}

/// A batch that no room would ever suffice for would otherwise wait for ever.
pub fn a_batch_above_the_byte_bound_passes_alone<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(EdgeOptions::named("edge").bytes(100));
    let large: StreamElement<Numbers> = StreamElement::Data((0..1_000).map(Row::untimed).collect());
    push(&mut sender, number(1));
    if subject.is_instant() {
        assert_eq!(rejected(&mut sender, large.clone()).0, RejectReason::Full);
        assert_eq!(next(&mut receiver), number(1));
        push(&mut sender, large.clone());
        assert_eq!(rejected(&mut sender, number(2)).0, RejectReason::Full);
        assert_eq!(next(&mut receiver), large);
        push(&mut sender, number(2));
        return;
    }
    // Where a frame has a bound, such a batch can't pass: what it needs is said.
    let failed = (0..).find_map(|_| sender.push_timeout(large.clone(), LONG).err());
    let reason = failed.expect("it is refused").reason.to_string();
    assert!(
        reason.contains("cannot be sent") && reason.contains("100"),
        "{reason}"
    );
}

/// A batch of nothing takes a place all the same.
pub fn batches_without_bytes_are_bounded_as_elements<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) =
        subject.open::<Numbers>(room_for(3).bytes(tight(subject).bytes_max));
    let empty = || StreamElement::Data(Rows::new());
    let taken = fill(subject, &mut sender, 3, |_| empty());
    assert_eq!(rejected(&mut sender, empty()).0, RejectReason::Full);
    for element in taken {
        assert_eq!(next(&mut receiver), element);
    }
}

/// A barrier or watermark is not held up by the data of others.
pub fn control_elements_do_not_wait_for_room_of_data<S: EdgeSubject>(subject: &S) {
    let full_of_elements = room_for(1);
    let full_of_bytes = tight(subject);
    for options in [full_of_elements, full_of_bytes] {
        let (mut sender, mut receiver) = subject.open::<Numbers>(options);
        let taken = fill(subject, &mut sender, 1, |_| number(1));
        assert_eq!(rejected(&mut sender, number(2)).0, RejectReason::Full);
        for time in 0..CONTROL_ELEMENTS_MAX as i64 {
            sender.try_push(watermark(time)).unwrap();
        }
        for element in taken {
            assert_eq!(next(&mut receiver), element);
        }
        for time in 0..CONTROL_ELEMENTS_MAX as i64 {
            assert_eq!(next(&mut receiver), watermark(time));
        }
    }
}

/// Exempt from the bound on data, not from a bound.
pub fn control_elements_are_bounded_too<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(2));
    let taken = fill(subject, &mut sender, 2, |_| number(1));
    for time in 0..CONTROL_ELEMENTS_MAX as i64 {
        sender.try_push(watermark(time)).unwrap();
    }
    let (reason, element) = rejected(&mut sender, watermark(-1));
    assert_eq!((reason, element), (RejectReason::Full, watermark(-1)));
    assert_eq!(next(&mut receiver), number(1));
    if subject.is_instant() {
        push(&mut sender, watermark(-1));
        assert_eq!(
            rejected(&mut sender, number(3)).0,
            RejectReason::Full,
            "what waits beyond the capacity keeps data out"
        );
        return;
    }
    for element in taken.into_iter().skip(1) {
        assert_eq!(next(&mut receiver), element);
    }
    push(&mut sender, watermark(-1));
}
