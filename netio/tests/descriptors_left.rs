//! Nothing is left of a driver that is dropped, whatever it was about to do: no descriptor, no
//! reference to what it was to send, no connection. It stands alone, because descriptors are
//! counted for the process.

#![allow(clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use ringway_netio::buffer::{Body, BodyPool};
use ringway_netio::driver::{Completion, ConnectionId, Driver, EpollDriver, UringDriver};
use ringway_netio::probe;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::sockopt::set_socket_linger;

const LONG: Duration = Duration::from_secs(30);

/// A driver, and a connection of it with its peer.
struct Stage {
    driver: Box<dyn Driver>,
    connection: ConnectionId,
    peer: TcpStream,
    /// What it is to send. The driver may have taken a part of it.
    queue: VecDeque<Bytes>,
    pool: BodyPool,
}

/// What is done before the driver is dropped, by name.
const STATES: [(&str, fn(&mut Stage)); 16] = [
    ("nothing", |_| {}),
    ("reading", |stage| {
        stage.driver.set_reading(stage.connection, true);
        stage.settle();
    }),
    ("asked to read, not polled", |stage| {
        stage.driver.set_reading(stage.connection, true);
    }),
    ("bytes that nobody took", |stage| {
        stage.driver.set_reading(stage.connection, true);
        stage.settle();
        stage.peer.write_all(&[1; 100_000]).unwrap();
        thread::sleep(Duration::from_millis(5));
    }),
    ("bytes that a wait has found", |stage| {
        stage.driver.set_reading(stage.connection, true);
        stage.settle();
        stage.peer.write_all(&[1; 1000]).unwrap();
        stage.driver.wait(Some(LONG)).unwrap();
    }),
    ("amid a body", |stage| {
        let body = stage.pool.body(400_000);
        stage.driver.read_body(stage.connection, body);
        stage.settle();
        stage.peer.write_all(&[1; 1000]).unwrap();
        stage.settle();
    }),
    ("a body that nobody took", |stage| {
        stage.peer.shutdown(Shutdown::Write).unwrap();
        stage.driver.set_reading(stage.connection, true);
        stage.settle();
        stage.driver.read_body(stage.connection, Body::new(10));
    }),
    ("a send in flight", |stage| {
        stage.driver.send(stage.connection, &mut stage.queue);
        stage.settle();
    }),
    ("a send in flight, not polled", |stage| {
        stage.driver.send(stage.connection, &mut stage.queue);
    }),
    ("the last send in flight", |stage| {
        stage.driver.send(stage.connection, &mut stage.queue);
        stage.driver.shutdown_write(stage.connection);
        stage.settle();
    }),
    ("given back after a send", |stage| {
        stage.driver.send(stage.connection, &mut stage.queue);
        stage.driver.detach(stage.connection);
        stage.settle();
    }),
    ("given back, and nobody took it", |stage| {
        stage.driver.detach(stage.connection);
    }),
    ("closing amid everything", |stage| {
        stage.driver.set_reading(stage.connection, true);
        stage.driver.send(stage.connection, &mut stage.queue);
        stage.settle();
        stage.driver.close(stage.connection);
    }),
    ("broken, and nobody was told", |stage| {
        stage.driver.set_reading(stage.connection, true);
        stage.driver.send(stage.connection, &mut stage.queue);
        stage.settle();
        set_socket_linger(&stage.peer, Some(Duration::ZERO)).unwrap();
        stage.peer = pair().0;
        thread::sleep(Duration::from_millis(5));
    }),
    ("accepted, and nobody took it", |stage| {
        let address = stage.listen();
        stage.settle();
        let _peers = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        thread::sleep(Duration::from_millis(5));
        stage.driver.wait(Some(LONG)).unwrap();
    }),
    ("listening and watching", |stage| {
        stage.listen();
        let bell = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        stage.driver.watch(bell).unwrap();
        stage.driver.wait(Some(Duration::from_millis(1))).unwrap();
        let _ = stage.driver.as_fd();
    }),
];

#[test]
fn nothing_is_left_of_a_driver_that_is_dropped_in_any_state() {
    over(|| Box::new(EpollDriver::new().unwrap()));
    match UringDriver::new() {
        Ok(_) => over(|| Box::new(UringDriver::new().unwrap())),
        Err(denial) => assert_eq!(probe::driver().usable(), Err(denial)),
    }
}

fn over(open: impl Fn() -> Box<dyn Driver>) {
    for (state, prepare) in STATES {
        // What is made once in a process is there afterwards.
        play(open(), prepare);
        let before = descriptors();
        play(open(), prepare);
        assert_eq!(descriptors(), before, "{state}");
    }
}

/// Brings a driver into a state and drops it. Its peer sees the end of the connection.
fn play(mut driver: Box<dyn Driver>, prepare: fn(&mut Stage)) {
    let (near, peer) = pair();
    let connection = driver.attach(near.into()).unwrap();
    let sent = Bytes::from(vec![7; 30 << 20]);
    let mut stage = Stage {
        driver,
        connection,
        peer,
        queue: [sent.clone()].into(),
        pool: BodyPool::default(),
    };
    prepare(&mut stage);
    let Stage {
        driver,
        mut peer,
        queue,
        ..
    } = stage;
    drop((driver, queue));
    assert!(sent.is_unique(), "something holds on to what was not sent");
    peer.set_read_timeout(Some(LONG)).unwrap();
    let mut rest = Vec::new();
    if let Err(error) = peer.read_to_end(&mut rest) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the end");
    }
}

impl Stage {
    /// Polls until nothing comes for a while.
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            let mut told: Vec<Completion> = Vec::new();
            let count = self.driver.poll(&mut told).unwrap();
            quiet = if count == 0 { quiet + 1 } else { 0 };
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn listen(&mut self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        self.driver.listen(listener.into()).unwrap();
        address
    }
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}
