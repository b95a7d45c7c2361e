//! A peer that goes on sending learns at once that the other side has closed, also where it has
//! no room to send. Where only a kernel is left that remembers the socket and answers probes, it
//! would wait for a minute.

#![allow(clippy::disallowed_methods)]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ringway_netio::driver::{Completion, Driver, EpollDriver, UringDriver};
use ringway_netio::probe;
use rustix::net::sockopt::set_socket_recv_buffer_size;

/// Far more than an answer takes on a busy machine, far less than a kernel remembers.
const AT_ONCE: Duration = Duration::from_secs(10);

#[test]
fn a_peer_without_room_is_told_of_a_close() {
    over(EpollDriver::new().unwrap());
    match UringDriver::new() {
        Ok(driver) => over(driver),
        Err(denial) => assert_eq!(probe::driver().usable(), Err(denial)),
    }
}

fn over(mut driver: impl Driver) {
    for _ in 0..5 {
        let waited = untold(&mut driver);
        assert!(waited < AT_ONCE, "{}: {waited:?}", driver.kind());
    }
}

/// How long a peer that has filled the window writes on after a close.
fn untold(driver: &mut impl Driver) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Less than the driver has chunks for, so that it can take all of it.
    set_socket_recv_buffer_size(&listener, 64 << 10).unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (near, _) = listener.accept().unwrap();
    peer.set_nonblocking(true).unwrap();
    let connection = driver.attach(near.into()).unwrap();
    driver.set_reading(connection, true);
    let mut done = Vec::new();
    driver.poll(&mut done).unwrap();
    // The driver has asked for what comes, and nobody polls: the window closes.
    while peer.write(&[7; 1 << 16]).is_ok() {}
    thread::sleep(Duration::from_millis(50));
    while peer.write(&[7; 1 << 16]).is_ok() {}
    peer.set_nonblocking(false).unwrap();
    peer.set_write_timeout(Some(AT_ONCE)).unwrap();

    driver.close(connection);
    let closed = Instant::now();
    loop {
        driver.poll(&mut done).unwrap();
        let is_closed = |told: Completion| matches!(told, Completion::Closed { .. });
        if done.drain(..).any(is_closed) {
            break;
        }
    }
    while peer.write(&[7; 1 << 16]).is_ok() {}
    closed.elapsed()
}
