//! What edges over connections hold, whatever their peers and users do.
//!
//! Goal: a fast sender, a slow consumer or large rows fill no memory beyond the bytes of the
//! edge, and what passes leaves nothing behind. Method: resident memory of this process, which
//! has both ends. A binary of its own, whose tests take turns, so that no other allocates
//! meanwhile. `RINGWAY_PASSED_BYTES` says how much is to pass; memory of the kernel is not
//! counted.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::ipc::writer::StreamWriter;
use ringway::edge::remote::{RemoteOptions, RemoteParts, receive_over, send_over};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender};
use ringway::element::StreamElement;
use ringway_tests::sockets::{self, frame, io, pair};
use ringway_tests::usage::resident_bytes;
use ringway_tests::within::LONG;

const ROW_BYTES: usize = 64 << 10;
const ROWS: usize = 16;
/// So large that what is beside it, below, is a small part.
const EDGE_BYTES: usize = 32 << 20;

/// What the allocator and the element under way may add: half of what one end may hold, so that
/// an end which holds much more is seen.
const SLACK_BYTES: usize = EDGE_BYTES / 2;

/// A sender that has pushed nothing for so long is at the limit of its edge.
const STAYS: Duration = Duration::from_millis(300);

/// What the allocator and buffers that are kept for reuse may add in the long run.
const KEPT_BYTES: usize = 8 << 20;

/// For how long nothing moves where all is full.
const STILL: Duration = Duration::from_millis(500);

static TURN: Mutex<()> = Mutex::new(());

fn parts(remote: RemoteOptions) -> RemoteParts<RecordBatch> {
    sockets::parts(EdgeOptions::named("edge").bytes(EDGE_BYTES), remote)
}

fn edge(remote: &RemoteOptions) -> (Sender<RecordBatch>, Receiver<RecordBatch>) {
    let (out, back) = pair();
    let sender = send_over(&io(), out.into(), parts(remote.clone())).unwrap();
    let receiver = receive_over(&io(), back.into(), parts(remote.clone())).unwrap();
    (sender, receiver)
}

/// A batch in memory of its own, of large rows.
fn batch(first: i64) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(first..first + ROWS as i64)) as ArrayRef;
    let texts = (0..ROWS).map(|_| "x".repeat(ROW_BYTES));
    let texts = Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
    RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
}

/// What the kernel may hold of a connection at most: its buffers for sending and receiving.
fn socket_bytes_max() -> usize {
    let most = |buffer: &str| {
        let sizes = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{buffer}")).unwrap();
        let most = sizes.split_whitespace().last().unwrap();
        most.parse::<usize>().unwrap()
    };
    most("tcp_wmem") + most("tcp_rmem")
}

/// Each form of the wire, and what may be on the way in it beside what the two ends hold:
/// credit in bytes covers the way, credit in rows does not.
fn both_forms() -> [(RemoteOptions, usize); 2] {
    let negotiated = (RemoteOptions::default(), 0);
    [negotiated, (RemoteOptions::version_1(), socket_bytes_max())]
}

#[test]
fn neither_end_holds_more_than_the_bytes_of_the_edge_while_nobody_takes_anything() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for (remote, on_the_way) in both_forms() {
        let (mut sender, mut receiver) = edge(&remote);
        // What both ends keep for reuse is there before.
        for warming in 0..4 {
            sender.push(StreamElement::Data(batch(warming))).unwrap();
            assert!(matches!(receiver.pop_timeout(LONG), Popped::Element(_)));
        }
        let before = resident_bytes();
        let (mut pushed, mut highest) = (0, 0);
        loop {
            let element = StreamElement::Data(batch(pushed as i64));
            match sender.push_timeout(element, STILL) {
                Ok(()) => pushed += 1,
                Err(rejected) if rejected.reason == RejectReason::Full => break,
                Err(rejected) => panic!("{}", rejected.reason),
            }
            highest = highest.max(resident_bytes());
        }
        let grown = highest.saturating_sub(before);
        assert!(grown <= 2 * EDGE_BYTES + SLACK_BYTES, "{grown} bytes");
        let waiting = pushed * ROWS * ROW_BYTES;
        assert!(
            waiting >= EDGE_BYTES,
            "{waiting} bytes fill an edge of {EDGE_BYTES}"
        );
        assert!(
            waiting <= 2 * EDGE_BYTES + on_the_way,
            "{waiting} bytes wait"
        );
        sender.finish().unwrap();
        let mut rows = 0;
        loop {
            match receiver.pop_timeout(LONG) {
                Popped::Element(StreamElement::Data(batch)) => rows += batch.num_rows(),
                Popped::Ended(ending) => break assert_eq!(ending, Ending::End),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(rows, pushed * ROWS);
    }
}

/// In version 1 credit counts rows, so that it says nothing about bytes.
#[test]
fn a_peer_of_version_1_with_large_rows_is_held_back_by_the_bytes_of_the_edge() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let batch = batch(0);
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(&batch).unwrap();
    let body = writer.into_inner().unwrap();
    let frame = frame(&body);
    let before = resident_bytes();
    let (mut out, back) = pair();
    let receiver = receive_over(&io(), back.into(), parts(RemoteOptions::version_1())).unwrap();
    out.set_write_timeout(Some(STILL)).unwrap();
    let mut written = 0;
    while out.write_all(&frame).is_ok() {
        written += frame.len();
        assert!(
            written <= EDGE_BYTES + frame.len() + socket_bytes_max(),
            "{written} bytes taken"
        );
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown <= EDGE_BYTES + SLACK_BYTES, "{grown} bytes");
    assert!(!receiver.is_empty());
}

#[test]
fn what_passes_leaves_nothing_behind() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = std::env::var("RINGWAY_PASSED_BYTES").ok();
    let wanted = wanted.map_or(4 << 30, |bytes| bytes.parse().unwrap());
    let (mut sender, mut receiver) = edge(&RemoteOptions::default());
    let rows_wanted: usize = wanted / ROW_BYTES;
    let pushed = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&pushed);
    let sending = thread::spawn(move || {
        let mut sent = 0;
        while sent < rows_wanted {
            told.store(sent, Ordering::Relaxed);
            // Of all sizes, so that memory that is kept does not always fit.
            let rows = 1 + (sent / ROWS) % ROWS;
            let batch = batch(sent as i64).slice(0, rows);
            sender
                .push_timeout(StreamElement::Data(batch), LONG)
                .unwrap();
            sent += rows;
        }
        sender.finish().unwrap();
    });
    // What it takes when it is warm, which it is when it has been full: else it might be so for
    // the first time near the end.
    wait_until_it_stays(&pushed);
    let (mut taken, mut warm) = (0, resident_bytes());
    loop {
        match receiver.pop_timeout(LONG) {
            Popped::Element(StreamElement::Data(batch)) => taken += batch.num_rows(),
            Popped::Ended(ending) => break assert_eq!(ending, Ending::End),
            other => panic!("{other:?}"),
        }
        if taken < rows_wanted / 2 {
            warm = warm.max(resident_bytes());
        }
    }
    sending.join().unwrap();
    assert!(taken >= rows_wanted, "{taken} of {rows_wanted} rows");
    let grown = resident_bytes().saturating_sub(warm);
    assert!(
        grown <= KEPT_BYTES,
        "{grown} bytes more after {taken} rows of {ROW_BYTES} bytes"
    );
}

/// Waits until a number above 0 has not changed for a while.
fn wait_until_it_stays(number: &AtomicUsize) {
    let mut last = 0;
    loop {
        thread::sleep(STAYS);
        let now = number.load(Ordering::Relaxed);
        if now > 0 && now == last {
            return;
        }
        last = now;
    }
}
