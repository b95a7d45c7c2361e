//! Edges over connections beyond what all edges promise: who is let in at a port for many
//! edges, who may drive connections, and what becomes of peers that send nonsense.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Clock;
use ringway::data_plane::{DataPlane, ListenOptions};
use ringway::edge::remote::{
    EdgePort, EdgePortOptions, Links, LinksHandle, RemoteOptions, RemoteParts, links, links_with,
    listen_for_edges, receive_over, send_over,
};
use ringway::edge::{
    EdgeOptions, Ending, Failure, FailureKind, Popped, Receiver, RejectReason, Sender,
};
use ringway::element::{Barrier, StreamElement};
use ringway::wire::{Columns, Wired};
use ringway::worker::{Host, HostKind, IdlePolicy, Worker, WorkerThread};
use ringway_netio::driver::{DriverChoice, open};
use ringway_netio::frame::{Control, Ending as WireEnding, FILLER_BYTES, Identity};
use ringway_netio::session::{SenderOptions, SenderSession};
use ringway_shm::{Bell, ring};
use ringway_tests::conformance::elements::{Numbers, ending, next, number};
use ringway_tests::sockets::{self, CLOSE, bad_ipc, frame, io, pair, recorded};
use ringway_tests::within::{LONG, until};

fn parts(remote: RemoteOptions) -> RemoteParts<Numbers> {
    sockets::parts(EdgeOptions::named("edge"), remote)
}

/// A port for the edges of job 7, attempt 1, and where it is.
fn port_of_job(links: &LinksHandle, stalled_after: Duration) -> (EdgePort, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = EdgePortOptions {
        job: 7,
        attempt: 1,
        bytes_max: 1 << 20,
        remote: RemoteOptions {
            stalled_after,
            ..RemoteOptions::default()
        },
    };
    let edges = listen_for_edges(links, listener.into(), options).unwrap();
    (edges, port)
}

fn expect(edges: &EdgePort, edge: u64, links: &LinksHandle) -> Receiver<Numbers> {
    let options = EdgeOptions::named("edge");
    let codec = Numbers::codec();
    let bell = Bell::thread();
    edges.expect(edge, &options, codec, bell, links).unwrap()
}

fn sender_of(links: &LinksHandle, port: u16, job: u128, edge: u64) -> Sender<Numbers> {
    let identity = Identity {
        job,
        edge,
        attempt: 1,
    };
    let out = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let parts = parts(RemoteOptions::default().identity(identity));
    send_over(links, out.into(), parts).unwrap()
}

/// The failure that a sender comes to see.
fn failure_of(sender: &mut Sender<Numbers>) -> Failure {
    until(LONG, "it is refused", || sender.is_closed());
    match sender.try_push(number(0)).unwrap_err().reason {
        RejectReason::Failed(failure) => failure,
        other => panic!("a failure, not {other}"),
    }
}

#[test]
fn edges_find_their_receivers_at_one_port_whatever_their_order() {
    let (listening, driving) = (io(), io());
    let (edges, port) = port_of_job(&listening, LONG);
    let mut third = sender_of(&driving, port, 7, 3);
    let mut second = sender_of(&driving, port, 7, 2);
    third.push(number(3)).unwrap();
    second.push(number(2)).unwrap();
    let mut receivers = [2, 3].map(|edge| expect(&edges, edge, &driving));
    let mut first = expect(&edges, 1, &listening);
    for (receiver, value) in receivers.iter_mut().zip([2, 3]) {
        assert_eq!(next(receiver), number(value));
    }
    assert_eq!(edges.missing(), [1]);
    let mut sender = sender_of(&driving, port, 7, 1);
    for value in 0..1_000 {
        sender.push(number(value)).unwrap();
        assert_eq!(next(&mut first), number(value));
    }
    sender.finish_and_wait(LONG).unwrap();
    assert_eq!(ending(&mut first), Ending::End);
    assert_eq!(edges.missing(), [] as [u64; 0]);
    let stats = edges.stats();
    assert_eq!((stats.accepted, stats.connected, stats.refused), (3, 3, 0));
}

/// What a port reads before it knows which edge a connection is goes to that edge.
#[test]
fn fillers_that_come_with_the_answer_do_not_keep_an_edge_from_its_elements() {
    let links = io();
    let (edges, port) = port_of_job(&links, LONG);
    let identity = Identity {
        job: 7,
        edge: 1,
        attempt: 1,
    };
    let options = SenderOptions {
        identity: Some(identity),
        ..SenderOptions::default()
    };
    let mut session = SenderSession::<Vec<u8>>::new(options, Duration::ZERO);
    let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut offer = [0; 4 + 5 + 80];
    peer.read_exact(&mut offer).unwrap();
    session.handle_input(Duration::ZERO, &offer);
    let mut bytes = Vec::new();
    for id in 1..4 {
        let barrier = Control::Barrier {
            id,
            mode: 0,
            terminal: false,
        };
        session.push_control(barrier).unwrap();
        while session.poll_transmit(&mut bytes).is_some() {
            assert_eq!(session.fill(&mut bytes), FILLER_BYTES);
        }
    }
    peer.write_all(&bytes).unwrap();
    // Some wait for the edge, the rest comes when it is there.
    let mut receiver = expect(&edges, 1, &links);
    for id in 1..4 {
        let expected = StreamElement::Barrier(Barrier::aligned(id));
        assert_eq!(next(&mut receiver), expected);
    }
    session.close(WireEnding::End);
    bytes.clear();
    while session.poll_transmit(&mut bytes).is_some() {}
    peer.write_all(&bytes).unwrap();
    assert_eq!(ending(&mut receiver), Ending::End);
}

#[test]
fn wrong_silent_and_foreign_peers_are_refused_and_hold_nobody_up() {
    let links = io();
    let (edges, port) = port_of_job(&links, Duration::from_millis(500));
    let mut receiver = expect(&edges, 1, &links);
    let silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut foreign = TcpStream::connect(("127.0.0.1", port)).unwrap();
    foreign.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut other_job = sender_of(&links, port, 8, 1);
    let mut unknown = sender_of(&links, port, 7, 9);
    let failure = failure_of(&mut other_job);
    assert!(
        matches!(failure.kind, FailureKind::WrongPeer(_)),
        "{failure}"
    );

    let mut sender = sender_of(&links, port, 7, 1);
    sender.push(number(1)).unwrap();
    assert_eq!(next(&mut receiver), number(1));
    let mut twice = sender_of(&links, port, 7, 1);
    let failure = failure_of(&mut twice).to_string();
    assert!(failure.contains("the edge has its sender"), "{failure}");
    let failure = failure_of(&mut unknown).to_string();
    assert!(failure.contains("edge 9 is not expected here"), "{failure}");
    until(LONG, "all are counted", || edges.stats().refused == 5);
    sender.push(number(2)).unwrap();
    assert_eq!(next(&mut receiver), number(2));
    drop((silent, foreign));
}

#[test]
fn a_receiver_whose_sender_never_comes_fails_when_the_port_goes() {
    let links = io();
    let (edges, _) = port_of_job(&links, LONG);
    let mut receiver = expect(&edges, 1, &links);
    drop(edges);
    let Popped::Ended(ending) = receiver.pop_timeout(LONG) else {
        panic!("nothing comes");
    };
    assert!(ending.to_string().contains("nobody connected"), "{ending}");
}

#[test]
fn links_are_driven_by_a_thread_of_ones_own() {
    let (handle, seed) = links().unwrap();
    let driving = thread::spawn(move || {
        let driver = open(DriverChoice::Auto).unwrap().driver;
        let mut links = Links::new(seed, driver, Clock::start()).unwrap();
        while links.has_handles() || links.is_needed() {
            if links.turn() == 0 {
                links.park(Duration::from_millis(50));
            }
        }
    });
    passes(&handle, &handle);
    drop(handle);
    driving.join().unwrap();
}

/// Sends a stream over a connection between these two.
fn passes(sending: &LinksHandle, receiving: &LinksHandle) {
    let (out, back) = pair();
    let mut sender = send_over(sending, out.into(), parts(RemoteOptions::default())).unwrap();
    let parts = parts(RemoteOptions::default());
    let mut receiver = receive_over(receiving, back.into(), parts).unwrap();
    for value in 0..1_000 {
        sender.push(number(value)).unwrap();
    }
    sender.finish().unwrap();
    for value in 0..1_000 {
        assert_eq!(next(&mut receiver), number(value));
    }
    assert_eq!(ending(&mut receiver), Ending::End);
}

#[test]
fn a_worker_of_either_host_drives_connections_until_they_have_arrived() {
    for kind in [HostKind::Thread, HostKind::Glommio] {
        for policy in [IdlePolicy::Adaptive, IdlePolicy::Park] {
            let (out, back) = pair();
            let bell = Bell::descriptor().unwrap();
            let (handle, seed) = links_with(bell.clone());
            let mut sender =
                send_over(&handle, out.into(), parts(RemoteOptions::default())).unwrap();
            let thread = WorkerThread {
                name: "worker".to_owned(),
                cpu: None,
                policy,
            };
            let (commands, events) = (
                ring(4, Bell::thread(), bell.clone()),
                ring(4, bell.clone(), Bell::thread()),
            );
            let (_commands, commands) = commands;
            let (events, _events) = events;
            let worker = Host::new(kind).spawn(thread, move || {
                let driver = open(DriverChoice::Auto).unwrap().driver;
                let clock = Clock::start();
                let links = Links::new(seed, driver, clock).unwrap();
                Worker::new(vec![], clock, bell, commands, events).with_links(links)
            });
            let parts = parts(RemoteOptions::default());
            let mut receiver = receive_over(&io(), back.into(), parts).unwrap();
            for value in 0..300 {
                sender.push(number(value)).unwrap();
                // Some when it sleeps.
                if value % 100 == 0 {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            sender.finish().unwrap();
            for value in 0..300 {
                assert_eq!(next(&mut receiver), number(value));
            }
            assert_eq!(ending(&mut receiver), Ending::End);
            worker.unwrap().join().unwrap();
        }
    }
}

#[test]
fn barriers_of_any_mode_stay_in_order_unless_the_edge_lets_them_overtake() {
    for remote in [RemoteOptions::default(), RemoteOptions::version_1()] {
        let (out, back) = pair();
        let mut sender = send_over(&io(), out.into(), parts(remote.clone())).unwrap();
        let mut receiver = receive_over(&io(), back.into(), parts(remote)).unwrap();
        let sent = [
            number(1),
            StreamElement::Barrier(Barrier::unaligned(1)),
            number(2),
            StreamElement::Barrier(Barrier::unaligned(2)),
        ];
        for element in sent.clone() {
            sender.push(element).unwrap();
        }
        sender.finish_and_wait(LONG).unwrap();
        for element in sent {
            assert_eq!(next(&mut receiver), element);
        }
        assert_eq!(ending(&mut receiver), Ending::End);
    }
}

/// What a receiver gets: rows, and the ending.
fn rows_of(receiver: &mut Receiver<RecordBatch>) -> (usize, Ending) {
    let mut rows = 0;
    loop {
        match receiver.pop_timeout(LONG) {
            Popped::Element(StreamElement::Data(batch)) => rows += batch.num_rows(),
            Popped::Ended(ending) => return (rows, ending),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_peer_that_sends_broken_arrow_fails_its_own_edge_and_the_next_is_served() {
    let folder = bad_ipc();
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Vec<serde_json::Value> = serde_json::from_slice(&manifest).unwrap();
    let good = recorded("ok_int_utf8");
    let plane = DataPlane::new();
    let options = ListenOptions::new("127.0.0.1", 0).remote(RemoteOptions::version_1());
    let codec = Arc::new(Columns::any());
    let bell = Bell::thread();
    let listener = plane.listen_for_streams(options, bell, codec, 256).unwrap();
    let stream_of = |body: &[u8]| {
        let mut peer = TcpStream::connect(("127.0.0.1", listener.port())).unwrap();
        peer.write_all(&frame(body)).unwrap();
        peer.write_all(&CLOSE).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let mut accepted = listener.accept(Some(LONG)).unwrap();
        let got = rows_of(&mut accepted.receiver);
        // Nothing is left of the connection afterwards.
        peer.set_read_timeout(Some(LONG)).unwrap();
        let mut grants = Vec::new();
        let _ = peer.read_to_end(&mut grants);
        got
    };
    assert!(manifest.len() > 50);
    for case in &manifest {
        let name = case["name"].as_str().unwrap();
        let body = fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        let (rows, ending) = stream_of(&body);
        match case["expect"].as_str().unwrap() {
            "accept" => {
                assert_eq!(ending, Ending::End, "{name}");
                assert_eq!(Some(rows as u64), case["rows"].as_u64(), "{name}");
            }
            "reject" => {
                let Ending::Failed(failure) = &ending else {
                    panic!("{name} is taken: {ending}");
                };
                let kind = &failure.kind;
                assert!(
                    matches!(kind, FailureKind::Undecodable(_)),
                    "{name}: {kind}"
                );
                assert!(!kind.to_string().contains("panicked"), "{name}: {kind}");
            }
            _ => {}
        }
        assert_eq!(stream_of(&good), (3, Ending::End), "after {name}");
    }
}

#[test]
fn broken_frames_say_what_is_broken() {
    let cases: [(&[u8], &str); 5] = [
        (&[0, 0, 0, 0], "length 0"),
        (&[0xff; 4], "above the limit"),
        (&[0, 0, 0, 2, 0, 0], "kind 0"),
        (
            &[0, 0, 0, 2, 1, 0],
            "Watermark (1) frame with a body of 1 bytes",
        ),
        (&[0, 0, 0, 9, 1], "ended inside of a frame"),
    ];
    for (bytes, expected) in cases {
        let (mut out, back) = pair();
        let mut receiver = receive_over(&io(), back.into(), parts(RemoteOptions::default()));
        let receiver = receiver.as_mut().unwrap();
        out.write_all(bytes).unwrap();
        out.shutdown(Shutdown::Write).unwrap();
        let Ending::Failed(failure) = ending(receiver) else {
            panic!("{bytes:?} is no end");
        };
        let FailureKind::Protocol(text) = &failure.kind else {
            panic!("{bytes:?}: {failure}");
        };
        assert!(text.contains(expected), "{bytes:?}: {text}");
    }
}
