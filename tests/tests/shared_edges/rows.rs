//! Rows that are larger than what the segment takes at a time: they come in parts.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, DictionaryArray, ListArray, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, Int64Type};
use ringway::edge::{EdgeOptions, Ending, FailureKind, Popped, Receiver, RejectReason, Sender};
use ringway::element::{Barrier, StreamElement};
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::subjects::SharedEdge;
use ringway_tests::process::{Process, hear, part, tell};
use ringway_tests::seed::Seeded;
use ringway_tests::sockets::pair;
use ringway_tests::within::{LONG, until};

use crate::rig::{SEGMENT_BYTES, all, open, small};

/// What the segment takes at a time.
const CLAIM_BYTES: usize = (SEGMENT_BYTES / 2 - (64 << 10)) / 2;

fn text(bytes: usize) -> RecordBatch {
    let text: String = (0..bytes)
        .map(|n| char::from(b'a' + (n % 23) as u8))
        .collect();
    let column = Arc::new(StringArray::from_iter_values([text])) as ArrayRef;
    RecordBatch::try_from_iter([("text", column)]).unwrap()
}

/// The row `number`, which says so in each of its bytes.
fn numbered(number: u8, bytes: usize) -> RecordBatch {
    let text = char::from(number).to_string().repeat(bytes);
    let column = Arc::new(StringArray::from_iter_values([text])) as ArrayRef;
    RecordBatch::try_from_iter([("text", column)]).unwrap()
}

fn sent_through(
    (mut sender, mut receiver): (Sender<RecordBatch>, Receiver<RecordBatch>),
    batches: &[RecordBatch],
) -> Receiver<RecordBatch> {
    let sending = {
        let batches = batches.to_vec();
        thread::spawn(move || {
            for batch in batches {
                sender.push(StreamElement::Data(batch)).unwrap();
            }
            sender.finish_and_wait(LONG).unwrap();
        })
    };
    let (arrived, ending) = all(&mut receiver);
    sending.join().unwrap();
    assert_eq!(ending, Ending::End);
    assert_eq!(arrived.len(), batches.len());
    for (arrived, sent) in arrived.iter().zip(batches) {
        assert_eq!(
            arrived,
            sent,
            "a row of {} bytes",
            sent.get_array_memory_size()
        );
    }
    receiver
}

/// At each border of a part, the whole segment included, and with small rows between them.
#[test]
fn a_row_of_any_size_arrives_as_it_was() {
    let around = |bytes: usize| (bytes - 640..bytes + 128).step_by(64);
    let sizes = [CLAIM_BYTES, 2 * CLAIM_BYTES, 5 * CLAIM_BYTES, SEGMENT_BYTES]
        .into_iter()
        .flat_map(around)
        .chain([3 << 20]);
    let batches: Vec<_> = sizes.flat_map(|bytes| [text(bytes), text(3)]).collect();
    let receiver = sent_through(open(), &batches);
    let copied = receiver.remote_stats().unwrap().copied_bytes as usize;
    assert!(copied > 3 << 20, "{copied} bytes are put together");
}

/// Those that have no flat form, too, and where nothing may stay in the segment.
#[test]
fn a_large_row_of_any_type_arrives_as_it_was() {
    let long = "x".repeat(10 * CLAIM_BYTES);
    let words: DictionaryArray<Int32Type> = [Some("a"), Some(&*long), None].into_iter().collect();
    let numbers = (0..30_000).map(Some).collect::<Vec<_>>();
    let lists =
        ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![]), Some(numbers), None]);
    let words = RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)]).unwrap();
    let lists = RecordBatch::try_from_iter([("list", Arc::new(lists) as ArrayRef)]).unwrap();
    let rows = |batch: &RecordBatch| [batch.slice(1, 1), batch.slice(0, 1), batch.slice(2, 1)];
    for copies in [false, true] {
        let edge = SharedEdge(small().0.with(|remote| remote.shared.copies = copies));
        let opened = || edge.open(EdgeOptions::named("edge"));
        sent_through(opened(), &rows(&lists));
        let (mut sender, mut receiver) = opened();
        let sending = {
            let rows = rows(&words);
            thread::spawn(move || {
                for row in rows {
                    sender.push(StreamElement::Data(row)).unwrap();
                }
                sender.finish().unwrap();
            })
        };
        let (arrived, ending) = all(&mut receiver);
        sending.join().unwrap();
        assert_eq!(ending, Ending::End);
        let value = |batch: &RecordBatch| {
            let words = batch.column(0).as_dictionary::<Int32Type>();
            let words = words.downcast_dict::<StringArray>().unwrap();
            words.into_iter().next().unwrap().map(str::to_owned)
        };
        let arrived: Vec<_> = arrived.iter().map(value).collect();
        assert_eq!(arrived, [Some(long.clone()), Some("a".to_owned()), None]);
    }
}

/// As much as the edge holds, and not a line of the cache more.
#[test]
fn a_row_above_what_the_edge_holds_is_told_to_both_ends_with_the_knob() {
    const HELD_BYTES: usize = 300_000;
    let try_one = |bytes: usize| -> Result<(), String> {
        let edge = EdgeOptions::named("edge").bytes(HELD_BYTES);
        let (mut sender, mut receiver) = small().open::<RecordBatch>(edge);
        sender.push(StreamElement::Data(text(bytes))).unwrap();
        match receiver.pop_timeout(LONG) {
            Popped::Element(StreamElement::Data(batch)) => {
                assert_eq!(batch, text(bytes));
                Ok(())
            }
            Popped::Ended(Ending::Failed(told)) => {
                assert!(matches!(told.kind, FailureKind::PeerFailed(_)), "{told}");
                let rejected = sender.try_push(StreamElement::Data(text(1))).unwrap_err();
                let RejectReason::Failed(failure) = rejected.reason else {
                    panic!("failed, not {}", rejected.reason);
                };
                assert!(matches!(failure.kind, FailureKind::Unsendable(_)));
                assert!(told.to_string().contains("edge_bytes_max"), "{told}");
                Err(failure.to_string())
            }
            other => panic!("the row or a failure, not {other:?}"),
        }
    };
    let tried = (HELD_BYTES - 1_024..=HELD_BYTES).step_by(64).map(try_one);
    let tried: Vec<_> = tried.collect();
    assert!(tried[0].is_ok());
    let refused = tried.last().unwrap().as_ref().unwrap_err();
    assert!(
        refused.contains("edge_bytes_max") && refused.contains("300000"),
        "{refused}"
    );
    assert!(
        tried.is_sorted_by_key(Result::is_err),
        "what is larger than what does not fit"
    );
    // Nothing is known of the limit of the other end before: it is that of the receiver.
    assert!(try_one(10 * HELD_BYTES).is_err());
}

#[test]
fn a_receiver_that_holds_less_than_its_sender_decides() {
    let edge = |bytes| EdgeOptions::named("edge").bytes(bytes);
    for (of_sender, of_receiver, bytes, arrives) in [
        (1 << 20, 8 << 20, 4 << 20, true),
        (8 << 20, 1 << 20, 4 << 20, false),
    ] {
        let (out, back) = pair();
        let mut sender: Sender<RecordBatch> = small().0.sender(out, &edge(of_sender));
        let mut receiver: Receiver<RecordBatch> = small().0.receiver(back, &edge(of_receiver));
        sender.push(StreamElement::Data(text(bytes))).unwrap();
        let popped = receiver.pop_timeout(LONG);
        assert_eq!(matches!(popped, Popped::Element(_)), arrives, "{popped:?}");
    }
}

#[test]
fn a_barrier_that_overtakes_a_large_row_counts_it_once() {
    let (mut sender, mut receiver) = open();
    let rows = [text(3), text(4 * CLAIM_BYTES - 10_000), text(5)];
    for row in &rows {
        sender.push(StreamElement::Data(row.clone())).unwrap();
    }
    let barrier = Barrier::unaligned(7);
    until(LONG, "there is room for it", || {
        sender.try_push_priority(barrier).is_ok()
    });
    until(LONG, "it is there", || receiver.has_priority());
    assert_eq!(receiver.poll_priority(), Some((barrier, 3)));
    let mut peeked = Vec::new();
    receiver.peek_until(3, |element| peeked.push(element.clone()));
    let elements = rows.map(StreamElement::Data);
    assert_eq!(peeked, elements);
    for element in elements {
        assert_eq!(receiver.try_pop(), Popped::Element(element));
    }
    assert_eq!(receiver.position(), 3);
}

/// A part of a row is before a barrier, or the row behind it.
#[test]
fn no_barrier_gets_into_a_large_row() {
    let (mut sender, mut receiver) = open();
    sender
        .push(StreamElement::Data(text(3 * SEGMENT_BYTES)))
        .unwrap();
    let barrier = Barrier::unaligned(7);
    for _ in 0..10 {
        let rejected = sender.try_push_priority(barrier).unwrap_err();
        assert_eq!(rejected.reason, RejectReason::Full);
    }
    assert!(matches!(receiver.pop_timeout(LONG), Popped::Element(_)));
    until(LONG, "there is room for it", || {
        sender.try_push_priority(barrier).is_ok()
    });
    until(LONG, "it is there", || receiver.has_priority());
    assert_eq!(receiver.poll_priority(), Some((barrier, 1)));
}

#[test]
fn a_sender_that_goes_within_a_large_row_brings_it_or_says_that_it_has_failed() {
    type Goes = fn(Sender<RecordBatch>);
    let ways: [(Goes, bool); 3] = [
        (|sender| sender.finish().unwrap(), true),
        (Sender::cancel, false),
        (drop, false),
    ];
    for (go, is_end) in ways {
        let (mut sender, mut receiver) = open();
        sender
            .push(StreamElement::Data(text(8 * SEGMENT_BYTES)))
            .unwrap();
        go(sender);
        let (batches, ending) = all(&mut receiver);
        assert_eq!(ending == Ending::End, is_end, "{ending}");
        assert!(
            batches
                .iter()
                .all(|batch| *batch == text(8 * SEGMENT_BYTES))
        );
        assert!(batches.len() == 1 || !is_end);
    }
}

/// Bytes of the rows of a sender that is killed.
const KILLED: Range<u64> = 1..3_000_000;

const TEST: &str = "rows::a_sender_that_is_killed_within_a_large_row_leaves_none_that_is_torn";

fn play() {
    let out = std::net::TcpStream::connect(("127.0.0.1", hear().unwrap().parse().unwrap()));
    let edge = EdgeOptions::named("edge");
    let mut sender: Sender<RecordBatch> = small().0.sender(out.unwrap(), &edge);
    let mut seed = Seeded::new();
    tell("connected", 1);
    for number in (b'a'..=b'z').cycle() {
        let bytes = 1 + seed.below(KILLED.end) as usize;
        sender
            .push(StreamElement::Data(numbered(number, bytes)))
            .unwrap();
    }
}

#[test]
fn a_sender_that_is_killed_within_a_large_row_leaves_none_that_is_torn() {
    if part().is_some() {
        return play();
    }
    let mut seed = Seeded::new();
    for _ in 0..10 {
        let mut child = Process::start(TEST, "sends");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        child.say(listener.local_addr().unwrap().port());
        let back = listener.accept().unwrap().0;
        let mut receiver: Receiver<RecordBatch> =
            small().0.receiver(back, &EdgeOptions::named("edge"));
        child.number("connected");
        let after = Duration::from_micros(seed.below(50_000));
        let killing = thread::spawn(move || {
            thread::sleep(after);
            child.kill();
        });
        let (batches, ending) = all(&mut receiver);
        killing.join().unwrap();
        assert!(matches!(ending, Ending::Failed(_)), "{ending}");
        for (batch, number) in batches.iter().zip((b'a'..=b'z').cycle()) {
            let text = batch.column(0).as_string::<i32>().value(0);
            assert!(
                KILLED.contains(&(text.len() as u64)) && text.bytes().all(|byte| byte == number)
            );
        }
    }
}
