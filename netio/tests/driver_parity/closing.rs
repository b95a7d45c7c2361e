//! Closing: nothing comes afterwards but that it is done.

use std::collections::VecDeque;

use ringway_netio::buffer::Body;
use ringway_netio::driver::Driver;

use crate::kit::Kit;
use crate::pattern;
use crate::worlds::World;

crate::promises![
    after_close_only_its_completion_comes,
    what_was_done_and_not_told_is_dropped_by_a_close,
    a_close_before_the_next_poll_takes_the_socket_back,
    a_connection_is_closed_with_everything_in_flight,
    what_the_kernel_had_arrives_after_a_close_in_order,
    what_is_asked_of_a_connection_that_is_closing_is_ignored,
    identifiers_of_what_is_closed_are_ignored,
    a_place_is_used_again_under_another_name,
];

fn after_close_only_its_completion_comes<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.send_all(near, pattern::segments(1, &[1000]));
    kit.linger();
    kit.read(far, true);
    let mut queue = pattern::segments(2, &[10]);
    assert_eq!(kit.send(far, &mut queue), 10);
    kit.close(far);
    // The record refuses all else.
    kit.until("it is closed", |kit| kit.record(far).closed);
    kit.linger();
    assert_eq!(kit.record(far).received + kit.record(far).sent, 0);
}

fn what_was_done_and_not_told_is_dropped_by_a_close<W: World>() {
    let mut kit = Kit::<W>::new(2);
    for body_bytes in [0, 1000] {
        let (near, far) = kit.connection(0, 1);
        kit.driver(near).shutdown_write(near.id);
        kit.read(far, true);
        kit.until("the end has come", |kit| kit.record(far).eof);
        // Nothing comes any more to a body, so that it is given back at once.
        kit.read_body(far, body_bytes);
        kit.close_now(far);
        let (_near, far) = kit.connection(0, 1);
        kit.read_body(far, body_bytes);
        kit.send(far, &mut pattern::segments(1, &[10]));
        kit.driver(far).shutdown_write(far.id);
        kit.close_now(far);
    }
    kit.linger();
}

fn a_close_before_the_next_poll_takes_the_socket_back<W: World>() {
    let mut kit = Kit::<W>::new(2);
    for reads in [false, true] {
        let (near, far) = kit.connection(0, 1);
        kit.read(near, reads);
        kit.poll();
        kit.driver(near).detach(near.id);
        kit.close_now(near);
        kit.read(far, true);
        kit.until("the peer sees it", |kit| kit.record(far).is_over());
        kit.close(near);
        kit.linger();
    }
}

fn a_connection_is_closed_with_everything_in_flight<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    let mut queue = pattern::segments(2, &[30 << 20]);
    let segment = queue[0].clone();
    kit.send(near, &mut queue);
    kit.read_body(near, 1 << 20);
    kit.read(near, true);
    kit.linger();
    kit.close_now(near);
    kit.linger();
    assert!(
        segment.is_unique(),
        "the driver holds on to what it cannot send"
    );
    kit.read(far, true);
    kit.until("the peer sees it", |kit| kit.record(far).is_over());
    kit.close_now(far);
}

fn what_the_kernel_had_arrives_after_a_close_in_order<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.send_all(near, pattern::segments(3, &[40_000; 4]));
    kit.close_now(near);
    kit.expect(far, 3, 0);
    kit.until("the end has come", |kit| kit.record(far).is_over());
    let record = kit.record(far);
    assert_eq!((record.received, record.eof), (160_000, true));
}

fn what_is_asked_of_a_connection_that_is_closing_is_ignored<W: World>() {
    let mut kit = Kit::<W>::new(1);
    for polled in [false, true] {
        let (near, _far) = kit.connection(0, 0);
        // It takes until the next poll to end these.
        kit.send(near, &mut pattern::segments(1, &[30 << 20]));
        kit.read(near, true);
        if polled {
            kit.poll();
        }
        kit.close(near);
        let driver = kit.driver(near);
        driver.close(near.id);
        driver.read_body(near.id, Body::new(0));
        driver.read_body(near.id, Body::new(1000));
        driver.set_reading(near.id, true);
        driver.shutdown_write(near.id);
        driver.detach(near.id);
        let mut queue = VecDeque::from([pattern::bytes(1, 0..5)]);
        assert_eq!(driver.send(near.id, &mut queue), 0);
        // The record refuses all else.
        kit.until("it is closed", |kit| kit.record(near).closed);
        kit.linger();
    }
}

fn identifiers_of_what_is_closed_are_ignored<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, _far) = kit.connection(0, 0);
    kit.close_now(near);
    let driver = kit.driver(near);
    let mut queue = VecDeque::from([pattern::bytes(1, 0..5)]);
    assert_eq!(driver.send(near.id, &mut queue), 0);
    assert_eq!(queue.len(), 1);
    driver.set_reading(near.id, true);
    driver.read_body(near.id, Body::new(5));
    driver.shutdown_write(near.id);
    driver.detach(near.id);
    driver.close(near.id);
    assert_eq!(driver.unacknowledged_bytes(near.id), None);
    kit.linger();
}

fn a_place_is_used_again_under_another_name<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let mut names = std::collections::HashSet::new();
    for round in 0..50 {
        let (near, far) = kit.connection(0, 0);
        assert!(
            names.insert(near.id) && names.insert(far.id),
            "a name twice"
        );
        kit.expect(far, round, 0);
        kit.send_all(near, pattern::segments(round, &[100]));
        kit.until("it has come", |kit| kit.record(far).received == 100);
        kit.close(near);
        kit.close(far);
    }
    kit.until("all is closed", |kit| kit.poll() == 0);
}
