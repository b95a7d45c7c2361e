//! Edges over loopback connections: the things that the suite of all edges does not ask.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use ringway_netio::driver::EpollDriver;
use ringway_netio::session::Mode;
use ringway_shm::Bell;

use super::*;
use crate::batch::{Payload, Row, Rows};
use crate::clock::Clock;
use crate::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender, Transport};
use crate::element::{Barrier, StreamElement, Watermark};
use crate::wire::Wired;

const LONG: Duration = Duration::from_secs(20);

fn io() -> LinksHandle {
    spawn_links(|| Ok(Box::new(EpollDriver::new()?))).unwrap().0
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (out, listener.accept().unwrap().0)
}

fn parts<B: Wired>(edge: &EdgeOptions, remote: &RemoteOptions) -> RemoteParts<B> {
    RemoteParts {
        edge: edge.clone(),
        remote: remote.clone(),
        codec: B::codec(),
        peer: "peer".to_owned(),
        bell: Bell::thread(),
    }
}

fn open<B: Wired>(edge: EdgeOptions, remote: RemoteOptions) -> (Sender<B>, Receiver<B>) {
    let (out, back) = pair();
    let sender = send_over(&io(), out.into(), parts(&edge, &remote)).unwrap();
    let receiver = receive_over(&io(), back.into(), parts(&edge, &remote)).unwrap();
    (sender, receiver)
}

fn number(value: i64) -> StreamElement<Rows<i64>> {
    StreamElement::Data(Rows::from(vec![Row::at(value, value)]))
}

fn both_forms() -> [RemoteOptions; 2] {
    [RemoteOptions::default(), RemoteOptions::version_1()]
}

#[test]
fn elements_of_all_kinds_arrive_in_order_and_the_stream_ends() {
    for remote in both_forms() {
        let (mut sender, mut receiver) = open::<Rows<i64>>(EdgeOptions::named("e"), remote.clone());
        assert_eq!(sender.transport(), Transport::Socket);
        let sent = [
            number(1),
            StreamElement::Watermark(Watermark::active(1)),
            number(2),
            StreamElement::Barrier(Barrier::aligned(1)),
            StreamElement::Data(Rows::new()),
        ];
        for element in sent.clone() {
            sender.push(element).unwrap();
        }
        sender.finish_and_wait(LONG).unwrap();
        for element in sent {
            assert_eq!(
                receiver.pop_timeout(LONG),
                Popped::Element(element),
                "{remote:?}"
            );
        }
        assert_eq!(receiver.pop_timeout(LONG), Popped::Ended(Ending::End));
        let mode = receiver.remote_stats().unwrap().mode.unwrap();
        let negotiated = remote == RemoteOptions::default();
        assert_eq!(matches!(mode, Mode::Negotiated(_)), negotiated, "{mode:?}");
    }
}

fn batch(rows: i64) -> RecordBatch {
    let texts = (0..rows).map(|n| format!("row {n} of {rows}"));
    let texts = Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
    let numbers = Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef;
    RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
}

#[test]
fn large_batches_arrive_in_pieces_and_memory_is_given_back() {
    for remote in both_forms() {
        let edge = EdgeOptions::named("e").capacity(4).bytes(1 << 20);
        let (mut sender, mut receiver) = open::<RecordBatch>(edge, remote);
        let sending = std::thread::spawn(move || {
            for rows in [0, 1, 5_000, 100_000, 3, 20_000] {
                for _ in 0..5 {
                    sender.push(StreamElement::Data(batch(rows))).unwrap();
                }
            }
            sender.finish().unwrap();
        });
        let mut rows = 0;
        loop {
            match receiver.pop_timeout(LONG) {
                Popped::Element(StreamElement::Data(batch)) => {
                    assert!(batch.bytes() <= 1 << 20);
                    rows += batch.num_rows();
                }
                Popped::Ended(ending) => {
                    assert_eq!(ending, Ending::End);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(rows, 5 * (1 + 5_000 + 100_000 + 3 + 20_000));
        sending.join().unwrap();
    }
}

#[test]
fn a_batch_is_held_by_nobody_once_it_has_gone() {
    for remote in both_forms() {
        let (mut sender, mut receiver) = open::<RecordBatch>(EdgeOptions::named("e"), remote);
        let mut columns = Vec::new();
        // Small ones are copied on their way, and large ones are not.
        for rows in [1, 100, 5_000] {
            let batch = batch(rows);
            columns.push(Arc::downgrade(batch.column(0)));
            sender.push(StreamElement::Data(batch)).unwrap();
            let mut came = 0;
            while came < rows {
                match receiver.pop_timeout(LONG) {
                    Popped::Element(StreamElement::Data(batch)) => came += batch.num_rows() as i64,
                    other => panic!("{other:?}"),
                }
            }
        }
        let deadline = std::time::Instant::now() + LONG;
        while columns.iter().any(|column| column.strong_count() > 0) {
            assert!(std::time::Instant::now() < deadline, "still held");
            std::thread::yield_now();
        }
        sender.finish().unwrap();
    }
}

#[test]
fn a_receiver_that_goes_tells_its_sender_why() {
    let closed = |go: fn(Receiver<Rows<i64>>)| {
        let (mut sender, receiver) = open::<Rows<i64>>(
            EdgeOptions::named("e").capacity(2),
            RemoteOptions::default(),
        );
        sender.push(number(1)).unwrap();
        go(receiver);
        loop {
            if let Err(rejected) = sender.push_timeout(number(2), LONG) {
                return rejected.reason;
            }
        }
    };
    assert_eq!(closed(Receiver::close), RejectReason::Closed);
    let failed = closed(|receiver| receiver.fail("disk full")).to_string();
    assert!(
        failed.contains("edge e, peer peer: the peer failed: disk full"),
        "{failed}"
    );
    let lost = closed(drop).to_string();
    assert!(lost.contains("without having closed"), "{lost}");
}

/// What is before the barrier on the wire counts as overtaken, wherever it waits: in the ring,
/// decoded beside it, or in the session.
#[test]
fn a_barrier_that_overtakes_a_full_ring_tells_all_that_came_before_it() {
    for capacity in [1, 2, 7] {
        let remote = RemoteOptions::default().overtaking();
        let edge = EdgeOptions::named("e").capacity(capacity);
        let (mut sender, mut receiver) = open::<Rows<i64>>(edge, remote);
        let before: Vec<_> = (0..20).map(number).collect();
        for element in before.clone() {
            sender.push_timeout(element, LONG).unwrap();
        }
        sender.try_push_priority(Barrier::unaligned(1)).unwrap();
        sender.push_timeout(number(20), LONG).unwrap();
        let clock = crate::clock::Clock::start();
        while !receiver.has_priority() {
            assert!(clock.now().0 < LONG, "a barrier overtakes");
            std::thread::yield_now();
        }
        let queued = receiver.len();
        assert!(queued <= capacity, "{queued}");
        let (barrier, position) = receiver.poll_priority().unwrap();
        assert_eq!((barrier, position), (Barrier::unaligned(1), 20));
        for element in before {
            assert!(receiver.position() < position);
            assert_eq!(receiver.pop_timeout(LONG), Popped::Element(element));
        }
        assert_eq!(receiver.position(), position);
        assert_eq!(receiver.pop_timeout(LONG), Popped::Element(number(20)));
    }
}

#[test]
fn barriers_that_overtake_keep_their_order_and_their_places() {
    let remote = RemoteOptions::default().overtaking();
    let edge = EdgeOptions::named("e").capacity(2);
    let (mut sender, mut receiver) = open::<Rows<i64>>(edge, remote);
    for value in 0..5 {
        sender.push_timeout(number(value), LONG).unwrap();
        let barrier = StreamElement::Barrier(Barrier::unaligned(value as u64));
        sender.push_timeout(barrier, LONG).unwrap();
    }
    sender.finish().unwrap();
    let (mut places, mut values) = (Vec::new(), Vec::new());
    loop {
        if let Some((barrier, position)) = receiver.poll_priority() {
            assert!(receiver.position() <= position);
            places.push((barrier.id, position));
        }
        match receiver.try_pop() {
            Popped::Element(element) => values.push(element),
            Popped::Ended(ending) => break assert_eq!(ending, Ending::End),
            Popped::Empty => std::thread::yield_now(),
        }
    }
    assert_eq!(values, (0..5).map(number).collect::<Vec<_>>());
    assert_eq!(places, (0..5).map(|n| (n, n + 1)).collect::<Vec<_>>());
}

#[test]
fn a_driver_that_is_alive_is_asked_to_look_after_its_connections() {
    let (handle, seed) = links().unwrap();
    let driver = Box::new(EpollDriver::new().unwrap());
    let mut links = Links::new(seed, driver, crate::clock::Clock::start()).unwrap();
    assert_eq!(links.next_timeout(), None);
    let (out, _back) = pair();
    let (edge, remote) = (EdgeOptions::named("e"), RemoteOptions::default());
    let _sender = send_over(&handle, out.into(), parts::<Rows<i64>>(&edge, &remote)).unwrap();
    links.turn();
    assert!(links.next_timeout().unwrap() <= ringway_netio::net::TEND_EVERY);
}

/// What a receiver says that speaks the negotiated form: its window of version 1, and the offer.
fn offer() -> Vec<u8> {
    let mut frame = vec![0, 0, 0, 53, 4, 0, 0, 8, 0];
    frame.extend(b"RWAY\x02\x00\x00\x30");
    frame.extend([7; 16]);
    frame.extend(0x0f_u32.to_be_bytes());
    frame.extend(1024_u32.to_be_bytes());
    frame.extend((1_u64 << 20).to_be_bytes());
    frame.extend((1_u32 << 20).to_be_bytes());
    frame.extend([0; 4]);
    frame
}

/// How the stream of a sender ends whose peer says `last` and is gone, all before that is
/// looked at.
fn finished_with(last: &[u8]) -> Result<(), FinishError> {
    let (out, mut peer) = pair();
    let (handle, seed) = links().unwrap();
    let driver = Box::new(EpollDriver::new().unwrap());
    let mut links = Links::new(seed, driver, Clock::start()).unwrap();
    let parts = parts(&EdgeOptions::named("e"), &RemoteOptions::default());
    let mut sender = send_over::<Rows<i64>>(&handle, out.into(), parts).unwrap();
    sender.push(number(1)).unwrap();
    peer.write_all(&offer()).unwrap();
    let waiting = std::thread::spawn(move || sender.finish_and_wait(LONG));
    let reading = std::thread::spawn(move || {
        peer.read_to_end(&mut Vec::new()).unwrap();
        peer
    });
    while !reading.is_finished() {
        links.turn();
    }
    let mut peer = reading.join().unwrap();
    peer.write_all(last).unwrap();
    drop(peer);
    while !waiting.is_finished() {
        links.turn();
    }
    waiting.join().unwrap()
}

#[test]
fn a_confirmation_that_comes_together_with_the_end_of_the_connection_is_heard() {
    assert_eq!(finished_with(&[0, 0, 0, 1, 229]), Ok(()));
}

#[test]
fn a_failure_that_comes_together_with_the_end_of_the_connection_is_heard() {
    let abort = [&[0, 0, 0, 8, 228, 0, 1, 0, 3][..], b"why"].concat();
    let said = finished_with(&abort).unwrap_err().to_string();
    assert!(said.contains("the peer failed: why"), "{said}");
    let said = finished_with(&[]).unwrap_err().to_string();
    assert!(said.contains("without having closed"), "{said}");
}

#[test]
fn a_sender_whose_connections_nobody_drives_any_more_hears_of_it() {
    let (out, _peer) = pair();
    let (handle, seed) = links().unwrap();
    let driver = Box::new(EpollDriver::new().unwrap());
    let mut links = Links::new(seed, driver, Clock::start()).unwrap();
    let parts = parts(&EdgeOptions::named("e"), &RemoteOptions::default());
    let mut sender = send_over::<Rows<i64>>(&handle, out.into(), parts).unwrap();
    sender.push(number(1)).unwrap();
    let waiting = std::thread::spawn(move || sender.finish_and_wait(LONG));
    links.turn();
    drop(links);
    let said = waiting.join().unwrap().unwrap_err();
    assert_ne!(said, FinishError::TimedOut);
}

#[test]
fn a_bell_that_was_rung_when_nobody_slept_keeps_no_thread_awake() {
    let bell = Bell::descriptor().unwrap();
    bell.arm();
    bell.ring();
    let (_handle, seed) = links_with(bell);
    let driver = Box::new(EpollDriver::new().unwrap());
    let mut links = Links::new(seed, driver, Clock::start()).unwrap();
    assert!(
        (0..20).any(|_| links.turn() == 0),
        "something to do in every turn"
    );
}

/// A link that always has news, and notes when it is pumped.
struct Noting {
    name: &'static str,
    sends: bool,
    pumped: std::rc::Rc<std::cell::RefCell<Vec<&'static str>>>,
}

impl links::Link for Noting {
    fn handle(&mut self, _: links::Event, _: &mut links::Io<'_>) {}

    fn sends(&self) -> bool {
        self.sends
    }

    fn pump(&mut self, _: &mut links::Io<'_>) -> usize {
        self.pumped.borrow_mut().push(self.name);
        0
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn is_needed(&self) -> bool {
        false
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[test]
fn what_goes_to_a_peer_goes_before_what_was_taken_is_said() {
    let (_handle, seed) = links().unwrap();
    let driver = Box::new(EpollDriver::new().unwrap());
    let mut links = Links::new(seed, driver, Clock::start()).unwrap();
    let pumped = std::rc::Rc::default();
    let mut peers = Vec::new();
    // Enough of them for any order of the table that they are in.
    for number in 0..16 {
        let (near, far) = pair();
        peers.push(far);
        let connection = links.reserve(near.into()).unwrap();
        let sends = number % 2 == 1;
        let name = if sends { "sender" } else { "receiver" };
        let pumped = std::rc::Rc::clone(&pumped);
        links.insert(
            connection,
            Box::new(Noting {
                name,
                sends,
                pumped,
            }),
        );
    }
    links.turn();
    let expected = [["sender"; 8], ["receiver"; 8]].concat();
    assert_eq!(*pumped.borrow(), expected);
}
