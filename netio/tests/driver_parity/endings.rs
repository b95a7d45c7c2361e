//! The ends of a connection: in order, broken, from either side.

use ringway_netio::driver::Driver;

use crate::kit::Kit;
use crate::pattern;
use crate::worlds::World;

crate::promises![
    the_end_comes_after_the_last_byte,
    each_direction_ends_by_itself,
    a_reset_is_a_loss_and_no_end,
    a_send_to_a_peer_that_is_gone_is_a_loss,
    a_loss_that_a_send_finds_comes_after_the_bytes_that_are_there,
    a_loss_does_not_overtake_bytes_that_wait_for_reading,
    a_send_that_breaks_after_the_end_is_a_loss,
    a_dropped_driver_ends_its_connections,
];

fn the_end_comes_after_the_last_byte<W: World>() {
    const BYTES: usize = 3 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    let mut queue = pattern::segments(1, &[BYTES]);
    kit.send(near, &mut queue);
    kit.driver(near).shutdown_write(near.id);
    kit.linger();
    kit.expect(far, 1, 0);
    kit.until("the end has come", |kit| kit.record(far).eof);
    assert_eq!(kit.record(far).received, BYTES);
    kit.linger();
}

fn each_direction_ends_by_itself<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(near, 2, 0);
    kit.expect(far, 3, 0);
    kit.driver(near).shutdown_write(near.id);
    kit.until("one end has come", |kit| kit.record(far).eof);
    kit.send_all(far, pattern::segments(2, &[500_000, 3]));
    kit.until("all has come", |kit| kit.record(near).received == 500_003);
    kit.driver(far).shutdown_write(far.id);
    kit.until("the other end has come", |kit| kit.record(near).eof);
    kit.linger();
    assert!(kit.record(near).lost.is_none() && kit.record(far).lost.is_none());
}

fn a_reset_is_a_loss_and_no_end<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (one, other) = kit.world.pair();
    let far = kit.attach(0, other);
    kit.read(far, true);
    kit.linger();
    kit.world.reset(one);
    kit.until("it is lost", |kit| kit.record(far).lost.is_some());
    assert!(!kit.record(far).eof);
    kit.linger();
    let mut queue = pattern::segments(1, &[5]);
    assert_eq!(kit.send(far, &mut queue), 0, "nothing can be sent any more");
    kit.close_now(far);
}

fn a_send_to_a_peer_that_is_gone_is_a_loss<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (one, other) = kit.world.pair();
    let far = kit.attach(0, other);
    kit.world.reset(one);
    kit.linger();
    // It does not read, so it may find out only when it sends.
    let mut queue = pattern::segments(1, &[5; 3]);
    kit.until("it is lost", |kit| {
        kit.send(far, &mut queue);
        kit.record(far).lost.is_some()
    });
    kit.linger();
}

fn a_loss_that_a_send_finds_comes_after_the_bytes_that_are_there<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    // Bytes that near does not read make its close a reset, after what it has sent.
    kit.send_all(far, pattern::segments(9, &[100]));
    kit.send_all(near, pattern::segments(4, &[1000]));
    kit.linger();
    kit.close_now(near);
    kit.linger();
    kit.record(far).expected = Some((4, 0));
    let mut queue = pattern::segments(9, &[100; 5]);
    kit.send(far, &mut queue);
    kit.read(far, true);
    kit.until("it is lost", |kit| {
        kit.send(far, &mut queue);
        kit.record(far).lost.is_some()
    });
    assert_eq!(kit.record(far).received, 1000);
}

fn a_loss_does_not_overtake_bytes_that_wait_for_reading<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.send_all(far, pattern::segments(9, &[100]));
    kit.send_all(near, pattern::segments(4, &[1000]));
    kit.linger();
    kit.close_now(near);
    kit.linger();
    let mut queue = pattern::segments(9, &[100; 5]);
    for _ in 0..5 {
        kit.send(far, &mut queue);
        kit.linger();
    }
    assert!(!kit.record(far).is_over(), "an end before the bytes");
    kit.expect(far, 4, 0);
    kit.until("it is lost", |kit| kit.record(far).lost.is_some());
    assert_eq!(kit.record(far).received, 1000);
}

fn a_send_that_breaks_after_the_end_is_a_loss<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 5, 0);
    kit.close_now(near);
    kit.until("the end has come", |kit| kit.record(far).eof);
    let mut queue = pattern::segments(6, &[100; 64]);
    kit.until("the sends break", |kit| {
        if queue.is_empty() {
            queue = pattern::segments(6, &[100; 64]);
        }
        kit.send(far, &mut queue);
        kit.record(far).lost.is_some()
    });
}

fn a_dropped_driver_ends_its_connections<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    let (idle_near, idle_far) = kit.connection(0, 1);
    kit.read(near, true);
    kit.read_body(idle_near, 100);
    let mut queue = pattern::segments(5, &[20 << 20]);
    kit.send(near, &mut queue);
    kit.poll();
    drop(kit.nodes.remove(0));
    let [near, far] = [near, far].map(|end| crate::kit::End { node: 0, ..end });
    assert_ne!(near.node, 1);
    let idle = crate::kit::End {
        node: 0,
        ..idle_far
    };
    kit.record(far).expected = Some((5, 0));
    for end in [far, idle] {
        kit.read(end, true);
        kit.until("it is over", |kit| kit.record(end).is_over());
    }
    assert!(kit.record(far).received < 20 << 20, "a part was cut off");
}
