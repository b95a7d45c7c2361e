//! Many connections on one driver: each has its turn.

use std::collections::VecDeque;

use ringway_netio::driver::Driver;

use crate::kit::{End, Kit};
use crate::pattern;
use crate::worlds::World;

crate::promises![
    two_hundred_connections_share_one_driver,
    tended_connections_go_on_as_before,
    a_busy_connection_does_not_starve_a_quiet_one,
];

fn two_hundred_connections_share_one_driver<W: World>() {
    const CONNECTIONS: usize = 200;
    const SEGMENTS: usize = 6;
    let mut kit = Kit::<W>::new(2);
    let ends: Vec<(End, End)> = (0..CONNECTIONS).map(|_| kit.connection(0, 1)).collect();
    let mut queues = Vec::new();
    let mut sizes = Vec::new();
    for (stream, (_, far)) in ends.iter().enumerate() {
        kit.expect(*far, stream as u64, 0);
        let length = 10 + stream * 311;
        queues.push(pattern::segments(stream as u64, &[length; SEGMENTS]));
        sizes.push(length * SEGMENTS);
    }
    kit.until("all has come everywhere", |kit| {
        for ((near, _), queue) in ends.iter().zip(&mut queues) {
            if kit.send(*near, queue) == 0 && queue.is_empty() {
                kit.driver(*near).shutdown_write(near.id);
            }
        }
        let done = |(end, size): (&(End, End), &usize)| kit.record(end.1).received == *size;
        ends.iter().zip(&sizes).all(done)
    });
    for (near, far) in ends {
        kit.until("the end has come", |kit| kit.record(far).eof);
        kit.close(near);
        kit.close(far);
    }
}

fn tended_connections_go_on_as_before<W: World>() {
    const BYTES: usize = 12 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    let mut queue = pattern::segments(1, &[BYTES]);
    kit.send(near, &mut queue);
    for _ in 0..3 {
        kit.linger();
        kit.driver(near).tend();
        kit.driver(far).tend();
    }
    kit.expect(far, 1, 0);
    kit.until("all has come", |kit| kit.record(far).received == BYTES);
    kit.driver(near).tend();
    kit.until("it is sent", |kit| kit.record(near).sends == 1);
}

fn a_busy_connection_does_not_starve_a_quiet_one<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (busy_near, busy_far) = kit.connection(0, 1);
    let (near, far) = kit.connection(0, 1);
    kit.expect(busy_far, 1, 0);
    kit.expect(far, 2, 0);
    let length = 1 << 20;
    let mut busy = pattern::segments(1, &[length; 4]);
    let mut at = 4 * length;
    let mut quiet = pattern::segments(2, &[10; 100]);
    let mut turn = VecDeque::new();
    let mut polls = 0;
    kit.until("the quiet one has its bytes", |kit| {
        if busy.len() < 2 {
            busy.push_back(pattern::bytes(1, at..at + length));
            at += length;
        }
        kit.send(busy_near, &mut busy);
        if turn.is_empty() {
            turn.extend(quiet.pop_front());
        }
        kit.send(near, &mut turn);
        polls += 1;
        kit.record(far).received == 1000
    });
    assert!(kit.record(busy_far).received > 0);
    assert!(polls < 20_000, "{polls} polls for 100 small sends");
}
