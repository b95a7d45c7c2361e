//! A link between two processes, either of which may be killed at any instruction.
//!
//! The binary runs itself again for the other part. Each random test prints its seed;
//! `RINGWAY_SEED` replays its choices, not the moment at which a process dies.

#![allow(
    clippy::disallowed_methods,
    reason = "a test waits for processes, and bounds that"
)]

mod common;

use std::os::unix::net::UnixStream;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::child::{parent, part, spawn};
use common::{Random, bell, content, mappings, open_files, small};
use ringway_shm::Bell;
use ringway_shm::link::{
    ClaimError, Consumer, DESCRIPTORS, Incoming, LinkConfig, Outgoing, PopError, Producer,
};
use ringway_shm::passing::{PassError, Receiving, peer, send};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};

const LONG: Duration = Duration::from_secs(20);

/// How long a process waits at most before it looks whether the other is alive.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn config() -> LinkConfig {
    LinkConfig {
        messages_max: 16,
        ..small()
    }
}

fn become_producer(stream: &UnixStream, bell: &Bell) -> Result<Producer, PassError> {
    let half = Outgoing::new(&config(), bell).unwrap();
    send(stream, b"producer", &half.descriptors())?;
    let received = Receiving::<DESCRIPTORS>::new().poll(stream)?;
    Ok(half.meet(received.unwrap().descriptors).unwrap())
}

fn become_consumer(stream: &UnixStream, bell: &Bell) -> Result<Consumer, PassError> {
    let half = Incoming::new(bell).unwrap();
    send(stream, b"consumer", &half.descriptors())?;
    let received = Receiving::<DESCRIPTORS>::new().poll(stream)?;
    Ok(half
        .meet(received.unwrap().descriptors, usize::MAX)
        .unwrap())
}

/// Whether the other process has closed the stream.
fn is_closed(stream: &UnixStream) -> bool {
    let mut wanted = [PollFd::new(stream, PollFlags::RDHUP)];
    poll(&mut wanted, Some(&rustix::event::Timespec::default())).unwrap() > 0
}

fn length(number: u64) -> usize {
    (Random(number).next() % 9000) as usize
}

/// How a process sleeps.
#[derive(Clone, Copy)]
enum Sleep {
    /// Until the bell rings, which it must.
    Rung,
    /// Until the bell rings or it is time to see whether the other is alive.
    Timed,
}

/// Sleeps until the bell rings, if there is still nothing.
fn sleep(how: Sleep, bell: &Bell, is_ready: impl FnOnce() -> bool) {
    bell.arm();
    if is_ready() {
        return bell.disarm();
    }
    match how {
        Sleep::Rung => assert!(bell.park(Some(LONG)), "a wake-up was lost"),
        Sleep::Timed => drop(bell.park(Some(LOOK_EVERY))),
    }
}

/// Pushes `count` messages, whatever their numbers say, until the other process is gone.
fn produce(stream: &UnixStream, producer: &mut Producer, count: u64, how: Sleep) -> u64 {
    let bell = producer.producer_bell().clone();
    for number in 0..count {
        let bytes = content(number, length(number));
        loop {
            match producer.try_claim(bytes.len()) {
                Ok(mut claim) => {
                    claim.append(&bytes);
                    claim.commit(number as u32, bytes.len());
                    break;
                }
                Err(ClaimError::Full { .. }) => {
                    sleep(how, &bell, || producer.has_room(bytes.len()))
                }
                Err(ClaimError::PeerGone) => return number,
                Err(other) => panic!("{other}"),
            }
            if is_closed(stream) {
                producer.set_peer_gone();
            }
        }
        if number % 3 == 0 {
            producer.flush();
        }
    }
    producer.flush();
    count
}

/// Pops and checks messages until the other process is gone or `count` are there. Some are kept
/// until the end.
fn consume(stream: &UnixStream, consumer: &mut Consumer, count: u64, how: Sleep) -> u64 {
    let bell = consumer.consumer_bell().clone();
    let mut kept = Vec::new();
    let mut popped = 0;
    while popped < count {
        match consumer.try_pop() {
            Ok(message) => {
                assert_eq!(message.kind(), popped as u32);
                assert_eq!(message.bytes(), content(popped, length(popped)));
                if popped % 5 == 0 {
                    kept.extend(message.lease().ok().map(|lease| (popped, lease)));
                }
                popped += 1;
                if kept.len() > 8 {
                    kept.swap_remove((popped % 8) as usize);
                }
            }
            Err(PopError::Empty) => {
                consumer.flush();
                if is_closed(stream) {
                    consumer.set_peer_gone();
                    continue;
                }
                sleep(how, &bell, || consumer.is_ready());
            }
            Err(PopError::PeerGone) => break,
            Err(other) => panic!("{other}"),
        }
    }
    for (number, lease) in kept {
        assert_eq!(lease.as_ref(), content(number, length(number)));
    }
    popped
}

/// Waits for a child that should end well.
fn ends_well(mut child: Child) {
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    panic!("the other process hangs");
}

/// Plays the other part of a test until its end or death. The messages that it pushes never end.
fn play(part: &str) {
    let (stream, bell) = (parent(), bell());
    let done = match part {
        "producer" => become_producer(&stream, &bell)
            .map(|mut producer| produce(&stream, &mut producer, u64::MAX, Sleep::Timed)),
        _ => become_consumer(&stream, &bell)
            .map(|mut consumer| consume(&stream, &mut consumer, u64::MAX, Sleep::Timed)),
    };
    // It may be that this process was to be killed, but the other one closed first.
    assert!(matches!(done, Ok(_) | Err(PassError::Closed)), "{done:?}");
}

#[test]
fn messages_pass_between_two_processes_that_sleep_and_wake() {
    if let Some(part) = part() {
        return play(&part);
    }
    let name = "messages_pass_between_two_processes_that_sleep_and_wake";
    let (child, stream) = spawn(name, "producer");
    assert_eq!(peer(&stream).unwrap().pid, std::process::id() as i32);
    let mut consumer = become_consumer(&stream, &bell()).unwrap();
    assert_eq!(consume(&stream, &mut consumer, 2000, Sleep::Rung), 2000);
    drop(stream);
    ends_well(child);

    let (child, stream) = spawn(name, "consumer");
    let mut producer = become_producer(&stream, &bell()).unwrap();
    assert_eq!(produce(&stream, &mut producer, 2000, Sleep::Rung), 2000);
    drop(stream);
    ends_well(child);
}

#[test]
fn a_process_killed_at_any_moment_leaves_whole_messages_and_nothing_else() {
    let name = "a_process_killed_at_any_moment_leaves_whole_messages_and_nothing_else";
    match part().as_deref() {
        // Its files and mappings are counted, so that no other test may run beside it.
        None => ends_well(spawn(name, "survivor").0),
        Some("survivor") => survive(name),
        Some(part) => play(part),
    }
}

/// Starts a process and kills it, many times, and plays the other part.
fn survive(name: &str) {
    let mut random = Random::new();
    let bell = bell();
    let (mut before, mut passed) = (None, 0);
    for round in 0..24 {
        let dies = if random.below(2) == 0 {
            "producer"
        } else {
            "consumer"
        };
        let (mut child, stream) = spawn(name, dies);
        let pid = Pid::from_child(&child);
        // Most die while messages pass, some before the two have met.
        let after = Duration::from_micros(random.below(20_000));
        let is_early = random.below(4) == 0;
        let early = is_early.then(|| kill_after(pid, after));
        let kill = || early.unwrap_or_else(|| kill_after(pid, after));
        let survived = match dies {
            "producer" => become_consumer(&stream, &bell).map(|mut half| {
                let killer = kill();
                (consume(&stream, &mut half, u64::MAX, Sleep::Timed), killer)
            }),
            _ => become_producer(&stream, &bell).map(|mut half| {
                let killer = kill();
                (produce(&stream, &mut half, u64::MAX, Sleep::Timed), killer)
            }),
        };
        match survived {
            Ok((count, killer)) => {
                passed += count;
                killer.join().unwrap();
            }
            // Only who dies early has not met the other.
            Err(PassError::Closed) => assert!(is_early, "round {round}, {dies}"),
            Err(other) => panic!("round {round}, {dies} dies after {after:?}: {other}"),
        }
        child.wait().unwrap();
        drop(stream);
        let now = (open_files(), mappings());
        assert_eq!(*before.get_or_insert(now), now, "round {round}");
    }
    assert!(passed > 1000, "{passed} messages are too few to learn from");
}

fn kill_after(pid: Pid, after: Duration) -> JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::sleep(after);
        kill_process(pid, Signal::KILL).unwrap();
    })
}

#[test]
fn what_a_killed_producer_has_published_is_popped_and_leases_outlive_it() {
    if part().is_some() {
        let (stream, bell) = (parent(), bell());
        let mut producer = become_producer(&stream, &bell).unwrap();
        produce(&stream, &mut producer, 10, Sleep::Timed);
        producer.try_claim(1000).unwrap().commit(99, 1000);
        // Committed, not published; and then it waits for its death.
        let mut end = [0];
        let _ = std::io::Read::read(&mut &stream, &mut end);
        return;
    }
    let name = "what_a_killed_producer_has_published_is_popped_and_leases_outlive_it";
    let (mut child, stream) = spawn(name, "producer");
    let mut consumer = become_consumer(&stream, &bell()).unwrap();
    let bell = consumer.consumer_bell().clone();
    while consumer.len() < 10 {
        sleep(Sleep::Timed, &bell, || false);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_closed(&stream));
    consumer.set_peer_gone();
    let mut leases = Vec::new();
    for number in 0..10 {
        let message = consumer.try_pop().unwrap();
        leases.push((number, message.lease().unwrap()));
    }
    assert_eq!(consumer.try_pop().unwrap_err(), PopError::PeerGone);
    drop(consumer);
    for (number, lease) in leases {
        assert_eq!(lease.as_ref(), content(number, length(number)));
    }
}
