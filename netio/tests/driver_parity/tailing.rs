//! What stands behind small sends and is read after them: nothing of it is lost, and nobody waits
//! for it in vain.
//!
//! Method: over connections whose tails are left, by threads that spin and by threads that sleep,
//! everything is done that can be done while a tail is in the socket. The simulated network cuts
//! what it carries, so that there a tail is left now and then only.

use std::time::{Duration, Instant};

use ringway_netio::driver::{Driver, TAILED_BYTES_MAX};

use crate::kit::{End, Kit};
use crate::pattern;
use crate::seed::Seeded;
use crate::waiting::{LONG, readable};
use crate::worlds::World;

crate::promises![
    a_tail_that_was_left_comes_with_the_next_poll,
    a_wait_does_not_sleep_over_a_tail,
    the_descriptor_tells_of_a_tail,
    the_end_comes_behind_a_tail,
    a_body_begins_with_the_tail_that_was_left,
    a_tail_waits_while_reading_is_off,
    a_socket_is_given_back_with_its_tail,
    a_connection_is_closed_over_its_tail,
    a_burst_without_a_tail_is_waited_for_as_ever,
    bursts_of_any_length_come_in_order,
];

const FRONT: usize = 264;
const TAIL: usize = 64;
const BURST: usize = FRONT + TAIL;

/// More small reads than it takes until a driver treats a connection as one of small frames.
const ROUNDS: usize = 60;

const TRIES: usize = 20;

const STREAM: u64 = 1;

/// What the thread of the far end does between two bursts.
#[derive(Clone, Copy)]
enum Pause {
    Spins,
    Sleeps,
}

const PAUSES: [Pause; 2] = [Pause::Spins, Pause::Sleeps];

/// Two ends of which the far one leaves tails, in a stream of its own.
struct Tailed {
    near: End,
    far: End,
    pause: Pause,
    sent: usize,
}

impl Tailed {
    fn new<W: World>(kit: &mut Kit<W>, pause: Pause) -> Self {
        let (near, far) = kit.connection(0, 1);
        kit.expect(far, STREAM, 0);
        kit.driver(far).expect_tail(far.id, TAIL);
        let mut tailed = Self {
            near,
            far,
            pause,
            sent: 0,
        };
        tailed.play(kit);
        tailed
    }

    fn send<W: World>(&mut self, kit: &mut Kit<W>, bytes: usize) {
        let burst = pattern::bytes(STREAM, self.sent..self.sent + bytes);
        assert_eq!(kit.send(self.near, &mut [burst].into()), bytes);
        self.sent += bytes;
        let begin = Instant::now();
        let sends = kit.record(self.near).sends;
        while kit.record(self.near).sends == sends {
            assert!(begin.elapsed() < LONG, "it is never sent");
            kit.world.pass();
            kit.nodes[0].poll();
        }
    }

    /// Polls the far end, until so many bytes have come.
    fn bring<W: World>(&self, kit: &mut Kit<W>, bytes: usize) {
        let begin = Instant::now();
        while kit.record(self.far).received < bytes {
            assert!(begin.elapsed() < LONG, "{bytes} bytes never come");
            kit.world.pass();
            kit.nodes[1].poll();
        }
    }

    /// Lets the far end sleep, if it does, before something comes.
    fn rest<W: World>(&self, kit: &mut Kit<W>) {
        if matches!(self.pause, Pause::Sleeps) {
            let driver = &mut kit.nodes[1].driver;
            driver.wait(Some(Duration::from_micros(50))).unwrap();
        }
    }

    /// Brings one more burst without its tail, which is in the socket then.
    fn leave_tail<W: World>(&mut self, kit: &mut Kit<W>) {
        for _ in 0..TRIES {
            self.rest(kit);
            self.send(kit, BURST);
            self.bring(kit, self.sent - TAIL);
            if self.left(kit) == TAIL || !W::TIME_PASSES {
                return;
            }
            // On a busy machine a burst may have been so late that it came in another way.
            self.play(kit);
        }
        panic!("no tail is ever left");
    }

    /// Brings bursts with their tails, until the driver expects more of the same.
    fn play<W: World>(&mut self, kit: &mut Kit<W>) {
        for _ in 0..ROUNDS {
            self.rest(kit);
            self.send(kit, BURST);
            self.bring(kit, self.sent);
        }
    }

    /// What was sent and has not come.
    fn left<W: World>(&self, kit: &mut Kit<W>) -> usize {
        self.sent - kit.record(self.far).received
    }
}

fn a_tail_that_was_left_comes_with_the_next_poll<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        for _ in 0..20 {
            tailed.leave_tail(&mut kit);
            if W::TIME_PASSES {
                kit.nodes[1].poll();
                assert_eq!(tailed.left(&mut kit), 0);
            }
            tailed.bring(&mut kit, tailed.sent);
        }
    }
}

fn a_wait_does_not_sleep_over_a_tail<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        let begin = Instant::now();
        for _ in 0..3 {
            tailed.leave_tail(&mut kit);
            while tailed.left(&mut kit) > 0 {
                kit.world.pass();
                kit.nodes[1].driver.wait(Some(LONG)).unwrap();
                kit.nodes[1].poll();
            }
            // A wait may have made the driver treat the connection as another one.
            tailed.play(&mut kit);
        }
        assert!(begin.elapsed() < LONG, "a wait slept over a tail");
    }
}

fn the_descriptor_tells_of_a_tail<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.leave_tail(&mut kit);
        while tailed.left(&mut kit) > 0 {
            kit.world.pass();
            let timeout = if W::TIME_PASSES { LONG } else { Duration::ZERO };
            let told = readable(&kit.nodes[1].driver, timeout);
            assert!(told || !W::TIME_PASSES, "nobody told of the tail");
            kit.nodes[1].poll();
        }
    }
}

fn the_end_comes_behind_a_tail<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.leave_tail(&mut kit);
        kit.driver(tailed.near).shutdown_write(tailed.near.id);
        kit.until("the end has come", |kit| kit.record(tailed.far).eof);
        assert_eq!(tailed.left(&mut kit), 0);

        // Also where the end is there before the burst is looked at.
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.send(&mut kit, BURST);
        kit.driver(tailed.near).shutdown_write(tailed.near.id);
        kit.until("the end has come", |kit| kit.record(tailed.far).eof);
        assert_eq!(tailed.left(&mut kit), 0);
    }
}

fn a_body_begins_with_the_tail_that_was_left<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.leave_tail(&mut kit);
        let left = tailed.left(&mut kit);
        kit.read_body(tailed.far, left + 1000);
        tailed.send(&mut kit, 1000);
        kit.until("the body is full", |kit| {
            kit.record(tailed.far).bodies.len() == 1
        });
        assert_eq!(kit.record(tailed.far).bodies[0].remaining(), 0);
        assert_eq!(tailed.left(&mut kit), 0);
        tailed.send(&mut kit, BURST);
        tailed.bring(&mut kit, tailed.sent);
    }
}

fn a_tail_waits_while_reading_is_off<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.leave_tail(&mut kit);
        kit.read(tailed.far, false);
        kit.linger();
        if W::TIME_PASSES {
            assert_eq!(tailed.left(&mut kit), TAIL, "it reads though told not to");
        }
        tailed.send(&mut kit, BURST);
        kit.read(tailed.far, true);
        kit.until("all has come", |kit| tailed.left(kit) == 0);
    }
}

fn a_socket_is_given_back_with_its_tail<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(3);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.leave_tail(&mut kit);
        kit.driver(tailed.far).detach(tailed.far.id);
        kit.until("the socket is back", |kit| {
            kit.record(tailed.far).detached.is_some()
        });
        let at = kit.record(tailed.far).received;
        let socket = kit.record(tailed.far).detached.take().unwrap();
        let elsewhere = kit.attach(2, socket);
        kit.expect(elsewhere, STREAM, at);
        tailed.send(&mut kit, 10);
        kit.until("the rest has come", |kit| {
            at + kit.record(elsewhere).received == tailed.sent
        });
    }
}

fn a_connection_is_closed_over_its_tail<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.leave_tail(&mut kit);
        kit.close_now(tailed.far);
        kit.linger();
    }
}

/// A peer that says it sends tails and does not costs a poll, and the next wait is one.
fn a_burst_without_a_tail_is_waited_for_as_ever<W: World>() {
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        tailed.send(&mut kit, FRONT);
        tailed.bring(&mut kit, tailed.sent);
        let is_quiet = |kit: &mut Kit<W>| {
            let begin = Instant::now();
            kit.nodes[1]
                .driver
                .wait(Some(Duration::from_millis(20)))
                .unwrap();
            kit.nodes[1].poll() == 0 && begin.elapsed() >= Duration::from_millis(10)
        };
        let is_calm = (0..5).any(|_| is_quiet(&mut kit));
        assert!(is_calm || !W::TIME_PASSES, "it waits for nothing for ever");
        tailed.send(&mut kit, BURST);
        tailed.bring(&mut kit, tailed.sent);
    }
}

fn bursts_of_any_length_come_in_order<W: World>() {
    let mut seeded = Seeded::new();
    for pause in PAUSES {
        let mut kit = Kit::<W>::new(2);
        let mut tailed = Tailed::new(&mut kit, pause);
        let mut bytes = BURST;
        for _ in 0..400 {
            // Often the length of the one before, or what was asked for then, or about that.
            bytes = match seeded.below(8) {
                0 => 1 + seeded.below(3 * TAILED_BYTES_MAX as u64) as usize,
                1 => bytes.saturating_sub(TAIL).max(1),
                2 => bytes + TAIL,
                3 => TAIL,
                _ => bytes,
            };
            tailed.send(&mut kit, bytes);
            match seeded.below(4) {
                0 => kit
                    .driver(tailed.far)
                    .expect_tail(tailed.far.id, seeded.below(200) as usize),
                1 => kit.until("all has come", |kit| tailed.left(kit) == 0),
                2 => tailed.bring(&mut kit, tailed.sent),
                _ => {
                    kit.nodes[1].poll();
                }
            }
        }
        kit.until("all has come", |kit| tailed.left(kit) == 0);
    }
}
