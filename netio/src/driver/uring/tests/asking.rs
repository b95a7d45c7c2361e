//! Small frames to a thread that spins, which are received without the ring.

use super::*;
use crate::driver::uring::direct::{QUESTIONS_MAX, READS_MIN, SMALL_BYTES_MAX};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const FRAME: &[u8] = b"a small frame";

fn is_asking(harness: &Harness) -> bool {
    !harness.driver.io.direct.keys.is_empty()
}

/// Reads without ever waiting, as a thread does that spins.
fn spin(harness: &mut Harness, len: usize) -> Vec<u8> {
    let start = Instant::now();
    let mut bytes = Vec::new();
    while bytes.len() < len {
        assert!(start.elapsed() < LONG, "only {} of {len}", bytes.len());
        harness.driver.poll(&mut harness.told).unwrap();
        bytes.extend(harness.take_read());
    }
    bytes
}

/// A connection over which frames have come, one by one, so that it is asked.
fn asked(harness: &mut Harness) -> (ConnectionId, TcpStream) {
    let (connection, mut theirs) = harness.attach_reading();
    for _ in 0..READS_MIN + 1 {
        theirs.write_all(FRAME).unwrap();
        assert_eq!(spin(harness, FRAME.len()), FRAME);
    }
    // What is cancelled ends with the next polls.
    let start = Instant::now();
    while !harness.driver.io.direct.keys.contains(&connection.into()) {
        assert!(start.elapsed() < LONG, "it is not asked");
        harness.driver.poll(&mut harness.told).unwrap();
    }
    (connection, theirs)
}

/// Runs a test in the modes of the ring in which connections are asked.
fn where_asked(test: impl Fn(Harness)) {
    in_every_mode(usual(), |harness| {
        if harness.driver.io.settings.at_once_max > 0 {
            test(harness);
        }
    });
}

#[test]
fn a_wait_is_ended_by_bytes_of_a_connection_that_was_asked() {
    where_asked(|mut harness| {
        let (_, mut theirs) = asked(&mut harness);
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            theirs.write_all(FRAME).unwrap();
            theirs
        });
        let start = Instant::now();
        assert_eq!(harness.read(FRAME.len()), FRAME);
        assert!(start.elapsed() < LONG);
        assert!(!is_asking(&harness), "the ring receives for who sleeps");
        writer.join().unwrap();
    });
}

#[test]
fn what_came_before_the_wait_ends_it() {
    where_asked(|mut harness| {
        let (_, mut theirs) = asked(&mut harness);
        theirs.write_all(FRAME).unwrap();
        let start = Instant::now();
        harness.driver.wait(None).unwrap();
        assert_eq!(harness.read(FRAME.len()), FRAME);
        assert!(start.elapsed() < LONG);
    });
}

#[test]
fn a_host_that_waits_by_itself_polls_once_more_and_is_woken() {
    where_asked(|mut harness| {
        let (_, mut theirs) = asked(&mut harness);
        let is_readable = |harness: &Harness, timeout: Duration| {
            let descriptor = harness.driver.as_fd();
            let mut wanted = [PollFd::new(&descriptor, PollFlags::IN)];
            poll(&mut wanted, Some(&Timespec::try_from(timeout).unwrap())).unwrap() == 1
        };
        assert!(is_readable(&harness, Duration::ZERO), "it must poll before");
        harness.driver.poll(&mut harness.told).unwrap();
        assert!(!is_readable(&harness, Duration::from_millis(5)));
        theirs.write_all(FRAME).unwrap();
        assert!(is_readable(&harness, LONG));
        assert_eq!(harness.read(FRAME.len()), FRAME);
    });
}

#[test]
fn a_connection_that_is_silent_or_brings_much_is_left_to_the_ring_again() {
    where_asked(|mut harness| {
        let (_, mut theirs) = asked(&mut harness);
        for _ in 0..QUESTIONS_MAX {
            harness.driver.poll(&mut harness.told).unwrap();
        }
        assert!(!is_asking(&harness));
        theirs.write_all(FRAME).unwrap();
        assert_eq!(spin(&mut harness, FRAME.len()), FRAME);

        let (_, mut theirs) = asked(&mut harness);
        let much = pattern(SMALL_BYTES_MAX + 1);
        theirs.write_all(&much).unwrap();
        assert_eq!(spin(&mut harness, much.len()), much);
        assert!(!is_asking(&harness));
    });
}

#[test]
fn a_connection_that_is_asked_reads_bodies_stops_reading_and_ends_as_others_do() {
    where_asked(|mut harness| {
        let (connection, mut theirs) = asked(&mut harness);
        let sent = pattern(100 << 10);
        harness.driver.read_body(connection, Body::new(sent.len()));
        let writer = {
            let (mut theirs, sent) = (theirs.try_clone().unwrap(), sent.clone());
            std::thread::spawn(move || theirs.write_all(&sent).unwrap())
        };
        harness.until_told(is_body);
        let body = harness.told.drain(..).find_map(|told| match told {
            Completion::Body { body, .. } => Some(body),
            _ => None,
        });
        assert_eq!(body.unwrap().freeze(), sent);
        writer.join().unwrap();

        let (connection, mut other) = asked(&mut harness);
        harness.driver.set_reading(connection, false);
        other.write_all(FRAME).unwrap();
        for _ in 0..100 {
            harness.driver.poll(&mut harness.told).unwrap();
        }
        assert!(harness.take_read().is_empty());
        harness.driver.set_reading(connection, true);
        assert_eq!(spin(&mut harness, FRAME.len()), FRAME);
        other.write_all(FRAME).unwrap();
        drop(other);
        assert_eq!(spin(&mut harness, FRAME.len()), FRAME);
        harness.until_told(is_eof);
        theirs.write_all(FRAME).unwrap();
        assert_eq!(harness.read(FRAME.len()), FRAME);
    });
}

#[test]
fn connections_that_are_many_are_left_to_the_ring() {
    where_asked(|mut harness| {
        let (_, mut theirs) = asked(&mut harness);
        let others: Vec<_> = (0..harness.driver.io.settings.at_once_max)
            .map(|_| harness.attach())
            .collect();
        theirs.write_all(FRAME).unwrap();
        assert_eq!(spin(&mut harness, FRAME.len()), FRAME);
        assert!(!is_asking(&harness));
        drop(others);
    });
}
