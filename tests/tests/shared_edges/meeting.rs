//! How the two ends of a connection find out that they are on one host.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Clock;
use ringway::data_plane::{
    ConnectError, ConnectOptions, DataPlane, ListenOptions, TransportChoice,
};
use ringway::edge::remote::{
    EdgePortOptions, Links, RemoteOptions, RemoteParts, links, listen_for_edges, receive_over,
    send_later, send_over,
};
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Ending, Receiver, Sender, Transport};
use ringway::wire::Wired;
use ringway_netio::driver::DriverChoice;
use ringway_netio::frame::Identity;
use ringway_shm::Bell;
use ringway_tests::conformance::subjects::RemoteEdge;
use ringway_tests::within::{LONG, until};

use crate::rig::{all, are_all, data};

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (out, listener.accept().unwrap().0)
}

fn open(
    sending: RemoteOptions,
    receiving: RemoteOptions,
) -> (Sender<RecordBatch>, Receiver<RecordBatch>) {
    let links = RemoteEdge::new("meeting", DriverChoice::Auto, RemoteOptions::default());
    let (out, back) = pair();
    let edge = EdgeOptions::named("edge");
    let sender = links.with(|remote| *remote = sending).sender(out, &edge);
    let receiver = links
        .with(|remote| *remote = receiving)
        .receiver(back, &edge);
    (sender, receiver)
}

fn wants(sharing: Sharing) -> RemoteOptions {
    RemoteOptions::default().sharing(sharing)
}

#[test]
fn a_thread_that_drives_a_receiver_may_end_once_the_end_was_taken() {
    let (handle, seed) = links().unwrap();
    let driving = thread::spawn(move || {
        let driver = ringway_netio::driver::open(DriverChoice::Auto)
            .unwrap()
            .driver;
        let mut links = Links::new(seed, driver, Clock::start()).unwrap();
        while links.has_handles() || links.is_needed() {
            if links.turn() == 0 {
                links.park(Duration::from_millis(50));
            }
        }
    });
    let (out, back) = pair();
    let parts = || RemoteParts {
        edge: EdgeOptions::named("edge"),
        remote: wants(Sharing::Require),
        codec: RecordBatch::codec(),
        peer: "peer".to_owned(),
        bell: Bell::thread(),
    };
    let mut receiver = receive_over::<RecordBatch>(&handle, back.into(), parts()).unwrap();
    let mut sender = send_over::<RecordBatch>(&handle, out.into(), parts()).unwrap();
    sender.push(data(0..10)).unwrap();
    sender.finish().unwrap();
    let (batches, ending) = all(&mut receiver);
    assert_eq!((batches.len(), &ending), (1, &Ending::End));
    assert_eq!(receiver.transport(), Transport::Shared);
    drop(handle);
    until(LONG, "the thread has ended", || driving.is_finished());
    drop(receiver);
}

#[test]
fn what_is_pushed_before_they_have_met_comes_first() {
    let edge = RemoteEdge::new("meeting", DriverChoice::Auto, wants(Sharing::Require));
    for finishes_before in [false, true] {
        let (out, back) = pair();
        let parts = RemoteParts {
            edge: EdgeOptions::named("edge"),
            remote: wants(Sharing::Require),
            codec: RecordBatch::codec(),
            peer: "peer".to_owned(),
            bell: Bell::thread(),
        };
        let (mut sender, seat) = send_later::<RecordBatch>(edge.sending(), parts);
        for number in 0..10 {
            sender.try_push(data(number..number + 1)).unwrap();
        }
        assert_eq!(sender.poll_transport(), None);
        let mut receiver = edge.receiver(back, &EdgeOptions::named("edge"));
        if finishes_before {
            sender.finish().unwrap();
            seat.connect(out.into()).unwrap();
        } else {
            seat.connect(out.into()).unwrap();
            for number in 10..20 {
                sender.push(data(number..number + 1)).unwrap();
            }
            until(LONG, "they have met", || {
                sender.poll_transport() == Some(Transport::Shared)
            });
            let metrics = sender.metrics();
            assert_eq!((metrics.elements, metrics.rows), (20, 20));
            sender.finish().unwrap();
        }
        let (batches, ending) = all(&mut receiver);
        assert_eq!(ending, Ending::End);
        are_all(&batches, if finishes_before { 10 } else { 20 });
        assert_eq!(receiver.transport(), Transport::Shared);
    }
}

#[test]
fn where_one_end_does_not_want_to_the_edge_goes_over_its_socket_and_says_why() {
    for (sending, receiving) in [
        (wants(Sharing::Prefer), wants(Sharing::Off)),
        (wants(Sharing::Off), wants(Sharing::Prefer)),
        (wants(Sharing::Prefer), RemoteOptions::version_1()),
        (RemoteOptions::version_1(), wants(Sharing::Prefer)),
    ] {
        let names_why = (
            sending.shared.sharing != Sharing::Off,
            receiving.shared.sharing != Sharing::Off,
        );
        let (mut sender, mut receiver) = open(sending, receiving);
        sender.push(data(0..10)).unwrap();
        sender.push(data(10..20)).unwrap();
        until(LONG, "it is decided", || sender.poll_transport().is_some());
        assert_eq!(sender.transport(), Transport::Socket);
        assert_eq!(sender.why_not_shared().is_some(), names_why.0);
        sender.finish().unwrap();
        let (batches, ending) = all(&mut receiver);
        assert_eq!(ending, Ending::End);
        are_all(&batches, 20);
        assert_eq!(receiver.poll_transport(), Some(Transport::Socket));
        assert_eq!(receiver.why_not_shared().is_some(), names_why.1);
    }
}

#[test]
fn where_it_is_required_and_can_not_be_both_ends_fail() {
    for (sending, receiving) in [
        (wants(Sharing::Require), wants(Sharing::Off)),
        (wants(Sharing::Off), wants(Sharing::Require)),
        (wants(Sharing::Require), RemoteOptions::version_1()),
    ] {
        let speaks_both = receiving.negotiation == RemoteOptions::default().negotiation;
        let (mut sender, mut receiver) = open(sending, receiving);
        until(LONG, "the sender fails", || sender.is_closed());
        let reason = sender.try_push(data(0..1)).unwrap_err().reason.to_string();
        assert!(reason.contains("no shared memory"), "{reason}");
        let (batches, ending) = all(&mut receiver);
        assert!(batches.is_empty());
        let Ending::Failed(failure) = ending else {
            panic!("failed, not {ending}");
        };
        let told = failure.to_string().contains("no shared memory");
        assert!(told || !speaks_both, "{failure}");
    }
}

#[test]
fn a_segment_above_what_the_receiver_takes_is_refused_with_both_sizes() {
    for sharing in [Sharing::Require, Sharing::Prefer] {
        let mut receiving = wants(sharing);
        receiving.shared.segment_bytes_max = 512 << 10;
        let (mut sender, mut receiver) = open(wants(sharing), receiving);
        // It may have been refused by now.
        let _ = sender.push(data(0..10));
        until(LONG, "it is decided", || {
            sender.poll_transport().is_some() || sender.is_closed()
        });
        let _ = sender.finish();
        let (batches, ending) = all(&mut receiver);
        let why = match (sharing, ending) {
            (Sharing::Require, Ending::Failed(failure)) => failure.to_string(),
            (Sharing::Prefer, Ending::End) => {
                are_all(&batches, 10);
                receiver.why_not_shared().unwrap().to_owned()
            }
            (_, ending) => panic!("{sharing:?}: {ending}"),
        };
        assert!(why.contains("at most 524288 are mapped"), "{why}");
        assert_eq!(receiver.transport(), Transport::Socket);
    }
}

/// The connections of a job's edges have been greeted when their receivers get them.
#[test]
fn the_receiver_of_an_edge_of_a_job_learns_that_its_sender_is_gone() {
    for driver in [DriverChoice::Auto, DriverChoice::Epoll] {
        let edge = RemoteEdge::new("meeting", driver, wants(Sharing::Require));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let identity = Identity {
            job: 7,
            edge: 3,
            attempt: 1,
        };
        let options = EdgePortOptions {
            job: identity.job,
            attempt: identity.attempt,
            bytes_max: 1 << 20,
            remote: wants(Sharing::Prefer),
        };
        let port = listen_for_edges(edge.receiving(), listener.into(), options).unwrap();
        let named = EdgeOptions::named("edge");
        let mut receiver = port
            .expect_sharing::<RecordBatch>(
                identity.edge,
                &named,
                RecordBatch::codec(),
                Bell::thread(),
                edge.receiving(),
                Sharing::Require,
            )
            .unwrap();
        let out = TcpStream::connect(address).unwrap();
        let cut = out.try_clone().unwrap();
        let identified = edge.with(|remote| *remote = remote.clone().identity(identity));
        let mut sender: Sender<RecordBatch> = identified.sender(out, &named);
        sender.push(data(0..10)).unwrap();
        until(LONG, "they have met", || {
            sender.poll_transport() == Some(Transport::Shared)
        });
        // As if its process were killed: no word, and no connection any more.
        cut.shutdown(Shutdown::Both).unwrap();
        let (batches, ending) = all(&mut receiver);
        are_all(&batches, 10);
        assert!(matches!(ending, Ending::Failed(_)), "{ending}");
        assert_eq!(receiver.transport(), Transport::Shared);
    }
}

#[test]
fn a_data_plane_gives_the_best_that_both_ends_allow() {
    let plane = DataPlane::new();
    let _off = plane.local_off();
    for (asked, allowed, expected) in [
        (
            TransportChoice::Auto,
            TransportChoice::Auto,
            Ok(Transport::Shared),
        ),
        (
            TransportChoice::Shared,
            TransportChoice::Auto,
            Ok(Transport::Shared),
        ),
        (
            TransportChoice::Auto,
            TransportChoice::Shared,
            Ok(Transport::Shared),
        ),
        (
            TransportChoice::Socket,
            TransportChoice::Auto,
            Ok(Transport::Socket),
        ),
        (
            TransportChoice::Auto,
            TransportChoice::Socket,
            Ok(Transport::Socket),
        ),
        (TransportChoice::Shared, TransportChoice::Socket, Err(())),
    ] {
        let options = ListenOptions::new("127.0.0.1", 0).transport(allowed);
        let listener = plane
            .listen::<RecordBatch>(options, Bell::thread())
            .unwrap();
        let options = ConnectOptions::default().transport(asked).within(LONG);
        let port = listener.port();
        let connected = plane.connect::<RecordBatch>("127.0.0.1", port, Bell::thread(), options);
        match (connected, expected) {
            (Ok(mut sender), Ok(transport)) => {
                let mut receiver = listener.accept().unwrap();
                sender.push(data(0..10)).unwrap();
                until(LONG, "it is decided", || sender.poll_transport().is_some());
                assert_eq!(sender.transport(), transport, "{asked} and {allowed}");
                sender.finish().unwrap();
                are_all(&all(&mut receiver).0, 10);
            }
            (Err(ConnectError::NotShared { why, .. }), Err(())) => {
                assert!(why.contains("no shared memory"), "{why}");
            }
            (connected, expected) => panic!("{connected:?} where {expected:?} is expected"),
        }
    }
}
