//! A peer that goes on sending learns at once that the other side has closed, also where it has
//! no room to send. Where only a kernel is left that remembers the socket and answers probes, it
//! would wait for a minute.

#![allow(clippy::disallowed_methods)]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ringway_netio::driver::{Completion, ConnectionId, Driver, EpollDriver, UringDriver};
use ringway_netio::probe;
use rustix::net::sockopt::set_socket_recv_buffer_size;

/// Far more than an answer takes on a busy machine, far less than a kernel remembers.
const AT_ONCE: Duration = Duration::from_secs(10);

#[test]
fn a_peer_without_room_is_told_of_a_close() {
    over_both(told_of_a_close);
}

#[test]
fn a_peer_without_room_is_told_of_a_driver_that_is_dropped() {
    over_both(|driver, connection| {
        let _ = connection;
        drop(driver);
    });
}

fn over_both(mut end: impl FnMut(Box<dyn Driver>, ConnectionId)) {
    over(&mut end, || Box::new(EpollDriver::new().unwrap()));
    match UringDriver::new() {
        Ok(_) => over(&mut end, || Box::new(UringDriver::new().unwrap())),
        Err(denial) => assert_eq!(probe::driver().usable(), Err(denial)),
    }
}

fn over(end: &mut impl FnMut(Box<dyn Driver>, ConnectionId), open: impl Fn() -> Box<dyn Driver>) {
    for _ in 0..5 {
        let driver = open();
        let kind = driver.kind();
        let waited = untold(driver, end);
        assert!(waited < AT_ONCE, "{kind}: {waited:?}");
    }
}

/// How long a peer that has filled the window writes on after its connection has ended.
fn untold(
    mut driver: Box<dyn Driver>,
    end: &mut impl FnMut(Box<dyn Driver>, ConnectionId),
) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Less than the driver has chunks for, so that it can take all of it.
    set_socket_recv_buffer_size(&listener, 64 << 10).unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (near, _) = listener.accept().unwrap();
    peer.set_nonblocking(true).unwrap();
    let connection = driver.attach(near.into()).unwrap();
    driver.set_reading(connection, true);
    driver.poll(&mut Vec::new()).unwrap();
    // The driver has asked for what comes, and nobody polls: the window closes.
    while peer.write(&[7; 1 << 16]).is_ok() {}
    thread::sleep(Duration::from_millis(50));
    while peer.write(&[7; 1 << 16]).is_ok() {}
    peer.set_nonblocking(false).unwrap();
    peer.set_write_timeout(Some(AT_ONCE)).unwrap();

    let ended = Instant::now();
    end(driver, connection);
    while peer.write(&[7; 1 << 16]).is_ok() {}
    ended.elapsed()
}

fn told_of_a_close(mut driver: Box<dyn Driver>, connection: ConnectionId) {
    driver.close(connection);
    let mut done = Vec::new();
    let is_closed = |told: Completion| matches!(told, Completion::Closed { .. });
    while !done.drain(..).any(is_closed) {
        driver.poll(&mut done).unwrap();
    }
}
