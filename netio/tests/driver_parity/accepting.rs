//! Listeners: who connects is accepted, until told otherwise.

use ringway_netio::driver::Driver;

use crate::kit::Kit;
use crate::pattern;
use crate::worlds::World;

crate::promises![
    everybody_who_connects_is_accepted_before_and_after_listening_began,
    listeners_are_told_apart,
    a_listener_that_was_stopped_accepts_nobody,
];

fn everybody_who_connects_is_accepted_before_and_after_listening_began<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (listener, address) = kit.world.listener();
    let mut near = vec![kit.world.connect(&address)];
    let id = kit.nodes[0].driver.listen(listener).unwrap();
    for count in 2..=70 {
        near.push(kit.world.connect(&address));
        if count % 10 == 0 {
            kit.until("all are accepted", |kit| {
                kit.nodes[0].accepted.len() == count
            });
        }
    }
    for (stream, socket) in near.into_iter().enumerate() {
        let near = kit.attach(1, socket);
        let (listener, socket, _) = kit.nodes[0].accepted.remove(0);
        assert_eq!(listener, id);
        let far = kit.attach(0, socket);
        kit.send_all(near, pattern::segments(stream as u64, &[100]));
        kit.expect(far, stream as u64, 0);
        kit.until("it has come", |kit| kit.record(far).received == 100);
    }
    kit.linger();
    assert!(kit.nodes[0].accepted.is_empty());
}

fn listeners_are_told_apart<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let listeners = [kit.world.listener(), kit.world.listener()];
    let mut ends = Vec::new();
    for (listener, address) in listeners {
        ends.push((kit.nodes[0].driver.listen(listener).unwrap(), address));
    }
    for (id, address) in &ends {
        let _socket = kit.world.connect(address);
        kit.until("it is accepted", |kit| kit.nodes[0].accepted.len() == 1);
        assert_eq!(kit.nodes[0].accepted.remove(0).0, *id);
    }
}

fn a_listener_that_was_stopped_accepts_nobody<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let (listener, address) = kit.world.listener();
    let id = kit.nodes[0].driver.listen(listener).unwrap();
    let _socket = kit.world.connect(&address);
    kit.until("it is accepted", |kit| kit.nodes[0].accepted.len() == 1);
    kit.nodes[0].driver.stop_listening(id);
    kit.nodes[0].driver.stop_listening(id);
    kit.linger();
    assert!(kit.world.is_refused(&address), "somebody listens still");
    kit.linger();
    assert_eq!(kit.nodes[0].accepted.len(), 1);
}
