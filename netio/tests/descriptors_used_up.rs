//! Accepting where no descriptor is left. It stands alone, because the limit is the process's.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ringway_netio::driver::{Completion, Driver, EpollDriver, UringDriver};
use ringway_netio::probe;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, getrlimit, setrlimit};

const PEERS: usize = 5;

#[test]
fn peers_wait_while_descriptors_are_used_up_and_are_accepted_afterwards() {
    over(EpollDriver::new().unwrap());
    leaves_nothing(|| Ok(Box::new(EpollDriver::new()?)));
    match UringDriver::new() {
        Ok(driver) => {
            over(driver);
            leaves_nothing(|| {
                let driver = UringDriver::new().map_err(io::Error::other)?;
                Ok(Box::new(driver))
            });
        }
        Err(denial) => assert_eq!(probe::driver().usable(), Err(denial)),
    }
}

fn over(mut driver: impl Driver) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let id = driver.listen(listener.into()).unwrap();
    let sockets: Vec<OwnedFd> = (0..PEERS).map(|_| tcp_socket()).collect();
    let hoard = use_up();
    for socket in &sockets {
        connect(socket, &address).unwrap();
    }

    let mut completions = Vec::new();
    poll_for(&mut driver, Duration::from_millis(300), &mut completions);
    let [Completion::AcceptDelayed { listener, error }] = &completions[..] else {
        panic!("once, and nothing else: {completions:?}");
    };
    assert_eq!(*listener, id);
    assert_eq!(error.raw_os_error(), Some(24), "{error}");

    drop(hoard);
    completions.clear();
    let begin = Instant::now();
    while completions.len() < PEERS && begin.elapsed() < Duration::from_secs(30) {
        poll_for(&mut driver, Duration::from_millis(10), &mut completions);
    }
    let accepted = |completion: &Completion| matches!(completion, Completion::Accepted { .. });
    assert_eq!(completions.len(), PEERS);
    assert!(completions.iter().all(accepted), "{completions:?}");
}

/// Neither what cannot be made nor what is dropped while it waits for descriptors keeps one.
fn leaves_nothing(open: impl Fn() -> io::Result<Box<dyn Driver>>) {
    let made = open().unwrap();
    drop(made);
    let before = descriptors();
    let mut driver = open().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    driver.listen(listener.into()).unwrap();
    let peer = tcp_socket();
    let mut hoard = use_up();
    connect(&peer, &address).unwrap();
    let mut completions = Vec::new();
    poll_for(&mut *driver, Duration::from_millis(100), &mut completions);
    let told = |told: &Completion| matches!(told, Completion::AcceptDelayed { .. });
    assert!(completions.iter().all(told) && completions.len() == 1);
    // With every descriptor more that is there, something else cannot be had.
    let mut failures = 0;
    while open().is_err() {
        failures += 1;
        assert!(hoard.pop().is_some(), "it takes so many descriptors");
    }
    assert!(failures > 1, "{failures}");
    drop((driver, hoard, peer));
    assert_eq!(descriptors(), before);
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn poll_for(
    driver: &mut (impl Driver + ?Sized),
    time: Duration,
    completions: &mut Vec<Completion>,
) {
    let begin = Instant::now();
    let mut polls = 0;
    while begin.elapsed() < time {
        driver.poll(completions).unwrap();
        driver.wait(Some(Duration::from_millis(20))).unwrap();
        polls += 1;
    }
    assert!(polls < 200, "{polls} polls: it spins instead of waiting");
}

fn tcp_socket() -> OwnedFd {
    socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()
}

/// Takes all descriptors that the process may have.
fn use_up() -> Vec<OwnedFd> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(200);
    setrlimit(Resource::Nofile, limit).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let first = TcpListener::bind(any).unwrap();
    let mut all: Vec<OwnedFd> = Vec::with_capacity(200);
    while let Ok(another) = first.try_clone() {
        all.push(another.into());
    }
    all.push(first.into());
    all
}
