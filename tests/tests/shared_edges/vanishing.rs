//! Peers that are gone before this side has looked at what they said.
//!
//! The test turns the links of its half by itself, so that one look finds the peer's answer and the
//! end of its connection together: nothing tells of that end a second time.

use std::cell::Cell;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Clock;
use ringway::edge::remote::{
    EdgePortOptions, Links, LinksHandle, RemoteOptions, RemoteParts, links, listen_for_edges,
    receive_over, send_over,
};
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Ending, FailureKind, Popped, Receiver, RejectReason, Transport};
use ringway::element::{StreamElement, Watermark};
use ringway::wire::Wired;
use ringway_netio::driver::DriverChoice;
use ringway_shm::link::{Incoming, LinkConfig, Outgoing};
use ringway_shm::{Bell, passing};
use ringway_tests::sockets::pair;
use ringway_tests::within::{LONG, until};

use crate::by_hand::{
    HandReceiver, HandSender, IDENTITY, RECEIVER, RIGHT, SENDER, UNHURRIED, address,
};
use crate::meanwhile::{Interrupted, Meanwhile};
use crate::rig::data;

/// Ends a connection, and returns what is left of it.
type Go = fn(TcpStream) -> Option<TcpStream>;

const WAYS: [(&str, Go); 3] = [
    ("its direction is shut", |stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        Some(stream)
    }),
    ("it is closed", |_| None),
    ("it is reset", |stream| {
        let linger = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&stream, linger).unwrap();
        None
    }),
];

/// Each way, over each driver.
fn ways() -> impl Iterator<Item = (DriverChoice, (&'static str, Go))> {
    let drivers = [DriverChoice::Epoll, DriverChoice::Auto];
    drivers
        .into_iter()
        .flat_map(|driver| WAYS.map(|way| (driver, way)))
}

/// A thread of links that nobody turns but the test.
fn still(driver: DriverChoice) -> (LinksHandle, Links) {
    let (handle, links, _) = interrupted(driver);
    (handle, links)
}

/// The same, with what is to happen between its looks at the memory and at the connections.
fn interrupted(driver: DriverChoice) -> (LinksHandle, Links, Meanwhile) {
    let (handle, seed) = links().unwrap();
    let (driver, meanwhile) = Interrupted::open(driver);
    let links = Links::new(seed, driver, Clock::start()).unwrap();
    (handle, links, meanwhile)
}

fn options() -> RemoteOptions {
    let mut options = RemoteOptions::default()
        .sharing(Sharing::Require)
        .identity(IDENTITY);
    options.stalled_after = UNHURRIED;
    options
}

fn parts(bell: Bell) -> RemoteParts<RecordBatch> {
    RemoteParts {
        edge: EdgeOptions::named("edge"),
        remote: options(),
        codec: RecordBatch::codec(),
        peer: "peer".to_owned(),
        bell,
    }
}

fn receiver(handle: &LinksHandle, back: TcpStream) -> (Receiver<RecordBatch>, Bell) {
    let bell = Bell::thread();
    let receiver = receive_over(handle, back.into(), parts(bell.clone()));
    (receiver.unwrap(), bell)
}

/// Turns the links until somebody rings for the receiver.
fn is_woken(links: &mut Links, bell: &Bell) {
    until(LONG, "the receiver is woken", || {
        bell.arm();
        links.turn();
        bell.park(Some(Duration::ZERO))
    });
}

/// Answers the offer, and comes in with its memory, while the links stand still.
fn answer(links: &mut Links, stream: TcpStream) -> (TcpStream, Outgoing, UnixStream) {
    until(LONG, "the offer is there", || {
        links.turn();
        stream.set_nonblocking(true).unwrap();
        let offered = stream.peek(&mut [0; 512]).is_ok_and(|bytes| bytes > 60);
        stream.set_nonblocking(false).unwrap();
        offered
    });
    let mut sender = HandSender::greet(stream);
    let outgoing = Outgoing::new(&LinkConfig::default(), &Bell::descriptor().unwrap()).unwrap();
    let knock = UnixStream::connect_addr(&address(sender.token())).unwrap();
    RIGHT.send(&knock, SENDER, sender.token(), outgoing.descriptors());
    sender.transmit();
    (sender.stream, outgoing, knock)
}

#[track_caller]
fn is_lost(links: &mut Links, receiver: &mut Receiver<RecordBatch>, how: &str) {
    let mut ended = None;
    until(LONG, how, || {
        links.turn();
        match receiver.try_pop() {
            Popped::Ended(ending) => ended = Some(ending),
            Popped::Empty => {}
            Popped::Element(element) => panic!("{element:?} of a sender that sent nothing"),
        }
        ended.is_some()
    });
    let Some(Ending::Failed(failure)) = ended else {
        panic!("{how}: failed, not {ended:?}");
    };
    let is_lost = matches!(
        failure.kind,
        FailureKind::PeerLost | FailureKind::ConnectionLost(_)
    );
    assert!(is_lost, "{how}: {failure}");
    assert_eq!(receiver.transport(), Transport::Shared, "{how}");
}

#[test]
fn a_sender_that_is_gone_as_soon_as_it_has_answered_is_lost() {
    for (driver, (how, go)) in ways() {
        let (handle, mut links) = still(driver);
        let (out, back) = pair();
        let (mut receiver, _) = receiver(&handle, back);
        let (out, outgoing, knock) = answer(&mut links, out);
        let left = (outgoing, knock, go(out));
        is_lost(&mut links, &mut receiver, how);
        drop(left);
    }
}

#[test]
fn what_a_sender_has_published_comes_before_it_is_lost() {
    /// A watermark, and how many are published and not.
    const WATERMARK: u32 = 16;
    const PUBLISHED: i64 = 100;
    for (driver, (how, go)) in ways() {
        let (handle, mut links) = still(driver);
        let (out, back) = pair();
        let (mut receiver, bell) = receiver(&handle, back);
        let (out, outgoing, knock) = answer(&mut links, out);
        until(LONG, "they have met", || {
            links.turn();
            receiver.poll_transport() == Some(Transport::Shared)
        });
        let met = passing::Receiving::<3>::new().poll(&knock).unwrap();
        let mut producer = outgoing.meet(met.unwrap().descriptors).unwrap();
        for time_ms in 0..PUBLISHED + 10 {
            let said = [0, time_ms].map(i64::to_le_bytes).concat();
            producer.push_small(WATERMARK, &said).unwrap();
            if time_ms == PUBLISHED - 1 {
                producer.flush();
            }
        }
        // What wakes the receiver first is what was published, and then that the sender is gone.
        is_woken(&mut links, &bell);
        let left = go(out);
        is_woken(&mut links, &bell);
        for time_ms in 0..PUBLISHED {
            match receiver.try_pop() {
                Popped::Element(StreamElement::Watermark(watermark)) => {
                    assert_eq!(watermark, Watermark::active(time_ms), "{how}");
                }
                other => panic!("{how}: {other:?}, not watermark {time_ms}"),
            }
        }
        is_lost(&mut links, &mut receiver, how);
        drop((left, producer, knock));
    }
}

/// Its connection goes from the port of the job to the receiver when the answer is there.
#[test]
fn a_sender_of_an_edge_of_a_job_that_is_gone_as_soon_as_it_has_answered_is_lost() {
    for (driver, (how, go)) in ways() {
        let (handle, mut links) = still(driver);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let port = EdgePortOptions {
            job: IDENTITY.job,
            attempt: IDENTITY.attempt,
            bytes_max: 1 << 20,
            remote: options(),
        };
        let port = listen_for_edges(&handle, listener.into(), port).unwrap();
        let (edge, named) = (IDENTITY.edge, EdgeOptions::named("edge"));
        let (codec, bell) = (RecordBatch::codec(), Bell::thread());
        let mut receiver = port.expect(edge, &named, codec, bell, &handle).unwrap();
        let out = TcpStream::connect(at).unwrap();
        let (out, outgoing, knock) = answer(&mut links, out);
        let left = (outgoing, knock, go(out));
        is_lost(&mut links, &mut receiver, how);
        drop(left);
    }
}

/// Turns the links until the sender stands at the door of its receiver, and lets it in.
fn knock(links: &mut Links, receiver: &HandReceiver) -> UnixStream {
    receiver.door.set_nonblocking(true).unwrap();
    let mut knock = None;
    until(LONG, "the sender knocks", || {
        links.turn();
        knock = receiver.door.accept().ok();
        knock.is_some()
    });
    knock.unwrap().0
}

/// The last that a receiver does before it goes, or sees.
#[derive(Clone, Copy, Debug)]
enum Until {
    Offer,
    Knock,
    Answer,
    Memory,
}

#[test]
fn a_receiver_that_is_gone_as_soon_as_it_has_said_something_is_lost() {
    use Until::{Answer, Knock, Memory, Offer};
    for last in [Offer, Knock, Answer, Memory] {
        for (driver, (how, go)) in ways() {
            let (handle, mut links) = still(driver);
            let (back, out) = pair();
            let parts = parts(Bell::thread());
            let mut sender = send_over::<RecordBatch>(&handle, out.into(), parts).unwrap();
            let receiver = HandReceiver::offer(back);
            let incoming = Incoming::new(&Bell::descriptor().unwrap()).unwrap();
            let knock = (!matches!(last, Offer)).then(|| knock(&mut links, &receiver));
            if let (Some(knock), Answer | Memory) = (&knock, last) {
                RIGHT.send(knock, RECEIVER, receiver.token, incoming.descriptors());
            }
            if let Memory = last {
                until(LONG, "they have met", || {
                    links.turn();
                    sender.poll_transport() == Some(Transport::Shared)
                });
            }
            let left = go(receiver.stream);
            until(LONG, &format!("{last:?}, {how}"), || {
                links.turn();
                sender.poll_transport();
                sender.is_closed()
            });
            let rejected = sender.try_push(data(0..10)).unwrap_err();
            assert!(
                matches!(rejected.reason, RejectReason::Failed(_)),
                "{last:?}, {how}"
            );
            drop((left, knock, incoming));
        }
    }
}

/// A receiver by hand that has let its sender in, and has not answered.
struct Host {
    receiver: HandReceiver,
    knock: UnixStream,
    incoming: Incoming,
}

impl Host {
    fn of(links: &mut Links, back: TcpStream) -> Self {
        let receiver = HandReceiver::offer(back);
        Self {
            knock: knock(links, &receiver),
            receiver,
            incoming: Incoming::new(&Bell::descriptor().unwrap()).unwrap(),
        }
    }

    /// Answers, says that it wants no more if it does, and goes. Returns what is left of it.
    fn answer(self, closes: bool, go: Go) -> impl Sized + use<> {
        /// The receiver has what it wants.
        const UNWANTED: u32 = 35;
        let token = self.receiver.token;
        RIGHT.send(&self.knock, RECEIVER, token, self.incoming.descriptors());
        let theirs = passing::Receiving::<3>::new().poll(&self.knock).unwrap();
        let theirs = theirs.unwrap().descriptors;
        let mut consumer = self.incoming.meet(theirs, usize::MAX).unwrap();
        if closes {
            consumer.close(UNWANTED, &[]);
        }
        (consumer, go(self.receiver.stream), self.knock)
    }
}

/// It has said in its memory that it wants no more: that is no failure, whenever it is seen. Its
/// answer may come after the thread has looked for it, and before it looks at the connection.
#[test]
fn a_receiver_that_has_closed_as_soon_as_it_has_answered_is_not_lost() {
    let moments = [(false, true), (true, true), (true, false)];
    for (driver, (how, go)) in ways() {
        for (is_meanwhile, closes) in moments {
            let (handle, mut links, meanwhile) = interrupted(driver);
            let (back, out) = pair();
            let parts = parts(Bell::thread());
            let mut sender = send_over::<RecordBatch>(&handle, out.into(), parts).unwrap();
            let host = Host::of(&mut links, back);
            let left = Rc::new(Cell::new(None));
            let kept = Rc::clone(&left);
            let answer = move || kept.set(Some(host.answer(closes, go)));
            if is_meanwhile {
                meanwhile.set(Some(Box::new(answer)));
            } else {
                answer();
            }
            until(LONG, how, || {
                links.turn();
                sender.poll_transport();
                sender.is_closed()
            });
            let reason = sender.try_push(data(0..10)).unwrap_err().reason;
            let is_right = match closes {
                true => matches!(reason, RejectReason::Closed),
                false => matches!(reason, RejectReason::Failed(_)),
            };
            assert!(is_right, "{how}, {driver:?}, {is_meanwhile}: {reason:?}");
            assert_eq!(sender.transport(), Transport::Shared, "{how}");
            assert!(left.take().is_some(), "it has answered");
        }
    }
}
