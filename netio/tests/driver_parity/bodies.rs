//! Bodies: read into memory of their own, before anything else.

use ringway_netio::driver::Driver;

use crate::kit::Kit;
use crate::pattern;
use crate::worlds::World;

crate::promises![
    a_body_is_read_before_anything_else_and_then_chunks_go_on,
    a_body_is_read_whether_chunks_are_read_or_not,
    progress_is_told_of_a_body_that_comes_slowly,
    an_empty_body_comes_back_at_once,
    bodies_follow_each_other_amid_a_stream,
    a_body_that_ends_with_the_connection_comes_back_before_the_end,
    a_body_on_a_broken_connection_comes_back_before_the_loss,
    a_body_asked_for_after_the_end_comes_back,
];

fn a_body_is_read_before_anything_else_and_then_chunks_go_on<W: World>() {
    const BODY: usize = 5_000_000;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 1, 0);
    kit.send_all(near, pattern::segments(1, &[100]));
    kit.until("the head has come", |kit| kit.record(far).received == 100);
    kit.read_body(far, BODY);
    let mut queue = [pattern::bytes(1, 100..BODY + 200)].into();
    kit.until("the rest has come", |kit| {
        kit.send(near, &mut queue);
        kit.record(far).received == BODY + 200
    });
    let record = kit.record(far);
    assert_eq!((record.bodies.len(), record.in_chunks), (1, 200));
    let body = record.bodies.pop().unwrap().freeze();
    pattern::check(1, 100, &body);
    assert_eq!(body.len(), BODY);
}

fn a_body_is_read_whether_chunks_are_read_or_not<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, far) = kit.connection(0, 0);
    kit.record(far).expected = Some((2, 0));
    kit.send_all(near, pattern::segments(2, &[1000]));
    kit.read_body(far, 600);
    kit.until("the body has come", |kit| kit.record(far).bodies.len() == 1);
    kit.linger();
    assert_eq!(kit.record(far).received, 600);
    kit.read(far, true);
    kit.until("the rest has come", |kit| kit.record(far).received == 1000);
}

fn progress_is_told_of_a_body_that_comes_slowly<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.record(far).expected = Some((3, 0));
    kit.read_body(far, 400);
    for part in 0..4 {
        kit.linger();
        assert_eq!(kit.record(far).progress, part * 100);
        kit.send_all(
            near,
            [pattern::bytes(3, part * 100..part * 100 + 100)].into(),
        );
        kit.until("it has come", |kit| {
            let record = kit.record(far);
            record.progress == part * 100 + 100 || record.bodies.len() == 1
        });
    }
    assert_eq!(kit.record(far).bodies.len(), 1);
}

fn an_empty_body_comes_back_at_once<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, far) = kit.connection(0, 0);
    kit.read_body(far, 0);
    kit.until("it is back", |kit| kit.record(far).bodies.len() == 1);
    kit.expect(far, 4, 0);
    kit.send_all(near, pattern::segments(4, &[10]));
    kit.until("the stream goes on", |kit| kit.record(far).received == 10);
}

fn bodies_follow_each_other_amid_a_stream<W: World>() {
    const BODIES: usize = 40;
    const BODY: usize = 300_000;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.record(far).expected = Some((5, 0));
    let mut queue = pattern::segments(5, &[70_000; BODIES * BODY / 70_000 + 1]);
    for done in 0..BODIES {
        kit.read_body(far, BODY);
        kit.until("the body has come", |kit| {
            kit.send(near, &mut queue);
            kit.record(far).bodies.len() == done + 1
        });
        assert_eq!(kit.record(far).received, (done + 1) * BODY);
    }
    assert_eq!(kit.record(far).in_chunks, 0);
}

fn a_body_that_ends_with_the_connection_comes_back_before_the_end<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.record(far).expected = Some((6, 0));
    kit.read_body(far, 1000);
    kit.send_all(near, pattern::segments(6, &[300]));
    kit.driver(near).shutdown_write(near.id);
    kit.until("the end has come", |kit| kit.record(far).eof);
    let record = kit.record(far);
    assert_eq!(record.bodies.len(), 1);
    assert_eq!(record.bodies[0].remaining(), 700);
}

fn a_body_on_a_broken_connection_comes_back_before_the_loss<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (one, other) = kit.world.pair();
    let far = kit.attach(0, other);
    kit.read_body(far, 1000);
    kit.linger();
    kit.world.reset(one);
    kit.until("it is lost", |kit| kit.record(far).lost.is_some());
    assert_eq!(kit.record(far).bodies.len(), 1);
}

fn a_body_asked_for_after_the_end_comes_back<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (near, far) = kit.connection(0, 0);
    kit.expect(far, 7, 0);
    kit.driver(near).shutdown_write(near.id);
    kit.until("the end has come", |kit| kit.record(far).eof);
    kit.read_body(far, 10);
    kit.until("it is back", |kit| kit.record(far).bodies.len() == 1);
    assert_eq!(kit.record(far).bodies[0].remaining(), 10);
}
