//! Both halves on threads of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender};
use ringway::element::StreamElement;

use super::elements::{
    Counted, Numbers, counted, expected, nobody_else_has, number, room_for, tight, told, value_of,
    watermark,
};
use super::{EdgeSubject, Waiting};
use crate::seed::Seeded;
use crate::within::{LONG, join_while_it_moves, join_within};

/// Sends `0..count`, one row an element and a watermark after each tenth.
fn send_all(mut sender: Sender<Numbers>, count: i64, wait: Waiting<Numbers>) {
    for value in 0..count {
        (wait.push)(&mut sender, number(value)).unwrap();
        if value % 10 == 9 {
            (wait.push)(&mut sender, watermark(value)).unwrap();
        }
    }
    sender.finish().unwrap();
}

/// Takes what [`send_all`] sends and returns how many rows that were; `moved` counts on the way.
fn take_all(moved: &AtomicU64, mut take: impl FnMut() -> Popped<Numbers>) -> i64 {
    let mut expected = 0;
    let mut time = -1;
    loop {
        match take() {
            Popped::Element(StreamElement::Watermark(watermark)) => {
                assert_eq!(watermark.timestamp, expected - 1);
                time = watermark.timestamp;
            }
            Popped::Element(element) => {
                assert_eq!(value_of(element), expected);
                expected += 1;
                moved.fetch_add(1, Ordering::Relaxed);
                assert!(
                    expected <= time + 11,
                    "a watermark is missing before {expected}"
                );
            }
            Popped::Empty => thread::yield_now(),
            Popped::Ended(ending) => {
                assert_eq!(ending, Ending::End);
                return expected;
            }
        }
    }
}

/// A count, and what reads it.
fn shared_count() -> (impl Fn() -> u64, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&count);
    (move || read.load(Ordering::Relaxed), count)
}

fn passes<S: EdgeSubject>(subject: &S, options: EdgeOptions, count: i64) {
    let (sender, mut receiver) = subject.open::<Numbers>(options);
    let wait = subject.waiting();
    let sending = thread::spawn(move || send_all(sender, count, wait));
    let (moved, counted) = shared_count();
    let taking = thread::spawn(move || take_all(&counted, || (wait.pop)(&mut receiver)));
    let taken = join_while_it_moves("everything is taken", taking, moved);
    assert_eq!(taken, count);
    join_within(LONG, "everything is sent", sending);
}

/// None is missing, repeated or out of order, and the watermarks stay between.
pub fn a_hundred_thousand_elements_arrive_once_and_in_order<S: EdgeSubject>(subject: &S) {
    passes(subject, EdgeOptions::named("edge"), 100_000);
}

/// One or a few elements, or bytes for one: every push waits.
pub fn a_narrow_edge_loses_nothing<S: EdgeSubject>(subject: &S) {
    for options in [room_for(1), room_for(3), tight(subject)] {
        passes(subject, options, 3_000);
    }
}

/// The same without sleep on either side.
pub fn spinning_halves_agree_with_waiting_ones<S: EdgeSubject>(subject: &S) {
    let (mut sender, mut receiver) = subject.open::<Numbers>(room_for(16));
    let count = 20_000;
    let (moved, counted) = shared_count();
    let taking = thread::spawn(move || take_all(&counted, || receiver.try_pop()));
    let mut push = |mut element| {
        while let Err(rejected) = sender.try_push(element) {
            assert_eq!(rejected.reason, RejectReason::Full);
            element = rejected.element;
            thread::yield_now();
        }
    };
    for value in 0..count {
        push(number(value));
        if value % 10 == 9 {
            push(watermark(value));
        }
    }
    sender.finish().unwrap();
    let taken = join_while_it_moves("everything is taken", taking, moved);
    assert_eq!(taken, count);
}

/// Popped are the first of those accepted; the others are dropped or given back.
pub fn a_close_that_races_with_pushes_accounts_for_every_element<S: EdgeSubject>(subject: &S) {
    let mut random = Seeded::new();
    // Where the kernel takes a few KiB at a time, a round takes a while.
    let rounds = if subject.is_instant() { 50 } else { 15 };
    for _ in 0..rounds {
        let alive = Arc::new(());
        let (mut sender, mut receiver) = subject.open::<Counted>(room_for(4));
        let wait = subject.waiting();
        let closed = expected(subject, RejectReason::Closed);
        let batches: Vec<_> = (0..1_000).map(|_| counted(&alive)).collect();
        let pushing = thread::spawn(move || {
            let mut accepted = 0;
            for batch in batches {
                match (wait.push)(&mut sender, batch) {
                    Ok(()) => accepted += 1,
                    Err(rejected) => {
                        assert_eq!(told(rejected.reason), closed);
                        assert!(rejected.element.is_data());
                    }
                }
            }
            accepted
        });
        let wanted = random.below(1_000) as usize;
        for _ in 0..wanted {
            assert!(matches!(
                (wait.pop)(&mut receiver),
                Popped::Element(StreamElement::Data(_))
            ));
        }
        receiver.close();
        let accepted = join_within(LONG, "the pushes return", pushing);
        assert!(
            wanted <= accepted,
            "{wanted} were popped, {accepted} accepted"
        );
        nobody_else_has(subject, &alive);
    }
}

/// How a half goes in a round.
#[derive(Clone, Copy, Debug)]
struct Going {
    after: u64,
    way: u64,
}

/// Whatever order the two go in, every element is dropped once, and an end is told only if
/// everything was taken.
pub fn halves_that_go_at_random_moments_leak_nothing<S: EdgeSubject>(subject: &S) {
    let mut random = Seeded::new();
    for _ in 0..500 {
        let alive = Arc::new(());
        let capacity = 1 + random.below(8) as usize;
        let (sender, receiver) = subject.open::<Counted>(room_for(capacity));
        let mut going = || Going {
            after: random.below(40),
            way: random.below(4),
        };
        let (first, second) = (going(), going());
        let batches: Vec<_> = (0..first.after).map(|_| counted(&alive)).collect();
        let wait = subject.waiting();
        let sending = thread::spawn(move || send_and_go(sender, batches, first, wait));
        let taken = take_and_go(receiver, second, wait);
        let accepted = join_within(LONG, "the sender goes", sending);
        if let Some((taken, ending)) = taken {
            assert_eq!(taken, accepted, "{first:?} {second:?}");
            assert_eq!(ending == Ending::End, first.way == 0, "{first:?} {ending}");
        }
        nobody_else_has(subject, &alive);
    }
}

fn send_and_go(
    mut sender: Sender<Counted>,
    batches: Vec<StreamElement<Counted>>,
    going: Going,
    wait: Waiting<Counted>,
) -> u64 {
    let mut accepted = 0;
    for batch in batches {
        match (wait.push)(&mut sender, batch) {
            Ok(()) => accepted += 1,
            Err(rejected) => assert_ne!(rejected.reason, RejectReason::Full),
        }
    }
    match going.way {
        // The receiver may have gone before, which other promises are about.
        0 => drop(sender.finish()),
        1 => sender.cancel(),
        2 => sender.fail("why"),
        _ => drop(sender),
    }
    accepted
}

/// How many were taken and the ending, if the receiver saw one before it went.
fn take_and_go(
    mut receiver: Receiver<Counted>,
    going: Going,
    wait: Waiting<Counted>,
) -> Option<(u64, Ending)> {
    for taken in 0..going.after {
        match (wait.pop)(&mut receiver) {
            Popped::Element(_) => {}
            Popped::Empty => panic!("the waiting form has no lull"),
            Popped::Ended(ending) => return Some((taken, ending)),
        }
    }
    match going.way {
        0 => receiver.close(),
        1 => receiver.fail("why"),
        _ => drop(receiver),
    }
    None
}
