//! Waiting: woken by what a poll would find, by a descriptor, by the time.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ringway_netio::driver::Driver;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::kit::Kit;
use crate::pattern;
use crate::worlds::World;

crate::promises![
    a_wait_ends_when_there_is_something_to_poll,
    a_wait_ends_when_the_watched_descriptor_is_readable,
    a_wait_without_measure_is_a_long_one,
    the_descriptor_tells_of_what_a_poll_would_find,
    unacknowledged_bytes_go_down_to_nothing,
];

/// Long enough that only a lost wake-up waits for it to pass.
pub(crate) const LONG: Duration = Duration::from_secs(20);

fn bell() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

fn a_wait_ends_when_there_is_something_to_poll<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 1, 0);
    kit.linger();
    let begin = Instant::now();
    for round in 0..20 {
        let segment = pattern::bytes(1, round * 10..round * 10 + 10);
        assert_eq!(kit.send(near, &mut [segment].into()), 10);
        while kit.record(near).sends <= round {
            kit.nodes[0].driver.wait(Some(LONG)).unwrap();
            kit.nodes[0].poll();
        }
        while kit.record(far).received < round * 10 + 10 {
            kit.world.pass();
            kit.nodes[1].driver.wait(Some(LONG)).unwrap();
            kit.nodes[1].poll();
        }
    }
    assert!(begin.elapsed() < LONG, "a wait slept over something");
}

fn a_wait_ends_when_the_watched_descriptor_is_readable<W: World>() {
    let mut kit = Kit::<W>::new(1);
    let rung = bell();
    let node = &mut kit.nodes[0];
    node.driver.watch(rung.try_clone().unwrap()).unwrap();
    node.poll();
    node.driver.wait(Some(Duration::from_millis(1))).unwrap();
    node.poll();
    assert_eq!(node.woken, 0, "nobody rang");

    let ringer = rung.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        rustix::io::write(&ringer, &1u64.to_ne_bytes()).unwrap();
    });
    let begin = Instant::now();
    while node.woken == 0 && begin.elapsed() < LONG {
        node.driver.wait(Some(LONG)).unwrap();
        node.poll();
    }
    assert!(
        node.woken > 0 && begin.elapsed() < LONG,
        "it was slept over"
    );
    thread.join().unwrap();
    let mut count = [0; 8];
    rustix::io::read(&rung, &mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 1, "the count is its owner's");

    // It is heard as often as it rings.
    let heard = node.woken;
    node.poll();
    rustix::io::write(&rung, &1u64.to_ne_bytes()).unwrap();
    let begin = Instant::now();
    while node.woken == heard && begin.elapsed() < LONG {
        node.driver.wait(Some(LONG)).unwrap();
        node.poll();
    }
    assert!(begin.elapsed() < LONG, "the second time was slept over");
}

fn a_wait_without_measure_is_a_long_one<W: World>() {
    const RUNG_AFTER: Duration = Duration::from_millis(30);
    let largest = Duration::from_secs(i64::MAX.unsigned_abs());
    for timeout in [Duration::MAX, largest, Duration::from_secs(1 << 40)] {
        let mut kit = Kit::<W>::new(1);
        let rung = bell();
        let driver = &mut kit.nodes[0].driver;
        driver.watch(rung.try_clone().unwrap()).unwrap();
        driver.poll(&mut Vec::new()).unwrap();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(RUNG_AFTER);
            rustix::io::write(&rung, &1u64.to_ne_bytes()).unwrap();
        });
        let begin = Instant::now();
        driver.wait(Some(timeout)).unwrap();
        let waited = begin.elapsed();
        // Where time does not pass by itself nothing is waited for.
        let is_long = waited > RUNG_AFTER / 2 || !W::TIME_PASSES;
        assert!(is_long, "{timeout:?} was over after {waited:?}");
        thread.join().unwrap();
    }
}

fn the_descriptor_tells_of_what_a_poll_would_find<W: World>() {
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.expect(far, 1, 0);
    kit.linger();
    let quiet = !readable(&kit.nodes[0].driver, Duration::ZERO);
    assert!(quiet, "there is nothing to find");
    for round in 0..5 {
        let segment = pattern::bytes(1, round * 10..round * 10 + 10);
        kit.send(near, &mut [segment].into());
        // What was asked for is handed over by a poll.
        kit.nodes[0].poll();
        while kit.record(near).sends <= round {
            told_before_found(&mut kit, 0);
        }
        while kit.record(far).received < round * 10 + 10 {
            told_before_found(&mut kit, 1);
        }
    }
}

/// Waits for the descriptor of a driver, and polls it.
fn told_before_found<W: World>(kit: &mut Kit<W>, node: usize) {
    kit.world.pass();
    let timeout = if W::TIME_PASSES { LONG } else { Duration::ZERO };
    let told = readable(&kit.nodes[node].driver, timeout);
    assert!(told || !W::TIME_PASSES, "it was slept over");
    let found = kit.nodes[node].poll();
    assert!(told || found == 0, "nobody told of {found} completions");
}

/// Whether the descriptor of a driver becomes readable.
pub(crate) fn readable(driver: &impl Driver, timeout: Duration) -> bool {
    let descriptor = driver.as_fd();
    let timeout = Timespec::try_from(timeout).unwrap();
    let mut waiting = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut waiting, Some(&timeout)).unwrap() > 0
}

fn unacknowledged_bytes_go_down_to_nothing<W: World>() {
    const BYTES: usize = 10 << 20;
    let mut kit = Kit::<W>::new(2);
    let (near, far) = kit.connection(0, 1);
    kit.send(near, &mut pattern::segments(1, &[BYTES]));
    kit.linger();
    let held = kit.driver(near).unacknowledged_bytes(near.id).unwrap();
    assert!(held > 0, "nobody has read them");
    kit.expect(far, 1, 0);
    kit.until("all has come", |kit| kit.record(far).received == BYTES);
    kit.until("all is acknowledged", |kit| {
        kit.driver(near).unacknowledged_bytes(near.id) == Some(0)
    });
}
