//! Sends: gathered, one at a time, whole.

use std::collections::VecDeque;

use bytes::Bytes;
use ringway_netio::driver::{Driver, SEND_BYTES_MAX, SEND_SEGMENTS_MAX};

use crate::kit::{Kit, kind_of};
use crate::pattern;
use crate::worlds::World;

crate::promises![
    a_send_gathers_segments_up_to_its_limits,
    one_send_is_in_flight_until_its_completion_was_polled,
    a_send_that_the_kernel_takes_in_pieces_completes_once,
    an_empty_queue_and_empty_segments_begin_no_send,
    a_sent_segment_is_let_go,
    a_connection_that_does_not_read_holds_the_peer_back_and_loses_nothing,
    both_directions_are_used_at_once,
    after_the_end_of_the_direction_nothing_is_sent,
];

fn a_send_gathers_segments_up_to_its_limits<W: World>() {
    let mut kit = Kit::<W>::new(1);
    assert_eq!(kind_of(&kit), W::KIND);
    let (near, far) = kit.connection(0, 0);
    kit.expect(far, 1, 0);
    let mut queue = pattern::segments(1, &[3; SEND_SEGMENTS_MAX + 1]);
    assert_eq!(kit.send(near, &mut queue), 3 * SEND_SEGMENTS_MAX);
    assert_eq!(queue.len(), 1);
    kit.until("the first send is done", |kit| kit.record(near).sends == 1);
    assert_eq!(kit.send(near, &mut queue), 3);
    let bytes = 3 * (SEND_SEGMENTS_MAX + 1);
    kit.until("all has come", |kit| kit.record(far).received == bytes);

    kit.until("the second send is done", |kit| kit.record(near).sends == 2);
    kit.record(far).expected = Some((2, 0));
    kit.record(far).received = 0;
    let half = SEND_BYTES_MAX / 2;
    let mut queue = pattern::segments(2, &[half + 1, half, 2 * SEND_BYTES_MAX, 1]);
    let mut takes = Vec::new();
    kit.until("all is sent", |kit| {
        match kit.send(near, &mut queue) {
            0 => {}
            bytes => takes.push(bytes),
        }
        queue.is_empty()
    });
    assert_eq!(takes, [half + 1, half, 2 * SEND_BYTES_MAX, 1]);
    let bytes = takes.iter().sum::<usize>();
    kit.until("all has come", |kit| kit.record(far).received == bytes);
}

fn one_send_is_in_flight_until_its_completion_was_polled<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 1, 0);
    let mut queue = pattern::segments(1, &[SEND_BYTES_MAX, 10]);
    assert_eq!(kit.send(near, &mut queue), SEND_BYTES_MAX);
    assert_eq!(kit.send(near, &mut queue), 0, "one at a time");
    assert_eq!(queue.len(), 1, "what is not sent stays in the queue");
    kit.until("it is sent", |kit| kit.record(near).sends == 1);
    assert_eq!(kit.send(near, &mut queue), 10);
    kit.until("all has come", |kit| {
        kit.record(far).received == SEND_BYTES_MAX + 10
    });
    kit.until("both are sent", |kit| kit.record(near).sends == 2);
    assert_eq!(kit.record(near).sent, SEND_BYTES_MAX + 10);
}

fn a_send_that_the_kernel_takes_in_pieces_completes_once<W: World>() {
    const BYTES: usize = 24 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    let mut queue = pattern::segments(3, &[BYTES]);
    assert_eq!(kit.send(near, &mut queue), BYTES);
    kit.linger();
    assert_eq!(kit.record(near).sends, 0, "nobody has read it");
    kit.expect(far, 3, 0);
    kit.until("all has come", |kit| kit.record(far).received == BYTES);
    kit.until("it is sent", |kit| kit.record(near).sends == 1);
    kit.linger();
    assert_eq!((kit.record(near).sends, kit.record(near).sent), (1, BYTES));
}

fn an_empty_queue_and_empty_segments_begin_no_send<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, far) = kit.connection(0, 0);
    kit.expect(far, 1, 0);
    assert_eq!(kit.send(near, &mut VecDeque::new()), 0);
    let mut empty = VecDeque::from([Bytes::new(), Bytes::new()]);
    assert_eq!(kit.send(near, &mut empty), 0);
    kit.linger();
    assert_eq!(kit.record(near).sends, 0);
    kit.send_all(near, pattern::segments(1, &[0, 5, 0, 6]));
    kit.until("all has come", |kit| kit.record(far).received == 11);
}

fn a_sent_segment_is_let_go<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, far) = kit.connection(0, 0);
    kit.expect(far, 1, 0);
    let segment = pattern::bytes(1, 0..1000);
    kit.send_all(near, VecDeque::from([segment.clone()]));
    kit.until("all has come", |kit| kit.record(far).received == 1000);
    assert!(segment.is_unique(), "the driver holds on to what is sent");
}

fn a_connection_that_does_not_read_holds_the_peer_back_and_loses_nothing<W: World>() {
    const BYTES: usize = 32 << 20;
    const SEGMENT: usize = 256 << 10;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    let mut queue = pattern::segments(4, &[SEGMENT; BYTES / SEGMENT]);
    let mut sent = 0;
    for _ in 0..40 {
        sent += kit.send(near, &mut queue);
        kit.linger();
    }
    assert!(
        !queue.is_empty(),
        "nothing held the sender back: {sent} bytes"
    );
    assert_eq!(kit.record(far).received, 0);
    kit.expect(far, 4, 0);
    kit.until("all has come", |kit| {
        kit.send(near, &mut queue);
        kit.record(far).received == BYTES
    });
}

fn both_directions_are_used_at_once<W: World>() {
    const BYTES: usize = 8 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(near, 5, 0);
    kit.expect(far, 6, 0);
    let mut to_near = pattern::segments(5, &[100_000; BYTES / 100_000]);
    let mut to_far = pattern::segments(6, &[70_000; BYTES / 70_000]);
    let sizes = (to_near.len() * 100_000, to_far.len() * 70_000);
    kit.until("all has come on both sides", |kit| {
        kit.send(far, &mut to_near);
        kit.send(near, &mut to_far);
        (kit.record(near).received, kit.record(far).received) == sizes
    });
}

fn after_the_end_of_the_direction_nothing_is_sent<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, far) = kit.connection(0, 0);
    kit.expect(far, 1, 0);
    let mut queue = pattern::segments(1, &[4 << 20, 10]);
    assert_eq!(kit.send(near, &mut queue), 4 << 20);
    kit.driver(near).shutdown_write(near.id);
    kit.until("the end has come", |kit| kit.record(far).eof);
    assert_eq!(
        kit.record(far).received,
        4 << 20,
        "the send in flight goes first"
    );
    kit.until("it is sent", |kit| kit.record(near).sends == 1);
    assert_eq!(kit.send(near, &mut queue), 0);
    assert_eq!(queue.len(), 1);
    kit.linger();
    assert!(!kit.record(near).is_over(), "the other direction is open");
    kit.expect(near, 7, 0);
    kit.send_all(far, pattern::segments(7, &[100]));
    kit.until("the answer has come", |kit| {
        kit.record(near).received == 100
    });
}
