//! Fillers between the two ends of a real edge, and between one and a peer that is played by
//! hand: where they stand, that nothing is lost or late for them, and that peers which know none
//! are understood.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use ringway::clock::Clock;
use ringway::edge::remote::{
    Links, LinksHandle, RemoteOptions, RemoteParts, links, receive_over, send_over,
};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender};
use ringway::element::{Barrier, StreamElement};
use ringway_netio::driver::{DriverChoice, open};
use ringway_netio::frame::{Control, Ending as WireEnding, Extensions, Kind};
use ringway_netio::session::{
    Mode, ReceiverOptions, ReceiverSession, SenderOptions, SenderSession,
};
use ringway_tests::conformance::elements::{Numbers, ending, next, number};
use ringway_tests::sockets::{self, io, pair};
use ringway_tests::within::LONG;

const CLOSED: [u8; 5] = [0, 0, 0, 1, Kind::CLOSED.0];

fn parts(remote: RemoteOptions) -> RemoteParts<Numbers> {
    sockets::parts(EdgeOptions::named("edge"), remote)
}

/// What a peer knows that knows no filler, and not who it is.
fn without() -> Extensions {
    let nameless = Extensions::ALL.without(Extensions::IDENTITY);
    nameless.without(Extensions::FILLER)
}

/// Links that the test turns itself, so that their driver never sleeps.
fn side(driver: DriverChoice) -> (LinksHandle, Links) {
    let (handle, seed) = links().unwrap();
    let driver = open(driver).unwrap().driver;
    (handle, Links::new(seed, driver, Clock::start()).unwrap())
}

/// Both ends of an edge, and what moves them.
struct Edge {
    sender: Sender<Numbers>,
    receiver: Receiver<Numbers>,
    from: Links,
    to: Links,
}

impl Edge {
    fn open(driver: DriverChoice) -> Self {
        let (out, back) = pair();
        let ((sending, from), (receiving, to)) = (side(driver), side(driver));
        let remote = RemoteOptions::default();
        Self {
            sender: send_over(&sending, out.into(), parts(remote.clone())).unwrap(),
            receiver: receive_over(&receiving, back.into(), parts(remote)).unwrap(),
            from,
            to,
        }
    }

    /// Brings one row, and turns no more than that takes: its filler may be in the socket still.
    fn pass(&mut self, value: i64) {
        self.sender.try_push(number(value)).unwrap();
        let begin = Instant::now();
        loop {
            self.from.turn();
            self.to.turn();
            match self.receiver.try_pop() {
                Popped::Empty => assert!(begin.elapsed() < LONG, "row {value} never comes"),
                popped => break assert_eq!(popped, Popped::Element(number(value))),
            }
        }
    }
}

#[test]
fn an_edge_that_is_idle_between_rows_loses_nothing_and_ends_properly() {
    for driver in [DriverChoice::Epoll, DriverChoice::Auto] {
        for rows in [1, 2, 100] {
            let mut edge = Edge::open(driver);
            for value in 0..rows {
                edge.pass(value);
                for _ in 0..value % 4 {
                    edge.from.turn();
                    edge.to.turn();
                }
            }
            let mode = edge.receiver.remote_stats().unwrap().mode.unwrap();
            let agreed = without() | Extensions::FILLER;
            assert_eq!(mode, Mode::Negotiated(agreed));
            let sender = edge.sender;
            let waiting = thread::spawn(move || sender.finish_and_wait(LONG));
            while !waiting.is_finished() {
                edge.from.turn();
                edge.to.turn();
            }
            assert_eq!(waiting.join().unwrap(), Ok(()));
            assert_eq!(ending(&mut edge.receiver), Ending::End);
        }
    }
}

#[test]
fn a_receiver_that_goes_over_a_filler_says_why_it_does() {
    for driver in [DriverChoice::Epoll, DriverChoice::Auto] {
        let mut edge = Edge::open(driver);
        for value in 0..50 {
            edge.pass(value);
        }
        edge.receiver.close();
        let begin = Instant::now();
        while !edge.sender.is_closed() {
            assert!(begin.elapsed() < LONG, "the sender never hears of it");
            edge.to.turn();
            edge.from.turn();
        }
        let rejected = edge.sender.try_push(number(0)).unwrap_err();
        assert_eq!(rejected.reason, RejectReason::Closed);
    }
}

/// Reads one frame from the peer of a test: its kind and body.
fn read_frame(peer: &mut TcpStream) -> (Kind, Vec<u8>) {
    let mut length = [0; 4];
    peer.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    peer.read_exact(&mut frame).unwrap();
    (Kind(frame[0]), frame.split_off(1))
}

/// The kinds that a sender sends to a receiver that offers these, in order: some rows, each when
/// the one before has come, and the end.
fn kinds_sent(extensions: Extensions) -> Vec<Kind> {
    let (out, mut peer) = pair();
    peer.set_read_timeout(Some(LONG)).unwrap();
    let mut sender = send_over(&io(), out.into(), parts(RemoteOptions::default())).unwrap();
    let options = ReceiverOptions {
        extensions,
        ..ReceiverOptions::default()
    };
    let mut offer = Vec::new();
    ReceiverSession::<Vec<u8>>::new(options, Duration::ZERO).poll_transmit(&mut offer);
    peer.write_all(&offer).unwrap();
    let mut kinds = Vec::new();
    let mut until = |peer: &mut TcpStream, last: Kind| {
        loop {
            kinds.push(read_frame(peer).0);
            if kinds.ends_with(&[last]) {
                break;
            }
        }
    };
    for value in 0..5 {
        sender.push(number(value)).unwrap();
        until(&mut peer, Kind::BATCH);
        if extensions.has(Extensions::FILLER) {
            until(&mut peer, Kind::FILLER);
        }
    }
    let waiting = thread::spawn(move || sender.finish_and_wait(LONG));
    until(&mut peer, Kind::CLOSE);
    let mut rest = Vec::new();
    peer.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "something stands behind the end");
    peer.write_all(&CLOSED).unwrap();
    drop(peer);
    assert_eq!(waiting.join().unwrap(), Ok(()));
    kinds
}

#[test]
fn a_row_is_followed_by_a_filler_and_the_end_by_nothing() {
    let kinds = kinds_sent(without() | Extensions::FILLER);
    let batches = kinds.windows(2).filter(|pair| pair[0] == Kind::BATCH);
    let fillers = batches.filter(|pair| pair[1] == Kind::FILLER).count();
    assert_eq!(fillers, 5, "{kinds:?}");
    assert_eq!(kinds.last(), Some(&Kind::CLOSE));
}

#[test]
fn a_receiver_that_offers_none_is_sent_no_filler() {
    let kinds = kinds_sent(without());
    assert!(!kinds.contains(&Kind::FILLER), "{kinds:?}");
}

/// The peer of a receiver, which has accepted these.
fn accepting(peer: &mut TcpStream, extensions: Extensions) -> SenderSession<Vec<u8>> {
    let options = SenderOptions {
        extensions,
        ..SenderOptions::default()
    };
    let mut session = SenderSession::new(options, Duration::ZERO);
    let (kind, body) = read_frame(peer);
    let mut frame = Vec::from((body.len() as u32 + 1).to_be_bytes());
    frame.push(kind.0);
    frame.extend(body);
    session.handle_input(Duration::ZERO, &frame);
    assert!(matches!(session.mode(), Mode::Negotiated(_)));
    session
}

/// The frames of a barrier, with what goes before it.
fn barrier(session: &mut SenderSession<Vec<u8>>, id: u64) -> Vec<u8> {
    let control = Control::Barrier {
        id,
        mode: 0,
        terminal: false,
    };
    session.push_control(control).unwrap();
    sent(session)
}

fn sent(session: &mut SenderSession<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    while session.poll_transmit(&mut out).is_some() {}
    out
}

#[test]
fn a_sender_that_knows_no_filler_is_understood() {
    let (mut peer, back) = pair();
    let mut receiver = receive_over(&io(), back.into(), parts(RemoteOptions::default())).unwrap();
    let mut session = accepting(&mut peer, without());
    for id in 0..50 {
        peer.write_all(&barrier(&mut session, id)).unwrap();
        let expected = StreamElement::Barrier(Barrier::aligned(id));
        assert_eq!(next(&mut receiver), expected);
    }
    let Some(Mode::Negotiated(agreed)) = receiver.remote_stats().unwrap().mode else {
        panic!("the negotiated form");
    };
    assert!(!agreed.has(Extensions::FILLER));
    session.close(WireEnding::End);
    peer.write_all(&sent(&mut session)).unwrap();
    assert_eq!(ending(&mut receiver), Ending::End);
    peer.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    peer.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&CLOSED), "{answer:?}");
}

/// The lengths are those that make the receiver leave the end of what came, and that is the end
/// of a frame that means something.
#[test]
fn a_sender_that_promises_fillers_and_sends_frames_is_not_stalled() {
    const STALLED_AFTER: Duration = Duration::from_millis(400);
    const BURST: usize = 328;
    for driver in [DriverChoice::Epoll, DriverChoice::Auto] {
        let (mut peer, back) = pair();
        let (receiving, mut links) = side(driver);
        let remote = RemoteOptions {
            stalled_after: STALLED_AFTER,
            ..RemoteOptions::default()
        };
        let mut receiver = receive_over(&receiving, back.into(), parts(remote)).unwrap();
        links.turn();
        // Not padded, so that bursts end anywhere.
        let odd = Extensions::ALL.without(Extensions::ALIGNED);
        let mut session = accepting(&mut peer, odd);
        let mut bytes = Vec::new();
        let (mut sent, mut taken) = (0, 0);
        for burst in 0..80 {
            while bytes.len() < BURST {
                bytes.extend(barrier(&mut session, sent));
                sent += 1;
            }
            // The last one ends with a frame.
            let end = if burst == 79 { bytes.len() } else { BURST };
            peer.write_all(&bytes[..end]).unwrap();
            bytes.drain(..end);
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(2) {
                links.turn();
            }
            while let Popped::Element(element) = receiver.try_pop() {
                let expected = StreamElement::Barrier(Barrier::aligned(taken));
                assert_eq!(element, expected);
                taken += 1;
            }
        }
        let begin = Instant::now();
        while begin.elapsed() < STALLED_AFTER * 2 {
            links.turn();
            if let Popped::Element(_) = receiver.try_pop() {
                taken += 1;
            }
        }
        assert_eq!(taken, sent, "all is there long before the end");
        session.close(WireEnding::End);
        peer.write_all(&self::sent(&mut session)).unwrap();
        let begin = Instant::now();
        loop {
            links.turn();
            match receiver.try_pop() {
                Popped::Empty => assert!(begin.elapsed() < LONG, "the end never comes"),
                popped => break assert_eq!(popped, Popped::Ended(Ending::End)),
            }
        }
    }
}
