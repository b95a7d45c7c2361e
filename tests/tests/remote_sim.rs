//! Edges over a simulated network, with everything on one thread, so that a seed says all of
//! what happens on the way: partial reads and writes, delays, narrow windows, broken
//! connections. What is promised: elements arrive once and in order, and an end is told only
//! if all of them have.

use std::time::Duration;

use ringway::batch::Row;
use ringway::clock::Clock;
use ringway::edge::remote::{
    Links, LinksHandle, RemoteOptions, RemoteParts, links, receive_over, send_over,
};
use ringway::edge::{EdgeOptions, Ending, Popped, RejectReason};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};
use ringway::wire::Wired;
use ringway_netio::driver::sim::{SimDriver, SimNetwork, SimOptions};
use ringway_shm::Bell;
use ringway_tests::conformance::elements::Numbers;
use ringway_tests::seed::Seeded;

const ELEMENTS: usize = 150;
const STEPS_MAX: usize = 400_000;

fn side(network: &SimNetwork) -> (LinksHandle, Links) {
    let (handle, seed) = links().unwrap();
    let driver = Box::new(SimDriver::new(network).unwrap());
    (handle, Links::new(seed, driver, Clock::start()).unwrap())
}

fn parts(edge: &EdgeOptions, remote: &RemoteOptions) -> RemoteParts<Numbers> {
    RemoteParts {
        edge: edge.clone(),
        remote: remote.clone(),
        codec: Numbers::codec(),
        peer: "simulated".to_owned(),
        bell: Bell::thread(),
    }
}

fn random_element(random: &mut Seeded, next: &mut i64) -> StreamElement<Numbers> {
    let rows = match random.below(8) {
        0 => return StreamElement::Watermark(Watermark::active(*next)),
        1 => return StreamElement::Watermark(Watermark::idle(*next)),
        2 => return StreamElement::Barrier(Barrier::aligned(*next as u64)),
        3 => {
            return StreamElement::Drain(Drain {
                subtask: 1,
                target_parallelism: 2,
            });
        }
        4 => 0,
        5 => 5_000,
        _ => 1 + random.below(20) as i64,
    };
    let first = *next;
    *next += rows;
    StreamElement::Data((first..*next).map(Row::untimed).collect())
}

/// What cannot be cut: rows and control elements, since boundaries of batches carry no meaning.
fn atoms(elements: &[StreamElement<Numbers>]) -> Vec<String> {
    let mut atoms = Vec::new();
    for element in elements {
        match element {
            StreamElement::Data(rows) => {
                atoms.extend(rows.iter().map(|row: &Row<i64>| row.value.to_string()));
            }
            control => atoms.push(format!("{control:?}")),
        }
    }
    atoms
}

/// Sends a random stream, and returns what arrived of it, and how it ended.
fn play(random: &mut Seeded, remote: &RemoteOptions, resets_per_million: u32) -> (bool, Ending) {
    let network = SimNetwork::new(SimOptions {
        seed: random.below(u64::MAX),
        piece_bytes_max: 1 + random.below(70_000) as usize,
        window_bytes: 1_000 + random.below(300_000) as usize,
        resets_per_million,
        ..SimOptions::default()
    });
    let edge = EdgeOptions::named("edge")
        .capacity(1 + random.below(20) as usize)
        .bytes(200_000 + random.below(1 << 20) as usize);
    let (out, back) = network.pair();
    let (sending, mut from) = side(&network);
    let (receiving, mut to) = side(&network);
    let mut sender = Some(send_over(&sending, out, parts(&edge, remote)).unwrap());
    let mut receiver = receive_over(&receiving, back, parts(&edge, remote)).unwrap();

    let (mut sent, mut taken, mut next) = (Vec::new(), Vec::new(), 0);
    let mut waiting = None;
    for _ in 0..STEPS_MAX {
        match random.below(4) {
            0 => {
                from.turn();
            }
            1 => {
                to.turn();
            }
            2 => network.advance(Duration::from_micros(random.below(500))),
            _ => {}
        }
        if sent.len() == ELEMENTS {
            if let Some(sender) = sender.take() {
                let _ = sender.finish();
            }
        } else if let Some(half) = &mut sender {
            let element = waiting.take();
            let element = element.unwrap_or_else(|| random_element(random, &mut next));
            match half.try_push(element.clone()) {
                Ok(()) => sent.push(element),
                Err(rejected) if rejected.reason == RejectReason::Full => waiting = Some(element),
                Err(_) => sender = None,
            }
        }
        if random.below(2) == 0 {
            continue;
        }
        match receiver.try_pop() {
            Popped::Element(element) => taken.push(element),
            Popped::Empty => {}
            Popped::Ended(ending) => {
                let (sent, taken) = (atoms(&sent), atoms(&taken));
                assert!(sent.starts_with(&taken), "lost, repeated or out of order");
                return (sent.len() == taken.len(), ending);
            }
        }
    }
    panic!("it never ends: {} sent, {} taken", sent.len(), taken.len());
}

#[test]
fn everything_arrives_whatever_the_pieces_and_delays() {
    let mut random = Seeded::new();
    for remote in [RemoteOptions::default(), RemoteOptions::version_1()] {
        for _ in 0..5 {
            let (is_complete, ending) = play(&mut random, &remote, 0);
            assert_eq!(ending, Ending::End);
            assert!(is_complete, "an end with something missing");
        }
    }
}

#[test]
fn a_stream_over_a_connection_that_breaks_never_ends_with_something_missing() {
    let mut random = Seeded::new();
    let mut broken = 0;
    for remote in [RemoteOptions::default(), RemoteOptions::version_1()] {
        for _ in 0..10 {
            let (is_complete, ending) = play(&mut random, &remote, 20_000);
            match ending {
                Ending::End => assert!(is_complete, "an end with something missing"),
                Ending::Failed(_) => broken += 1,
                other => panic!("nobody said {other}"),
            }
        }
    }
    assert!(broken > 0, "no connection broke");
}
