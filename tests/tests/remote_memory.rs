//! What edges over connections hold, whatever their peers and users do.
//!
//! Goal: a fast sender, a slow consumer or large rows fill no memory beyond the bytes of the
//! edge, and what passes leaves nothing behind. Method: resident memory of this process, which
//! has both ends. A binary of its own, whose tests take turns, so that no other allocates
//! meanwhile. `RINGWAY_PASSED_BYTES` says how much is to pass; memory of the kernel is not
//! counted.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::ipc::writer::StreamWriter;
use ringway::edge::remote::{
    LinksHandle, RemoteOptions, RemoteParts, receive_over, send_over, spawn_links,
};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender};
use ringway::element::StreamElement;
use ringway::wire::Wired;
use ringway_netio::driver::{DriverChoice, open};
use ringway_shm::Bell;
use ringway_tests::within::LONG;

const ROW_BYTES: usize = 64 << 10;
const ROWS: usize = 16;
const EDGE_BYTES: usize = 8 << 20;

/// What sockets, threads and the memory that is kept for reuse may add.
const SLACK_BYTES: usize = 12 << 20;

/// What the kernel may hold of a connection: its buffers for sending and receiving.
const SOCKET_BYTES_MAX: usize = 24 << 20;

/// For how long nothing moves where all is full.
const STILL: Duration = Duration::from_millis(500);

static TURN: Mutex<()> = Mutex::new(());

fn io() -> LinksHandle {
    let made = spawn_links(|| {
        let opened = open(DriverChoice::Auto).map_err(std::io::Error::other)?;
        Ok(opened.driver)
    });
    made.unwrap().0
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (out, listener.accept().unwrap().0)
}

fn parts(remote: RemoteOptions) -> RemoteParts<RecordBatch> {
    RemoteParts {
        edge: EdgeOptions::named("edge").bytes(EDGE_BYTES),
        remote,
        codec: RecordBatch::codec(),
        peer: "loopback".to_owned(),
        bell: Bell::thread(),
    }
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

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

fn both_forms() -> [RemoteOptions; 2] {
    [RemoteOptions::default(), RemoteOptions::version_1()]
}

#[test]
fn neither_end_holds_more_than_the_bytes_of_the_edge_while_nobody_takes_anything() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for remote in both_forms() {
        let before = resident_bytes();
        let (mut sender, mut receiver) = edge(&remote);
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
            waiting <= 2 * EDGE_BYTES + SOCKET_BYTES_MAX,
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
    let mut frame = (body.len() as u32 + 1).to_be_bytes().to_vec();
    frame.push(7);
    frame.extend(body);
    let before = resident_bytes();
    let (mut out, back) = pair();
    let receiver = receive_over(&io(), back.into(), parts(RemoteOptions::version_1())).unwrap();
    out.set_write_timeout(Some(STILL)).unwrap();
    let mut written = 0;
    while out.write_all(&frame).is_ok() {
        written += frame.len();
        assert!(
            written <= EDGE_BYTES + SOCKET_BYTES_MAX,
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
    let wanted = wanted.map_or(512 << 20, |bytes| bytes.parse().unwrap());
    let (mut sender, mut receiver) = edge(&RemoteOptions::default());
    let rows_wanted: usize = wanted / ROW_BYTES;
    let sending = thread::spawn(move || {
        let mut sent = 0;
        while sent < rows_wanted {
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
    let (mut taken, mut warm) = (0, None);
    loop {
        match receiver.pop_timeout(LONG) {
            Popped::Element(StreamElement::Data(batch)) => taken += batch.num_rows(),
            Popped::Ended(ending) => break assert_eq!(ending, Ending::End),
            other => panic!("{other:?}"),
        }
        if taken >= rows_wanted / 4 {
            warm.get_or_insert_with(resident_bytes);
        }
    }
    sending.join().unwrap();
    assert!(taken >= rows_wanted, "{taken} of {rows_wanted} rows");
    let grown = resident_bytes().saturating_sub(warm.expect("a quarter came"));
    assert!(
        grown <= SLACK_BYTES,
        "{grown} bytes more after {taken} rows of {ROW_BYTES} bytes"
    );
}
