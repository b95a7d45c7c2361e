//! Waiting, and being woken.

use super::*;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::AsFd;

fn is_readable(descriptor: BorrowedFd<'_>, timeout: Duration) -> bool {
    let mut wanted = [PollFd::new(&descriptor, PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).unwrap();
    poll(&mut wanted, Some(&timeout)).unwrap() == 1
}

fn is_woken(told: &Completion) -> bool {
    matches!(told, Completion::Woken)
}

#[test]
fn a_wait_ends_when_bytes_come_or_the_time_is_over() {
    in_every_mode(usual(), |mut harness| {
        let (_, mut theirs) = harness.attach_reading();
        harness.settle();
        let start = Instant::now();
        harness
            .driver
            .wait(Some(Duration::from_millis(20)))
            .unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20));
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            theirs.write_all(b"x").unwrap();
            theirs
        });
        let start = Instant::now();
        harness.driver.wait(Some(Duration::MAX)).unwrap();
        assert!(start.elapsed() < LONG);
        assert_eq!(harness.read(1), b"x");
        writer.join().unwrap();
    });
}

#[test]
fn a_wait_does_not_block_when_a_poll_would_find_something() {
    in_every_mode(usual(), |mut harness| {
        let (connection, _theirs) = harness.attach();
        harness.driver.close(connection);
        harness.driver.wait(None).unwrap();
        harness.driver.poll(&mut harness.told).unwrap();
        assert_eq!(harness.count(is_closed), 1);
        let (connection, _theirs) = harness.attach();
        harness.send(connection, &b"x"[..]);
        harness.driver.wait(None).unwrap();
        harness.driver.poll(&mut harness.told).unwrap();
        assert_eq!(harness.sent_bytes(), 1);
    });
}

#[test]
fn a_watched_descriptor_wakes_a_wait_as_often_as_it_is_readable() {
    in_every_mode(usual(), |mut harness| {
        let bell = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        harness.driver.watch(bell.try_clone().unwrap()).unwrap();
        assert!(
            harness.driver.watch(bell.try_clone().unwrap()).is_err(),
            "one at most"
        );
        for round in 0..100 {
            let ringer = bell.try_clone().unwrap();
            let thread = std::thread::spawn(move || {
                if round % 2 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                rustix::io::write(&ringer, &1u64.to_ne_bytes()).unwrap();
            });
            // However busy the machine is: only a wait that was never woken takes so long.
            let start = Instant::now();
            while !harness.told.iter().any(is_woken) {
                harness.driver.wait(Some(LONG)).unwrap();
                harness.driver.poll(&mut harness.told).unwrap();
            }
            assert!(start.elapsed() < LONG, "round {round}");
            thread.join().unwrap();
            // The count is its owner's.
            rustix::io::read(&bell, &mut [0; 8]).unwrap();
            harness.settle_briefly();
        }
    });
}

#[test]
fn a_watched_descriptor_that_stays_readable_wakes_again() {
    in_every_mode(usual(), |mut harness| {
        let bell = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
        harness.driver.watch(bell).unwrap();
        for _ in 0..3 {
            harness.told.clear();
            harness.until_told(is_woken);
        }
    });
}

#[test]
fn the_descriptor_of_a_driver_is_readable_when_a_poll_would_find_something() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        harness.settle();
        for round in 0..20 {
            assert!(
                !is_readable(harness.driver.as_fd(), Duration::ZERO),
                "{round}: idle"
            );
            let writer = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(2));
                theirs.write_all(b"x").unwrap();
                theirs
            });
            assert!(is_readable(harness.driver.as_fd(), LONG), "{round}: bytes");
            theirs = writer.join().unwrap();
            assert!(
                is_readable(harness.driver.as_fd(), Duration::ZERO),
                "not yet polled"
            );
            let mut got = Vec::new();
            while got.is_empty() {
                harness.driver.poll(&mut harness.told).unwrap();
                got = harness.take_read();
            }
            harness.settle();
        }
        harness.send(connection, &b"x"[..]);
        assert!(
            is_readable(harness.driver.as_fd(), Duration::ZERO),
            "to be handed over"
        );
        harness.settle();
        harness.told.clear();
        harness.driver.close(connection);
        assert!(
            is_readable(harness.driver.as_fd(), Duration::ZERO),
            "to be told"
        );
    });
}

#[test]
fn a_deferred_ring_itself_never_wakes_a_poll_and_the_descriptor_does() {
    in_every_mode(usual(), |mut harness| {
        let mode = harness.driver.io.settings.mode;
        if !matches!(mode, Mode::DeferredBare | Mode::Deferred) {
            return;
        }
        let (_, mut theirs) = harness.attach_reading();
        harness.settle();
        let ring = harness.driver.io.ring.descriptor();
        assert!(!is_readable(harness.driver.as_fd(), Duration::ZERO));
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            theirs.write_all(b"x").unwrap();
            theirs
        });
        // It is readable when one looks, as at the end of a time, but that wakes nobody.
        let start = Instant::now();
        let _ = is_readable(ring.as_fd(), Duration::from_millis(200));
        assert!(start.elapsed() >= Duration::from_millis(200));
        writer.join().unwrap();
        assert!(is_readable(harness.driver.as_fd(), LONG));
        assert_eq!(harness.read(1), b"x");
    });
}

#[test]
fn ten_thousand_round_trips_lose_no_wake_up() {
    in_every_mode(usual(), |mut harness| {
        let (connection, mut theirs) = harness.attach_reading();
        let echo = std::thread::spawn(move || {
            let mut byte = [0];
            while theirs.read(&mut byte).unwrap() == 1 {
                theirs.write_all(&byte).unwrap();
            }
        });
        for round in 0..2500u32 {
            let byte = round as u8;
            assert_eq!(harness.send(connection, vec![byte]), 1);
            assert_eq!(harness.read(1), [byte]);
            harness.until(|told| {
                told.iter()
                    .any(|told| matches!(told, Completion::Sent { .. }))
            });
            harness.told.clear();
        }
        harness.driver.close(connection);
        harness.until_told(is_closed);
        echo.join().unwrap();
    });
}

impl Harness {
    fn settle_briefly(&mut self) {
        // A poll that was armed while the descriptor was still readable may tell once more.
        self.driver.poll(&mut self.told).unwrap();
        self.driver.poll(&mut self.told).unwrap();
        self.told.clear();
    }
}
