//! Something ends at each of the completions that come: a connection is closed or given back,
//! or its driver is dropped, while the others are still to be told.

use std::time::{Duration, Instant};

use ringway_netio::buffer::Body;
use ringway_netio::driver::{Completion, ConnectionId, Driver};

use crate::pattern;
use crate::worlds::World;

crate::promises![
    a_connection_can_be_closed_at_each_of_its_completions,
    a_connection_can_be_given_back_at_each_of_its_completions,
    a_driver_can_be_dropped_at_each_of_its_completions,
];

/// Longer than anything here takes, even on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(60);

const BODY_BYTES: usize = 100_000;

/// A conversation in which everything happens that can, between two drivers.
struct Talk<W: World> {
    world: W,
    near: Side<W>,
    far: Side<W>,
    /// The near side has seen the end.
    is_over: bool,
}

struct Side<W: World> {
    driver: W::Driver,
    connection: ConnectionId,
}

fn a_connection_can_be_closed_at_each_of_its_completions<W: World>() {
    for is_given_back in [false, true] {
        at_each(|mut talk: Talk<W>, at| {
            talk.until_told(at)?;
            if is_given_back {
                talk.far.driver.detach(talk.far.connection);
            }
            talk.far.driver.close(talk.far.connection);
            talk.has_only_closed_to_come();
            talk.ends();
            Some(())
        });
    }
}

fn a_connection_can_be_given_back_at_each_of_its_completions<W: World>() {
    at_each(|mut talk: Talk<W>, at| {
        talk.until_told(at)?;
        talk.far.driver.detach(talk.far.connection);
        let told = talk.until_last();
        assert!(matches!(told, Completion::Detached { .. }), "{told:?}");
        drop(told);
        talk.ends();
        Some(())
    });
}

fn a_driver_can_be_dropped_at_each_of_its_completions<W: World>() {
    at_each(|mut talk: Talk<W>, at| {
        talk.until_told(at)?;
        // The place of the driver is taken by one that has nothing to do.
        talk.far.driver = talk.world.driver();
        talk.ends();
        Some(())
    });
}

/// Holds the conversation again and again, and interrupts it at one completion later each time,
/// until there are no more.
fn at_each<W: World>(interrupt: impl Fn(Talk<W>, usize) -> Option<()>) {
    let times = (0..).take_while(|at| interrupt(Talk::begin(), *at).is_some());
    let times = times.count();
    assert!(times > 2, "only {times} completions came");
}

impl<W: World> Talk<W> {
    fn begin() -> Self {
        let mut world = W::new();
        let (one, other) = world.pair();
        let [mut near, mut far] = [one, other].map(|socket| {
            let mut driver = world.driver();
            let connection = driver.attach(socket).unwrap();
            driver.set_reading(connection, true);
            Side::<W> { driver, connection }
        });
        far.driver.read_body(far.connection, Body::new(BODY_BYTES));
        far.send(2, &[5_000]);
        far.driver.shutdown_write(far.connection);
        near.send(1, &[BODY_BYTES, 50_000]);
        near.driver.shutdown_write(near.connection);
        Self {
            world,
            near,
            far,
            is_over: false,
        }
    }

    /// Waits for the completion of this number at the far side; none if all is over before.
    fn until_told(&mut self, at: usize) -> Option<()> {
        let mut told = 0;
        let (mut sent, mut ended) = (false, false);
        let begin = Instant::now();
        while !(sent && ended) {
            assert!(begin.elapsed() < PATIENCE, "it does not end");
            for completion in self.poll() {
                sent |= matches!(completion, Completion::Sent { .. });
                ended |= matches!(completion, Completion::Eof { .. });
                // Those that came with it are told, and are looked at no more.
                if told == at {
                    return Some(());
                }
                told += 1;
            }
        }
        None
    }

    /// Waits for the last completion of the far side.
    fn until_last(&mut self) -> Completion {
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < PATIENCE, "it does not end");
            for completion in self.poll() {
                let is_last = matches!(
                    completion,
                    Completion::Closed { .. } | Completion::Detached { .. }
                );
                if is_last {
                    return completion;
                }
            }
        }
    }

    fn has_only_closed_to_come(&mut self) {
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < PATIENCE, "it is never closed");
            let told = self.poll();
            match &told[..] {
                [] => {}
                [Completion::Closed { connection }] => {
                    assert_eq!(*connection, self.far.connection);
                    return;
                }
                other => panic!("{other:?} after a close"),
            }
        }
    }

    /// The near side sees an end, and nothing more is told at the far side.
    fn ends(mut self) {
        let begin = Instant::now();
        while !self.is_over {
            assert!(begin.elapsed() < PATIENCE, "the peer is never told");
            let told = self.poll();
            assert!(told.is_empty(), "{told:?} after the last one");
        }
        self.near.driver.close(self.near.connection);
    }

    /// Lets both sides go on, and returns what the far one tells.
    fn poll(&mut self) -> Vec<Completion> {
        self.world.pass();
        let told = self.near.poll();
        let is_end =
            |told: &Completion| matches!(told, Completion::Eof { .. } | Completion::Lost { .. });
        self.is_over |= told.iter().any(is_end);
        self.far
            .driver
            .wait(Some(Duration::from_micros(50)))
            .unwrap();
        self.far.poll()
    }
}

impl<W: World> Side<W> {
    fn send(&mut self, stream: u64, lengths: &[usize]) {
        let mut queue = pattern::segments(stream, lengths);
        let bytes = self.driver.send(self.connection, &mut queue);
        assert_eq!(bytes, lengths.iter().sum::<usize>());
    }

    fn poll(&mut self) -> Vec<Completion> {
        let mut told = Vec::new();
        self.driver.poll(&mut told).unwrap();
        told
    }
}
