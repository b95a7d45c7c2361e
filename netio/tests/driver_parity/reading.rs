//! Reading: when told to, in order, in chunks that are the caller's.

use ringway_netio::driver::Driver;

use crate::kit::Kit;
use crate::pattern;
use crate::worlds::World;

crate::promises![
    nothing_is_read_before_reading_is_turned_on,
    reading_stops_and_goes_on_where_it_stopped,
    what_came_while_reading_was_off_is_told_once_it_is_on,
    chunks_that_are_kept_keep_their_bytes_and_hold_nothing_up_for_ever,
    who_keeps_all_chunks_can_still_send,
    small_messages_arrive_one_by_one,
];

fn nothing_is_read_before_reading_is_turned_on<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, far) = kit.connection(0, 0);
    kit.send_all(near, pattern::segments(1, &[1000]));
    kit.linger();
    assert_eq!(kit.record(far).received, 0);
    kit.expect(far, 1, 0);
    kit.until("all has come", |kit| kit.record(far).received == 1000);
}

fn reading_stops_and_goes_on_where_it_stopped<W: World>() {
    const BYTES: usize = 8 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 2, 0);
    let mut queue = pattern::segments(2, &[100_000; BYTES / 100_000]);
    let bytes = queue.len() * 100_000;
    let mut turns = 0;
    kit.until("all has come", |kit| {
        kit.send(near, &mut queue);
        turns += 1;
        kit.read(far, turns % 3 != 0);
        kit.record(far).received == bytes
    });
    kit.read(far, false);
    kit.linger();
    let before = kit.record(far).received;
    kit.send_all(near, [pattern::bytes(2, bytes..bytes + 50)].into());
    kit.linger();
    assert_eq!(
        kit.record(far).received,
        before,
        "it reads though told not to"
    );
    kit.read(far, true);
    kit.until("the rest has come", |kit| {
        kit.record(far).received == bytes + 50
    });
}

fn what_came_while_reading_was_off_is_told_once_it_is_on<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.send_all(near, pattern::segments(3, &[10]));
    kit.driver(near).shutdown_write(near.id);
    kit.linger();
    assert!(!kit.record(far).is_over(), "an end before the bytes");
    kit.expect(far, 3, 0);
    kit.until("the end has come", |kit| kit.record(far).eof);
    assert_eq!(kit.record(far).received, 10);
}

fn chunks_that_are_kept_keep_their_bytes_and_hold_nothing_up_for_ever<W: World>() {
    const BYTES: usize = 48 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 4, 0);
    kit.nodes[1].kept = Some(Vec::new());
    let mut queue = pattern::segments(4, &[1 << 20; BYTES >> 20]);
    let mut at = 0;
    kit.until("all has come", |kit| {
        kit.send(near, &mut queue);
        let received = kit.record(far).received;
        let kept = kit.nodes[1].kept.as_mut().unwrap();
        // As many as may be out, and then they are let go.
        if received == at && !kept.is_empty() {
            let mut place = at - kept.iter().map(|chunk| chunk.len()).sum::<usize>();
            for chunk in kept.drain(..) {
                pattern::check(4, place, &chunk);
                place += chunk.len();
            }
        }
        at = received;
        received == BYTES
    });
}

fn who_keeps_all_chunks_can_still_send<W: World>() {
    const BYTES: usize = 40 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 6, 0);
    kit.expect(near, 7, 0);
    kit.nodes[1].kept = Some(Vec::new());
    let mut queue = pattern::segments(6, &[1 << 20; BYTES >> 20]);
    let mut received = 0;
    kit.until("nothing more comes", |kit| {
        kit.send(near, &mut queue);
        let before = std::mem::replace(&mut received, kit.record(far).received);
        if received > 0 && received == before {
            kit.linger();
        }
        received > 0 && kit.record(far).received == before
    });
    assert!(received < BYTES, "the pool has no bound");
    kit.send_all(far, pattern::segments(7, &[100]));
    kit.until("it has come", |kit| kit.record(near).received == 100);
    kit.nodes[1].kept = None;
    kit.until("the rest has come", |kit| {
        kit.send(near, &mut queue);
        kit.record(far).received == BYTES
    });
}

fn small_messages_arrive_one_by_one<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 5, 0);
    kit.expect(near, 6, 0);
    for round in 0..200 {
        kit.send_all(near, [pattern::bytes(5, round * 9..round * 9 + 9)].into());
        kit.until("it has come", |kit| {
            kit.record(far).received == round * 9 + 9
        });
        kit.send_all(far, [pattern::bytes(6, round * 5..round * 5 + 5)].into());
        kit.until("it is back", |kit| {
            kit.record(near).received == round * 5 + 5
        });
    }
}
