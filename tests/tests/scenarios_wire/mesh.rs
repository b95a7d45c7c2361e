//! B52: four processes, each with an edge to each other, of which one dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ringway::data_plane::{
    ConnectOptions, DataPlane, ListenOptions, StreamListener, TransportChoice,
};
use ringway::edge::{Ending, Receiver, Sender};
use ringway::element::StreamElement;
use ringway::wire::Wired;
use ringway_shm::Bell;
use ringway_tests::conformance::elements::{Numbers, next, number, value_of};
use ringway_tests::within::LONG;

use crate::rig::each_until_the_end;
use ringway_tests::process::{Process, hear, part, tell};

const PROCESSES: usize = 4;
const KILLED: usize = 3;

fn connect(plane: &DataPlane, port: u16) -> Sender<Numbers> {
    let options = ConnectOptions::default().transport(TransportChoice::Socket);
    let sender = plane.connect("127.0.0.1", port, Bell::thread(), options);
    sender.unwrap()
}

fn ports(line: &str) -> Vec<u16> {
    line.split(' ').map(|port| port.parse().unwrap()).collect()
}

/// Says who this is, and counts until it is told to stop. Tells what became of the edge.
fn count(mut sender: Sender<Numbers>, own: usize, to: usize, stop: Arc<AtomicBool>) {
    let mut pushed = sender.push(number(own as i64)).is_ok();
    let mut value = 0;
    while pushed && !stop.load(Ordering::SeqCst) {
        pushed = sender.push(number(value)).is_ok();
        value += 1;
        thread::sleep(Duration::from_micros(500));
    }
    let outcome = sender.finish_and_wait(LONG);
    let outcome = outcome.map_or_else(|error| format!("failed: {error}"), |()| "ok".to_owned());
    tell("edge", format!("{own}>{to} sender {outcome}"));
}

/// Takes what comes. Tells what became of the edge.
fn take(mut receiver: Receiver<Numbers>, own: usize) {
    let from = value_of(next(&mut receiver));
    let mut expected = 0;
    let ending = each_until_the_end(&mut receiver, |element: StreamElement<Numbers>| {
        assert_eq!(value_of(element), expected);
        expected += 1;
    });
    let outcome = match ending {
        Ending::End => "ok".to_owned(),
        other => other.to_string(),
    };
    tell("edge", format!("{from}>{own} receiver {outcome}"));
}

fn take_streams(
    listener: &StreamListener<Numbers>,
    own: usize,
    count: usize,
) -> Vec<JoinHandle<()>> {
    let accept = |_| {
        let stream = listener.accept(Some(LONG)).unwrap();
        thread::spawn(move || take(stream.receiver, own))
    };
    (0..count).map(accept).collect()
}

/// One of the processes: all edges, until it is told to stop; then one to a process that is new.
fn member(own: usize) {
    let plane = DataPlane::new();
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = plane
        .listen_for_streams(options, Bell::thread(), Numbers::codec(), 16)
        .unwrap();
    tell("port", listener.port());
    let others = ports(&hear().unwrap());
    if own == KILLED && others.len() == 1 {
        // It is started anew, and only takes.
        return take_streams(&listener, own, PROCESSES - 1)
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads = Vec::new();
    for (to, port) in others.iter().enumerate().filter(|(to, _)| *to != own) {
        let (sender, stop) = (connect(&plane, *port), Arc::clone(&stop));
        threads.push(thread::spawn(move || count(sender, own, to, stop)));
    }
    threads.extend(take_streams(&listener, own, PROCESSES - 1));
    tell("ready", own);
    hear();
    stop.store(true, Ordering::SeqCst);
    for thread in threads {
        thread.join().unwrap();
    }
    let mut again = connect(&plane, ports(&hear().unwrap())[0]);
    again.push(number(own as i64)).unwrap();
    for value in 0..3 {
        again.push(number(value)).unwrap();
    }
    again.finish_and_wait(LONG).unwrap();
}

#[test]
fn b52_the_edges_to_a_process_that_dies_fail_and_all_others_go_on() {
    if let Some(part) = part() {
        return member(part.parse().unwrap());
    }
    let test = "mesh::b52_the_edges_to_a_process_that_dies_fail_and_all_others_go_on";
    let start = |own: usize| Process::start(test, &own.to_string());
    let mut processes: Vec<_> = (0..PROCESSES).map(start).collect();
    let ports: Vec<_> = processes.iter_mut().map(|it| it.next("port")).collect();
    for process in &mut processes {
        process.say(ports.join(" "));
    }
    for process in &mut processes {
        process.next("ready");
    }
    thread::sleep(Duration::from_millis(200));
    processes.pop().unwrap().kill();
    // Those to the dead one fail, in both directions, and nobody has stopped the others.
    for (own, process) in processes.iter_mut().enumerate() {
        let mut edges = [process.next("edge"), process.next("edge")];
        edges.sort();
        let expected = [
            format!("{KILLED}>{own} receiver"),
            format!("{own}>{KILLED} sender"),
        ];
        let mut expected = expected.map(|edge| edge + " failed: ");
        expected.sort();
        for (edge, expected) in edges.iter().zip(expected) {
            assert!(edge.starts_with(&expected), "{edge}, not {expected}");
        }
    }
    thread::sleep(Duration::from_millis(100));
    for process in &mut processes {
        process.say("stop");
    }
    for process in &mut processes {
        for _ in 0..2 * (PROCESSES - 2) {
            let edge = process.next("edge");
            assert!(edge.ends_with(" ok"), "{edge}");
        }
    }
    let mut anew = start(KILLED);
    let port = anew.next("port");
    anew.say(&port);
    for process in &mut processes {
        process.say(&port);
    }
    for _ in 0..PROCESSES - 1 {
        let edge = anew.next("edge");
        assert!(edge.ends_with(" ok"), "{edge}");
    }
    for process in processes.into_iter().chain([anew]) {
        assert!(process.end().success());
    }
}
