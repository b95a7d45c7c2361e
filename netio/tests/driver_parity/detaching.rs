//! Sockets go from driver to driver, and nothing is lost on the way.

use ringway_netio::driver::Driver;

use crate::kit::Kit;
use crate::pattern;
use crate::worlds::World;

crate::promises![
    a_stream_goes_on_at_another_driver_without_a_gap,
    a_send_in_flight_is_done_before_the_socket_is_given_back,
    a_body_comes_back_before_the_socket,
    the_end_of_a_direction_stays_ended_elsewhere,
    a_broken_connection_is_given_back_too,
    a_socket_of_another_kind_is_refused,
];

fn a_stream_goes_on_at_another_driver_without_a_gap<W: World>() {
    const BYTES: usize = 12 << 20;
    let mut kit = Kit::<W>::new(3);
    let (near, mut far) = kit.connection(0, 1);
    kit.expect(far, 1, 0);
    let mut queue = pattern::segments(1, &[60_000; BYTES / 60_000]);
    let bytes = queue.len() * 60_000;
    let mut at = 0;
    let mut moves = 0;
    while at < bytes {
        kit.until("some has come", |kit| {
            kit.send(near, &mut queue);
            at + kit.record(far).received >= bytes.min((moves + 1) * 1_000_000)
        });
        kit.driver(far).detach(far.id);
        kit.until("the socket is back", |kit| {
            kit.send(near, &mut queue);
            kit.record(far).detached.is_some()
        });
        at += kit.record(far).received;
        let socket = kit.record(far).detached.take().unwrap();
        far = kit.attach(1 + (moves + 1) % 2, socket);
        kit.expect(far, 1, at);
        moves += 1;
    }
    assert!(moves > 5, "{moves} moves");
}

fn a_send_in_flight_is_done_before_the_socket_is_given_back<W: World>() {
    const BYTES: usize = 20 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    let mut queue = pattern::segments(2, &[BYTES, 10]);
    kit.send(near, &mut queue);
    kit.driver(near).detach(near.id);
    kit.linger();
    assert!(kit.record(near).detached.is_none(), "bytes are in flight");
    assert_eq!(kit.send(near, &mut queue), 0, "it is on its way");
    kit.expect(far, 2, 0);
    kit.until("the socket is back", |kit| {
        kit.record(near).detached.is_some()
    });
    assert_eq!((kit.record(near).sends, kit.record(near).sent), (1, BYTES));
    let socket = kit.record(near).detached.take().unwrap();
    let near = kit.attach(1, socket);
    kit.send_all(near, [pattern::bytes(2, BYTES..BYTES + 10)].into());
    kit.until("all has come", |kit| kit.record(far).received == BYTES + 10);
}

fn a_body_comes_back_before_the_socket<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.record(far).expected = Some((3, 0));
    kit.read_body(far, 1000);
    kit.send_all(near, pattern::segments(3, &[300]));
    kit.until("a part has come", |kit| kit.record(far).progress == 300);
    kit.driver(far).detach(far.id);
    kit.until("the socket is back", |kit| {
        kit.record(far).detached.is_some()
    });
    let record = kit.record(far);
    assert_eq!(record.bodies.len(), 1);
    let missing = record.bodies[0].remaining();
    assert_eq!(missing, 700);
    let socket = record.detached.take().unwrap();
    let far = kit.attach(0, socket);
    kit.expect(far, 3, 300);
    kit.send_all(near, [pattern::bytes(3, 300..1000)].into());
    kit.until("the rest has come", |kit| kit.record(far).received == 700);
}

fn the_end_of_a_direction_stays_ended_elsewhere<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.send_all(near, pattern::segments(4, &[10]));
    kit.driver(near).shutdown_write(near.id);
    kit.driver(near).detach(near.id);
    kit.driver(far).detach(far.id);
    kit.until("both are back", |kit| {
        kit.record(near).detached.is_some() && kit.record(far).detached.is_some()
    });
    let one = kit.record(near).detached.take().unwrap();
    let other = kit.record(far).detached.take().unwrap();
    let (near, far) = (kit.attach(1, one), kit.attach(0, other));
    kit.expect(far, 4, 0);
    kit.expect(near, 5, 0);
    kit.until("the end has come", |kit| kit.record(far).eof);
    assert_eq!(kit.record(far).received, 10);
    kit.send_all(far, pattern::segments(5, &[10]));
    kit.until("the answer has come", |kit| kit.record(near).received == 10);
}

fn a_broken_connection_is_given_back_too<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (one, other) = kit.world.pair();
    let far = kit.attach(0, other);
    kit.world.reset(one);
    kit.read(far, true);
    kit.until("it is lost", |kit| kit.record(far).lost.is_some());
    kit.driver(far).detach(far.id);
    kit.until("the socket is back", |kit| {
        kit.record(far).detached.is_some()
    });
}

fn a_socket_of_another_kind_is_refused<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (listener, _) = kit.world.listener();
    let (one, _other) = kit.world.pair();
    let driver = &mut kit.nodes[0].driver;
    assert!(driver.attach(listener).is_err());
    assert!(driver.listen(one).is_err());
}
