//! What the registry promises to those who listen and connect.

use std::time::Duration;

use super::*;
use crate::batch::{Row, Rows};
use crate::clock::Clock;
use crate::edge::{EdgeOptions, Failure, Popped, RejectReason, Transport};
use crate::element::StreamElement;
use crate::limits::RECEIVE_CAPACITY_ELEMENTS;

type Numbers = Rows<i64>;

fn listen(plane: &DataPlane, options: ListenOptions) -> Listener<Numbers> {
    plane.listen_local(options, Bell::thread()).unwrap()
}

fn connect(plane: &DataPlane, host: &str, port: u16) -> Result<Sender<Numbers>, ConnectError> {
    plane.connect_local(host, port, Bell::thread())
}

fn row(value: i64) -> StreamElement<Numbers> {
    StreamElement::Data(Rows::from(vec![Row::untimed(value)]))
}

#[test]
fn a_sender_reaches_the_listener_over_a_ring_and_both_say_so() {
    let plane = DataPlane::new();
    let listener = listen(&plane, ListenOptions::new("127.0.0.1", 9_000));
    assert!(listener.try_accept().is_none());
    let mut sender = connect(&plane, "127.0.0.1", 9_000).unwrap();
    assert!(listener.is_connected());
    let mut receiver = listener.accept().unwrap();
    assert_eq!(sender.transport(), Transport::Local);
    assert_eq!(receiver.transport(), Transport::Local);
    assert_eq!(sender.name(), "127.0.0.1:9000");
    assert_eq!(sender.capacity(), RECEIVE_CAPACITY_ELEMENTS);
    sender.try_push(row(1)).unwrap();
    assert_eq!(receiver.try_pop(), Popped::Element(row(1)));
    assert_eq!(listener.accept().unwrap_err(), AcceptError::AlreadyTaken);
}

#[test]
fn what_was_pushed_before_the_accept_is_not_lost() {
    let plane = DataPlane::new();
    let listener = listen(&plane, ListenOptions::new("127.0.0.1", 9_000));
    let mut sender = connect(&plane, "127.0.0.1", 9_000).unwrap();
    sender.try_push(row(1)).unwrap();
    sender.finish().unwrap();
    let mut receiver = listener.try_accept().unwrap();
    assert_eq!(receiver.try_pop(), Popped::Element(row(1)));
    assert_eq!(receiver.try_pop(), Popped::Ended(crate::edge::Ending::End));
}

#[test]
fn every_name_of_a_wildcard_finds_it_until_the_listener_is_dropped() {
    for (bind, loopback) in [("0.0.0.0", "127.0.0.1"), ("::", "::1")] {
        let plane = DataPlane::new();
        let options = || ListenOptions::new(bind, 51_999).advertised("worker-3");
        for host in [bind, "Worker-3", loopback, "localhost", "[::1]"] {
            let listener = listen(&plane, options());
            connect(&plane, host, 51_999).unwrap();
            drop(listener);
            let error = connect(&plane, host, 51_999).unwrap_err();
            assert!(matches!(error, ConnectError::NotListening { .. }), "{host}");
        }
        let _listener = listen(&plane, options());
        for (host, port) in [("worker-9", 51_999), ("localhost", 51_998)] {
            let error = connect(&plane, host, port).unwrap_err();
            assert!(error.to_string().contains(&format!("{host}:{port}")));
        }
        assert_eq!(plane.stats().listening, 1);
    }
}

#[test]
fn a_loopback_listener_is_not_found_under_other_names() {
    let plane = DataPlane::new();
    let _listener = listen(&plane, ListenOptions::new("127.0.0.1", 9_000));
    for host in ["0.0.0.0", "localhost", "worker"] {
        assert!(connect(&plane, host, 9_000).is_err(), "{host}");
    }
}

#[test]
fn an_endpoint_has_one_sender_in_its_life() {
    let plane = DataPlane::new();
    let listener = listen(&plane, ListenOptions::new("0.0.0.0", 9_000));
    let first = connect(&plane, "localhost", 9_000).unwrap();
    let second = || connect(&plane, "127.0.0.1", 9_000).unwrap_err();
    let expected = ConnectError::AlreadyConnected {
        endpoint: "127.0.0.1:9000".into(),
    };
    assert_eq!(second(), expected, "before the accept");
    let receiver = listener.accept().unwrap();
    assert_eq!(second(), expected, "after the accept");
    drop((first, receiver));
    assert_eq!(second(), expected, "after both ends are gone");
}

#[test]
fn a_sender_of_another_payload_is_refused_with_both_types_and_the_right_one_still_gets_in() {
    let plane = DataPlane::new();
    let _listener = listen(&plane, ListenOptions::new("127.0.0.1", 9_000));
    let bell = Bell::thread();
    let error = plane
        .connect_local::<Rows<String>>("127.0.0.1", 9_000, bell)
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("Rows<i64>"), "{text}");
    assert!(text.contains("Rows<alloc::string::String>"), "{text}");
    connect(&plane, "127.0.0.1", 9_000).unwrap();
}

#[test]
fn a_name_is_refused_while_its_listener_lives() {
    let plane = DataPlane::new();
    let first = listen(
        &plane,
        ListenOptions::new("10.0.0.1", 9_000).advertised("worker"),
    );
    let again = |bind: &str, advertised: &str| {
        let options = ListenOptions::new(bind, 9_000).advertised(advertised);
        plane.listen_local::<Numbers>(options, Bell::thread())
    };
    let taken = |endpoint: &str| ListenError::InUse {
        endpoint: endpoint.into(),
    };
    assert_eq!(again("10.0.0.1", "x").unwrap_err(), taken("10.0.0.1:9000"));
    assert_eq!(
        again("10.0.0.2", "worker").unwrap_err(),
        taken("worker:9000")
    );
    assert_eq!(again("0.0.0.0", "x").unwrap_err(), taken("0.0.0.0:9000"));
    assert_eq!(plane.stats().listening, 1, "a refused one leaves nothing");
    let _other = again("10.0.0.2", "other").unwrap();
    drop(first);
    let _new = again("10.0.0.1", "worker").unwrap();
}

#[test]
fn port_0_takes_a_number_of_its_own() {
    let plane = DataPlane::new();
    let listeners: Vec<_> = (0..3)
        .map(|_| listen(&plane, ListenOptions::new("127.0.0.1", 0)))
        .collect();
    for listener in &listeners {
        assert_eq!(
            listener.edge().name,
            format!("127.0.0.1:{}", listener.port())
        );
        connect(&plane, "127.0.0.1", listener.port()).unwrap();
    }
    let last = listeners[2].port();
    drop(listeners);
    let next = listen(&plane, ListenOptions::new("127.0.0.1", 0)).port();
    assert_ne!(next, last, "a number is not given out again at once");
}

#[test]
fn port_0_says_so_when_every_number_is_taken() {
    let plane = DataPlane::new();
    let all: Vec<_> = (49_152..=65_535)
        .map(|port| listen(&plane, ListenOptions::new("127.0.0.1", port)))
        .collect();
    let error = plane.listen_local::<Numbers>(ListenOptions::new("127.0.0.1", 0), Bell::thread());
    assert_eq!(
        error.unwrap_err(),
        ListenError::NoFreePort { ports: all.len() }
    );
}

#[test]
fn switched_off_it_refuses_and_names_who_switched_it_off() {
    let plane = DataPlane::new();
    let listener = listen(&plane, ListenOptions::new("127.0.0.1", 9_000));
    let refused = |by: OffReason| {
        let error = connect(&plane, "127.0.0.1", 9_000).unwrap_err();
        let endpoint = "127.0.0.1:9000".into();
        assert_eq!(error, ConnectError::LocalDisabled { endpoint, by });
        assert!(error.to_string().contains("no other transport"), "{error}");
    };
    let outer = plane.local_off();
    let inner = plane.local_off();
    drop(outer);
    refused(OffReason::Scope);
    plane.set_local_enabled(false);
    drop(inner);
    refused(OffReason::Flag);
    let forced = ConnectOptions::default().transport(TransportChoice::Local);
    let forced = plane.connect::<Numbers>("127.0.0.1", 9_000, Bell::thread(), forced);
    assert!(matches!(forced, Err(ConnectError::LocalDisabled { .. })));
    assert!(!listener.is_connected());
    plane.set_local_enabled(true);
    let mut sender = connect(&plane, "127.0.0.1", 9_000).unwrap();
    let _off = plane.local_off();
    sender.try_push(row(1)).unwrap();
    let stats = plane.stats();
    assert_eq!((stats.hits, stats.refused, stats.listening), (1, 3, 1));
}

#[test]
fn a_listener_that_goes_without_accepting_fails_its_sender() {
    let plane = DataPlane::new();
    let options = ListenOptions::new("127.0.0.1", 9_000).edge(EdgeOptions::named("a -> b"));
    let listener = listen(&plane, options);
    let mut sender = connect(&plane, "127.0.0.1", 9_000).unwrap();
    drop(listener);
    let rejected = sender.try_push(row(1)).unwrap_err();
    assert_eq!(
        rejected.reason,
        RejectReason::Failed(Failure::peer_lost("a -> b"))
    );
}

#[test]
fn an_accepted_edge_outlives_its_listener() {
    let plane = DataPlane::new();
    let listener = listen(&plane, ListenOptions::new("127.0.0.1", 9_000));
    let mut sender = connect(&plane, "127.0.0.1", 9_000).unwrap();
    let mut receiver = listener.accept().unwrap();
    drop(listener);
    sender.try_push(row(1)).unwrap();
    assert_eq!(receiver.try_pop(), Popped::Element(row(1)));
}

#[test]
fn waiting_for_a_sender_ends_when_it_connects_or_the_time_is_over() {
    let plane = DataPlane::new();
    let bell = Bell::thread();
    let options = ListenOptions::new("127.0.0.1", 9_000);
    let listener = plane
        .listen_local::<Numbers>(options, bell.clone())
        .unwrap();
    let short = Duration::from_millis(5);
    assert_eq!(
        listener.accept_timeout(short).unwrap_err(),
        AcceptError::TimedOut
    );
    std::thread::scope(|scope| {
        let clock = Clock::start();
        let accepting = scope.spawn(|| listener.accept_timeout(Duration::from_secs(60)));
        while !bell.is_armed() {
            std::thread::yield_now();
        }
        let _sender = connect(&plane, "127.0.0.1", 9_000).unwrap();
        assert!(accepting.join().unwrap().is_ok());
        let waited = clock.now().0;
        assert!(waited < Duration::from_secs(30), "the wake-up was lost");
    });
}

#[test]
fn the_registry_of_the_process_is_one_and_others_are_their_own() {
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = listen(&DataPlane::process(), options);
    let port = listener.port();
    assert!(connect(&DataPlane::new(), "127.0.0.1", port).is_err());
    assert!(connect(&DataPlane::process(), "127.0.0.1", port).is_ok());
}

fn over_a_socket(
    plane: &DataPlane,
    port: u16,
    patience: Duration,
) -> Result<Sender<Numbers>, ConnectError> {
    let options = ConnectOptions::default().transport(TransportChoice::Socket);
    plane.connect("localhost", port, Bell::thread(), options.within(patience))
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_socket_can_be_forced_and_is_really_one() {
    let plane = DataPlane::new();
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = plane.listen::<Numbers>(options, Bell::thread()).unwrap();
    let mut sender = over_a_socket(&plane, listener.port(), LONG).unwrap();
    let mut receiver = listener.accept_timeout(LONG).unwrap();
    assert_eq!(sender.transport(), Transport::Socket);
    assert_eq!(receiver.transport(), Transport::Socket);
    sender.push(row(1)).unwrap();
    assert_eq!(receiver.pop_timeout(LONG), Popped::Element(row(1)));
    assert!(receiver.remote_stats().unwrap().driver.is_some());
    let stats = plane.stats();
    assert_eq!((stats.hits, stats.connections, stats.refused), (0, 1, 0));
}

#[test]
fn another_registry_reaches_the_listener_by_its_port() {
    let (here, there) = (DataPlane::new(), DataPlane::new());
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = here.listen::<Numbers>(options, Bell::thread()).unwrap();
    let options = ConnectOptions::default();
    let port = listener.port();
    let mut sender = there
        .connect("127.0.0.1", port, Bell::thread(), options)
        .unwrap();
    assert_ne!(sender.transport(), Transport::Local);
    let mut receiver: crate::edge::Receiver<Numbers> = listener.accept_timeout(LONG).unwrap();
    sender.push(row(1)).unwrap();
    sender.finish_and_wait(LONG).unwrap();
    assert_eq!(receiver.pop_timeout(LONG), Popped::Element(row(1)));
    assert_eq!(
        receiver.pop_timeout(LONG),
        Popped::Ended(crate::edge::Ending::End)
    );
}

#[test]
fn nobody_at_the_other_end_is_an_error_that_says_where_it_was_tried() {
    let plane = DataPlane::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = over_a_socket(&plane, port, Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    assert_eq!(plane.stats().refused, 1);
}

#[test]
fn a_port_that_is_in_use_is_an_error() {
    let plane = DataPlane::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let options = ListenOptions::new("127.0.0.1", port);
    let error = plane
        .listen::<Numbers>(options, Bell::thread())
        .unwrap_err();
    assert!(
        matches!(&error, ListenError::Bind(text) if text.contains("in use")),
        "{error}"
    );
}

#[test]
fn streams_come_at_one_port_and_wait_for_a_place() {
    let plane = DataPlane::new();
    let codec = <Numbers as crate::wire::Wired>::codec();
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = plane
        .listen_for_streams(options, Bell::thread(), codec, 2)
        .unwrap();
    let mut senders: Vec<_> = (0..3)
        .map(|_| over_a_socket(&plane, listener.port(), LONG).unwrap())
        .collect();
    let mut streams: Vec<_> = (0..2)
        .map(|_| listener.accept(Some(LONG)).unwrap())
        .collect();
    let short = Some(Duration::from_millis(50));
    assert_eq!(listener.accept(short).unwrap_err(), AcceptError::TimedOut);
    for (value, sender) in senders.iter_mut().enumerate() {
        sender.push(row(value as i64)).unwrap();
    }
    let mut values = vec![];
    for _ in 0..3 {
        let mut stream = match streams.pop() {
            Some(stream) => stream,
            None => listener.accept(Some(LONG)).unwrap(),
        };
        let Popped::Element(StreamElement::Data(rows)) = stream.receiver.pop_timeout(LONG) else {
            panic!("a row comes")
        };
        values.push(rows.into_vec()[0].value);
    }
    values.sort();
    assert_eq!(values, [0, 1, 2]);
}

/// A driver that cannot listen, such as a simulated one at a socket of the kernel.
fn links_that_cannot_listen() -> (crate::edge::remote::LinksHandle, crate::edge::remote::Links) {
    use ringway_netio::driver::sim::{SimDriver, SimNetwork, SimOptions};
    let (handle, seed) = crate::edge::remote::links().unwrap();
    let network = SimNetwork::new(SimOptions::default());
    let driver = Box::new(SimDriver::new(&network).unwrap());
    let links = crate::edge::remote::Links::new(seed, driver, Clock::start()).unwrap();
    (handle, links)
}

#[test]
fn a_listener_whose_driver_cannot_listen_says_so_instead_of_waiting() {
    let (handle, mut links) = links_that_cannot_listen();
    let plane = DataPlane::new();
    let options = || ListenOptions::new("127.0.0.1", 0).links(handle.clone());
    let one = plane.listen::<Numbers>(options(), Bell::thread()).unwrap();
    let many = plane
        .listen_for_streams(options(), Bell::thread(), Numbers::codec(), 2)
        .unwrap();
    links.turn();
    for failed in [one.accept().map(drop), many.accept(None).map(drop)] {
        let Err(AcceptError::Failed(why)) = failed else {
            panic!("nobody can connect, not {failed:?}");
        };
        assert!(why.contains("the driver cannot listen"), "{why}");
    }
}

#[test]
fn a_listener_whose_thread_has_ended_says_so_instead_of_waiting() {
    let (handle, links) = links_that_cannot_listen();
    let plane = DataPlane::new();
    let options = ListenOptions::new("127.0.0.1", 0).links(handle);
    let listener = plane.listen::<Numbers>(options, Bell::thread()).unwrap();
    drop(links);
    let failed = listener.accept().unwrap_err().to_string();
    assert!(failed.contains("has ended"), "{failed}");
}
