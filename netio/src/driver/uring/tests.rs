//! What the driver promises, and what it does where the kernel makes that hard.

mod asking;
mod bodies;
mod ending;
mod pitfalls;
mod sockets;
mod tailing;
mod traffic;
mod waiting;

use super::*;
use crate::random::Random;
use rustix::io::Errno;
use std::io::{Read, Write};
use std::time::Instant;

/// Long enough that only a lost wake-up waits for it to pass.
const LONG: Duration = Duration::from_secs(20);

/// A driver and what it has told.
struct Harness {
    driver: UringDriver,
    told: Vec<Completion>,
}

/// Where io_uring is denied there is no driver, and making one says why.
fn is_denied() -> bool {
    let Err(denial) = probe::driver().usable() else {
        return false;
    };
    assert_eq!(UringDriver::new().err(), Some(denial.clone()));
    assert!(!denial.cause.is_empty() && !denial.what_to_do.is_empty());
    true
}

/// Runs a test in every mode of the ring.
fn in_every_mode(settings: Settings, test: impl Fn(Harness)) {
    if is_denied() {
        return;
    }
    let at_once = [0, settings.at_once_max];
    for (mode, at_once_max) in Mode::ALL.into_iter().zip(at_once.into_iter().cycle()) {
        let settings = Settings {
            mode,
            at_once_max,
            ..settings.clone()
        };
        test(Harness {
            driver: UringDriver::with(settings).unwrap(),
            told: Vec::new(),
        });
    }
}

fn usual() -> Settings {
    Settings::default()
}

/// Numbers of a seed that is printed, and can be given again.
fn seeded() -> Random {
    let given = std::env::var("RINGWAY_SEED").ok();
    let seed = given.map_or_else(
        || getrandom::u64().unwrap(),
        |text| text.parse().expect("RINGWAY_SEED is a number"),
    );
    println!("RINGWAY_SEED={seed}");
    Random::from_seed(seed)
}

/// A connected pair: one end for the driver, one for the test.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    theirs.set_read_timeout(Some(LONG)).unwrap();
    theirs.set_nodelay(true).unwrap();
    ours.set_nodelay(true).unwrap();
    (ours, theirs)
}

/// Bytes that tell their place, made from slices of one block so that it is quick.
fn pattern(len: usize) -> Vec<u8> {
    let block: Vec<u8> = (0..65_521).map(|at| (at % 251) as u8).collect();
    let mut bytes = Vec::with_capacity(len + block.len());
    for round in 0.. {
        if bytes.len() >= len {
            break;
        }
        bytes.extend_from_slice(&block[round % 997..]);
    }
    bytes.truncate(len);
    bytes
}

fn queue_of(segments: &[&'static [u8]]) -> VecDeque<Bytes> {
    segments
        .iter()
        .map(|segment| Bytes::from_static(segment))
        .collect()
}

impl Harness {
    fn attach(&mut self) -> (ConnectionId, TcpStream) {
        let (ours, theirs) = pair();
        (self.driver.attach(ours.into()).unwrap(), theirs)
    }

    fn attach_reading(&mut self) -> (ConnectionId, TcpStream) {
        let (connection, theirs) = self.attach();
        self.driver.set_reading(connection, true);
        (connection, theirs)
    }

    /// Polls and waits until `enough` of what was told.
    fn until(&mut self, enough: impl Fn(&[Completion]) -> bool) {
        let start = Instant::now();
        loop {
            self.driver.poll(&mut self.told).unwrap();
            if enough(&self.told) {
                return;
            }
            assert!(start.elapsed() < LONG, "only {:?}", self.told);
            self.driver.wait(Some(Duration::from_millis(100))).unwrap();
        }
    }

    fn until_told(&mut self, wanted: impl Fn(&Completion) -> bool) {
        self.until(|told| told.iter().any(&wanted));
    }

    /// Gives the kernel time for what should not happen, and polls for it.
    fn settle(&mut self) {
        for _ in 0..4 {
            self.driver.poll(&mut self.told).unwrap();
            self.driver.wait(Some(Duration::from_millis(5))).unwrap();
        }
        self.driver.poll(&mut self.told).unwrap();
    }

    /// Takes the bytes that were read, with their chunks going back.
    fn take_read(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.told.retain(|told| match told {
            Completion::Read { chunk, .. } => {
                bytes.extend_from_slice(chunk);
                false
            }
            _ => true,
        });
        bytes
    }

    /// Reads until there are `len` bytes, letting chunks go.
    fn read(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let start = Instant::now();
        while bytes.len() < len {
            assert!(
                start.elapsed() < LONG,
                "{} of {len}, {:?}",
                bytes.len(),
                self.told
            );
            self.driver.wait(Some(Duration::from_millis(100))).unwrap();
            self.driver.poll(&mut self.told).unwrap();
            bytes.extend(self.take_read());
        }
        bytes
    }

    fn send(&mut self, connection: ConnectionId, bytes: impl Into<Bytes>) -> usize {
        let mut queue = VecDeque::from([bytes.into()]);
        self.driver.send(connection, &mut queue)
    }

    fn sent_bytes(&self) -> usize {
        let sent = self.told.iter().map(|told| match told {
            Completion::Sent { bytes, .. } => *bytes,
            _ => 0,
        });
        sent.sum()
    }

    fn count(&self, which: impl Fn(&Completion) -> bool) -> usize {
        self.told.iter().filter(|told| which(told)).count()
    }
}

fn is_eof(told: &Completion) -> bool {
    matches!(told, Completion::Eof { .. })
}

fn is_lost(told: &Completion) -> bool {
    matches!(told, Completion::Lost { .. })
}

fn is_closed(told: &Completion) -> bool {
    matches!(told, Completion::Closed { .. })
}

fn is_body(told: &Completion) -> bool {
    matches!(told, Completion::Body { .. })
}
