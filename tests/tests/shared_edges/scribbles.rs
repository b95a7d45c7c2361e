//! Peers that write to their memory while it is read.
//!
//! The kernel lets a process write to its own memory through `/proc/self/mem`: so the test plays the
//! peer that has gone mad without a line of code that could do harm by itself. It does that in a
//! process of its own, where no other edge is.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::{Array, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use ringway::edge::{EdgeOptions, Ending, Failure, FailureKind, Popped, RejectReason, Sender};
use ringway::element::{Barrier, StreamElement};
use ringway_tests::columns::columns;
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::subjects::SHARED;
use ringway_tests::process::{Process, part, tell};
use ringway_tests::seed::Seeded;

use crate::rig::{all, data, small};

/// How often an edge is opened and scribbled upon, and for how long at most.
const ROUNDS: usize = 30;
const SCRIBBLED_FOR: Duration = Duration::from_millis(100);

/// What of an edge is written to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scribbled {
    /// The bodies of batches.
    Bodies,
    /// The words that say where they are, too.
    Messages,
    /// What the receiver answers, too: a sender that sees odd answers soon stops.
    Returns,
}

const ALL: [Scribbled; 3] = [Scribbled::Bodies, Scribbled::Messages, Scribbled::Returns];

/// Where that lies, from and to, by the headers of the segments that this process may write to. The
/// bells are its own, which no peer can write to.
fn places(scribbled: Scribbled) -> Vec<(u64, u64)> {
    const MESSAGES: u8 = 1;
    const RETURNS: u8 = 2;
    let memory = File::open("/proc/self/mem").unwrap();
    let place = |(from, to): (u64, u64)| {
        let mut header = [0; 64];
        memory.read_exact_at(&mut header, from).unwrap();
        let arena = u64::from_le_bytes(header[40..48].try_into().unwrap());
        match (header.starts_with(b"RINGWAYM"), header[12]) {
            (true, MESSAGES) if scribbled == Scribbled::Bodies => Some((from + arena, to)),
            (true, MESSAGES) => Some((from, to)),
            (true, RETURNS) if scribbled == Scribbled::Returns => Some((from, to)),
            _ => None,
        }
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps.lines().filter(|line| line.contains("/memfd:"));
    let own = own.filter(|line| line.split_whitespace().nth(1) == Some("rw-s"));
    let hex = |text| u64::from_str_radix(text, 16).unwrap();
    own.map(|line| line.split_once(' ').unwrap().0.split_once('-').unwrap())
        .map(|(from, to)| (hex(from), hex(to)))
        .filter_map(place)
        .collect()
}

/// Writes numbers of all sizes to random places, until it is told to end.
fn scribble(places: &[(u64, u64)], mut seed: Seeded, is_over: &AtomicBool) {
    let memory = OpenOptions::new()
        .write(true)
        .open("/proc/self/mem")
        .unwrap();
    let mut write = |memory: &File| {
        let (from, to) = places[seed.below(places.len() as u64) as usize];
        // The words at the beginning are few, and matter most.
        let span = [512, 8192, to - from][seed.below(3) as usize].min(to - from);
        let at = from + seed.below(span / 8) * 8;
        let value = match seed.below(4) {
            0 => u64::MAX,
            1 => seed.below(1 << 12),
            2 => seed.below(u64::MAX),
            _ => seed.below(1 << 40),
        };
        let bytes = value.to_le_bytes();
        let some = &bytes[..1 + seed.below(8) as usize];
        // A segment may be gone by now.
        let _ = memory.write_at(some, at);
    };
    while !is_over.load(Ordering::Relaxed) {
        write(&memory);
    }
}

/// Batches of every type, one column each and all together.
fn batches() -> Vec<RecordBatch> {
    let all = columns();
    let each = all
        .iter()
        .map(|(name, column)| (name.clone(), Arc::clone(column)));
    let mut batches: Vec<_> = each
        .map(|column| RecordBatch::try_from_iter([column]).unwrap())
        .collect();
    batches.push(RecordBatch::try_from_iter(all).unwrap());
    batches
}

/// Nothing that is given may be unsound, however its memory changes meanwhile: all values are looked
/// at.
fn use_all(batch: &RecordBatch) {
    let options = FormatOptions::new();
    for column in batch.columns() {
        column.to_data().validate_full().unwrap();
        let formatter = ArrayFormatter::try_new(column, &options).unwrap();
        for row in 0..column.len() {
            // It is an error where the value means nothing, such as a time that is none.
            let _ = formatter.value(row).try_to_string();
        }
    }
}

/// Sends them again and again, until that can't be or it is told to end.
fn send_all(mut sender: Sender<RecordBatch>, batches: &[RecordBatch], is_over: &AtomicBool) {
    for (number, batch) in batches.iter().cycle().enumerate() {
        let element = StreamElement::Data(batch.clone());
        if is_over.load(Ordering::Relaxed) || sender.is_closed() {
            break;
        }
        let _ = sender.push_timeout(element, Duration::from_millis(1));
        if number % 10 == 0 {
            let _ = sender.try_push_priority(Barrier::unaligned(number as u64));
        }
    }
    let after = sender.try_push(data(0..1));
    if let Err(RejectReason::Failed(Failure { kind, .. })) = after.map_err(|it| it.reason) {
        // It is its peer that was wrong, not what it was given.
        assert!(!matches!(kind, FailureKind::Unsendable(_)), "{kind}");
    }
}

fn play(seed: u64) {
    let batches = Arc::new(batches());
    let (mut failed, mut taken) = (0, 0);
    for round in 0..ROUNDS {
        let (sender, mut receiver) = small().open::<RecordBatch>(EdgeOptions::named("mad"));
        let is_over = Arc::new(AtomicBool::new(false));
        let scribbling = {
            let is_over = Arc::clone(&is_over);
            let places = places(ALL[round % ALL.len()]);
            assert!(!places.is_empty());
            let seed = Seeded::from_seed(seed.wrapping_add(round as u64));
            thread::spawn(move || scribble(&places, seed, &is_over))
        };
        let sending = {
            let (batches, is_over) = (Arc::clone(&batches), Arc::clone(&is_over));
            thread::spawn(move || send_all(sender, &batches, &is_over))
        };
        let mut kept = Vec::new();
        let began = Instant::now();
        // The edge may fail, end or stand still.
        while began.elapsed() < SCRIBBLED_FOR {
            let overtaken = receiver.poll_priority().map_or(0, |(_, position)| position);
            receiver.peek_until(overtaken, |element| {
                if let StreamElement::Data(batch) = element {
                    use_all(batch);
                }
            });
            match receiver.try_pop() {
                Popped::Element(StreamElement::Data(batch)) => {
                    use_all(&batch);
                    taken += 1;
                    if kept.len() < 20 {
                        kept.push(batch);
                    }
                }
                Popped::Element(_) | Popped::Empty => {}
                Popped::Ended(ending) => {
                    failed += usize::from(matches!(ending, Ending::Failed(_)));
                    break;
                }
            }
        }
        kept.iter().for_each(use_all);
        is_over.store(true, Ordering::Relaxed);
        scribbling.join().unwrap();
        sending.join().unwrap();
        kept.iter().for_each(use_all);
    }
    // Another edge of the process is what it was.
    let (mut sender, mut receiver) = SHARED.open::<RecordBatch>(EdgeOptions::named("other"));
    sender.push(data(0..10)).unwrap();
    sender.finish().unwrap();
    assert_eq!(all(&mut receiver).1, Ending::End);
    tell("failed", failed);
    tell("taken", taken);
}

const TEST: &str = "scribbles::whatever_a_peer_writes_to_its_memory_nothing_unsound_comes_of_it";

#[test]
fn whatever_a_peer_writes_to_its_memory_nothing_unsound_comes_of_it() {
    if let Some(seed) = part() {
        return play(seed.parse().unwrap());
    }
    let seed = Seeded::new().below(1 << 60);
    let mut child = Process::start(TEST, &seed.to_string());
    let (failed, taken) = (child.number("failed"), child.number("taken"));
    assert!(child.end().success());
    println!("{failed} of {ROUNDS} edges failed, {taken} batches were taken");
    assert!(failed > 0 && taken > 0, "{failed} failed, {taken} taken");
}
