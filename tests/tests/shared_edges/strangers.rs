//! Peers that are not what they seem: each is told apart by name, ends no edge but its own, and
//! leaves nothing behind.
//!
//! A peer by hand speaks the session of the wire over its connection, and over the Unix socket
//! whatever the test wants: the bytes stand in docs/WIRE.md.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ringway::edge::remote::RemoteOptions;
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Ending, Receiver, RejectReason, Sender, Transport};
use ringway_netio::driver::DriverChoice;
use ringway_netio::frame::{Ending as WireEnding, Identity};
use ringway_netio::session::{
    Mode, Negotiation, ReceiverOptions, ReceiverSession, SenderOptions, SenderSession,
};
use ringway_shm::Bell;
use ringway_shm::link::{Incoming, LinkConfig, Outgoing};
use ringway_shm::passing;
use ringway_tests::conformance::subjects::RemoteEdge;
use ringway_tests::sockets::pair;
use ringway_tests::within::{LONG, until};

use crate::rig::{all, are_all, data, held};

const IDENTITY: Identity = Identity {
    job: 7 << 70,
    edge: 3,
    attempt: 2,
};

const SENDER: u8 = 0;
const RECEIVER: u8 = 1;

/// Bytes of a hello, and where its fields are.
const HELLO_BYTES: usize = 64;
const VERSION_AT: usize = 4;
const ROLE_AT: usize = 5;
const TOKEN_AT: usize = 8;
const JOB_AT: usize = 24;
const EDGE_AT: usize = 40;
const ATTEMPT_AT: usize = 48;

fn hello(role: u8, token: u128) -> Vec<u8> {
    let mut hello = b"RWSM\x01\x00\x01\x00".to_vec();
    hello[ROLE_AT] = role;
    hello.extend(token.to_le_bytes());
    hello.extend(IDENTITY.job.to_le_bytes());
    hello.extend(IDENTITY.edge.to_le_bytes());
    hello.extend(IDENTITY.attempt.to_le_bytes());
    hello.resize(HELLO_BYTES, 0);
    hello
}

/// What is wrong with a hello, or with what comes with it, and what is said of that.
struct Wrong {
    what: &'static str,
    hello: fn(&mut Vec<u8>),
    /// How many descriptors come, and whether they are those of a link.
    descriptors: usize,
    of_a_link: bool,
    said: &'static str,
}

const RIGHT: Wrong = Wrong {
    what: "nothing",
    hello: |_| {},
    descriptors: 3,
    of_a_link: true,
    said: "",
};

const WRONG: &[Wrong] = &[
    Wrong {
        what: "the attempt",
        hello: |hello| hello[ATTEMPT_AT] ^= 1,
        said: "another edge, job or attempt",
        ..RIGHT
    },
    Wrong {
        what: "the edge",
        hello: |hello| hello[EDGE_AT] ^= 1,
        said: "another edge, job or attempt",
        ..RIGHT
    },
    Wrong {
        what: "the job",
        hello: |hello| hello[JOB_AT + 15] ^= 1,
        said: "another edge, job or attempt",
        ..RIGHT
    },
    Wrong {
        what: "no identity",
        hello: |hello| hello[6] = 0,
        said: "another edge, job or attempt",
        ..RIGHT
    },
    Wrong {
        what: "the half of the token that is not shown",
        hello: |hello| hello[TOKEN_AT] ^= 1,
        said: "another token",
        ..RIGHT
    },
    Wrong {
        what: "the version",
        hello: |hello| hello[VERSION_AT] += 1,
        said: "the same version of Ringway",
        ..RIGHT
    },
    Wrong {
        what: "the role",
        hello: |hello| hello[ROLE_AT] ^= 1,
        said: "another kind or version",
        ..RIGHT
    },
    Wrong {
        what: "the length",
        hello: |hello| hello.truncate(HELLO_BYTES - 1),
        said: "another length",
        ..RIGHT
    },
    Wrong {
        what: "too few descriptors",
        descriptors: 2,
        said: "2 descriptors",
        ..RIGHT
    },
    Wrong {
        what: "too many descriptors",
        descriptors: 5,
        said: "5 descriptors",
        ..RIGHT
    },
    Wrong {
        what: "descriptors of something else",
        of_a_link: false,
        said: "",
        ..RIGHT
    },
];

impl Wrong {
    /// Sends it over the socket, with these descriptors.
    fn send(&self, stream: &UnixStream, role: u8, token: u128, right: [BorrowedFd<'_>; 3]) {
        let mut hello = hello(role, token);
        (self.hello)(&mut hello);
        let mut own: Vec<BorrowedFd<'_>> = match self.of_a_link {
            true => right.to_vec(),
            false => vec![stream.as_fd(); 3],
        };
        own.resize(self.descriptors, stream.as_fd());
        passing::send(stream, &hello, &own).unwrap();
    }
}

fn address(token: u128) -> SocketAddr {
    let name = format!("ringway-edge-{:016x}", (token >> 64) as u64);
    SocketAddr::from_abstract_name(name).unwrap()
}

/// How long who waits for a silent peer does so; others wait long enough for a busy machine.
const PATIENCE: Duration = Duration::from_millis(300);

fn edge(sharing: Sharing, patience: Duration) -> RemoteEdge {
    let mut remote = RemoteOptions::default().sharing(sharing).identity(IDENTITY);
    remote.stalled_after = patience;
    RemoteEdge::new("strangers", DriverChoice::Epoll, remote)
}

/// A sender by hand.
struct HandSender {
    stream: TcpStream,
    session: SenderSession<Vec<u8>>,
    since: Instant,
}

impl HandSender {
    /// Reads the receiver's offer, and answers nothing.
    fn greet(stream: TcpStream) -> Self {
        let options = SenderOptions {
            identity: Some(IDENTITY),
            ..SenderOptions::default()
        };
        let mut sender = Self {
            stream,
            session: SenderSession::new(options, Duration::ZERO),
            since: Instant::now(),
        };
        while sender.session.offer().is_none() {
            let mut bytes = [0; 4096];
            let read = sender.stream.read(&mut bytes).unwrap();
            assert!(read > 0, "the receiver makes an offer");
            sender
                .session
                .handle_input(sender.since.elapsed(), &bytes[..read]);
        }
        sender
    }

    fn token(&self) -> u128 {
        self.session.offer().unwrap().token
    }

    /// Sends what the session has to say.
    fn transmit(&mut self) {
        let mut out = Vec::new();
        while let Some(sent) = self.session.poll_transmit(&mut out) {
            assert!(sent.body.is_none(), "no batch was pushed");
        }
        self.stream.write_all(&out).unwrap();
    }
}

/// A receiver by hand, which waits for its sender at a Unix socket.
struct HandReceiver {
    stream: TcpStream,
    door: UnixListener,
    token: u128,
}

impl HandReceiver {
    fn offer(mut stream: TcpStream) -> Self {
        let token = u128::from(std::process::id()) << 64 | 0x5555;
        // Edges of the tests beside this one must not meet here.
        let token = token ^ (stream.local_addr().unwrap().port() as u128) << 96;
        let options = ReceiverOptions {
            negotiation: Negotiation::Require,
            identity: Some(IDENTITY),
            token,
            ..ReceiverOptions::default()
        };
        let door = UnixListener::bind_addr(&address(token)).unwrap();
        let mut session = ReceiverSession::<Vec<u8>>::new(options, Duration::ZERO);
        assert_eq!(session.mode(), Mode::Undecided);
        let mut out = Vec::new();
        session.poll_transmit(&mut out);
        stream.write_all(&out).unwrap();
        Self {
            stream,
            door,
            token,
        }
    }

    fn accept(&self) -> UnixStream {
        self.door.accept().unwrap().0
    }
}

fn open_receiver(sharing: Sharing, patience: Duration) -> (HandSender, Receiver<RecordBatch>) {
    let (out, back) = pair();
    let receiver = edge(sharing, patience).receiver(back, &EdgeOptions::named("strangers"));
    (HandSender::greet(out), receiver)
}

fn open_sender(sharing: Sharing, patience: Duration) -> (Sender<RecordBatch>, HandReceiver) {
    let (out, back) = pair();
    let sender = edge(sharing, patience).sender(out, &EdgeOptions::named("strangers"));
    (sender, HandReceiver::offer(back))
}

fn failure(ending: &Ending) -> String {
    match ending {
        Ending::Failed(failure) => failure.to_string(),
        other => panic!("failed, not {other}"),
    }
}

#[track_caller]
fn why_closed(sender: &mut Sender<RecordBatch>) -> String {
    until(LONG, "the sender fails", || sender.is_closed());
    let rejected = sender.try_push(data(0..1)).unwrap_err();
    assert!(matches!(rejected.reason, RejectReason::Failed(_)));
    rejected.reason.to_string()
}

#[test]
fn a_sender_that_knocks_with_a_wrong_hello_shares_no_memory_and_is_named() {
    let bell = Bell::descriptor().unwrap();
    for wrong in WRONG {
        for sharing in [Sharing::Require, Sharing::Prefer] {
            let (mut sender, mut receiver) = open_receiver(sharing, LONG);
            let outgoing = Outgoing::new(&LinkConfig::default(), &bell).unwrap();
            let knock = UnixStream::connect_addr(&address(sender.token())).unwrap();
            wrong.send(&knock, SENDER, sender.token(), outgoing.descriptors());
            sender.session.close(WireEnding::End);
            sender.transmit();
            let (batches, ending) = all(&mut receiver);
            assert!(batches.is_empty());
            assert_eq!(receiver.transport(), Transport::Socket, "{}", wrong.what);
            match sharing {
                Sharing::Require => {
                    let failure = failure(&ending);
                    assert!(failure.contains("no shared memory"), "{failure}");
                    assert!(failure.contains(wrong.said), "{}: {failure}", wrong.what);
                    assert!(failure.contains("strangers"), "{failure}");
                }
                _ => {
                    assert_eq!(ending, Ending::End, "{}", wrong.what);
                    let why = receiver.why_not_shared().unwrap();
                    assert!(why.contains(wrong.said), "{}: {why}", wrong.what);
                }
            }
        }
    }
}

#[test]
fn a_receiver_that_answers_with_a_wrong_hello_is_named_and_nothing_is_sent() {
    let bell = Bell::descriptor().unwrap();
    for wrong in WRONG {
        let (mut sender, receiver) = open_sender(Sharing::Prefer, LONG);
        sender.push(data(0..10)).unwrap();
        let knock = receiver.accept();
        let incoming = Incoming::new(&bell).unwrap();
        wrong.send(&knock, RECEIVER, receiver.token, incoming.descriptors());
        // Not over the socket either: the receiver may believe that it has the edge.
        let why = why_closed(&mut sender);
        assert!(why.contains(wrong.said), "{}: {why}", wrong.what);
        assert!(why.contains("strangers"), "{why}");
        drop(receiver);
    }
}

/// It may have taken the memory for the edge, so the socket is no way out.
#[test]
fn a_receiver_that_goes_silent_after_the_knock_is_waited_for_so_long_and_named() {
    const ROUNDS: usize = 20;
    for sharing in [Sharing::Prefer, Sharing::Require] {
        let before = held();
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|_| open_sender(sharing, PATIENCE))
            .collect();
        let rounds: Vec<_> = rounds
            .into_iter()
            .map(|(mut sender, receiver)| {
                // On a busy machine it may have been given up by now.
                let _ = sender.push(data(0..10));
                let knock = receiver.accept();
                (sender, receiver, knock)
            })
            .collect();
        for (mut sender, mut receiver, mut knock) in rounds {
            let why = why_closed(&mut sender);
            assert!(
                why.contains("has not answered at its Unix socket for 300ms"),
                "{why}"
            );
            assert_eq!(sender.transport(), Transport::Socket);
            drop(sender);
            // Both connections end, and nothing of the edge has gone over either.
            let passed = passing::Receiving::<3>::new().poll(&knock).unwrap();
            assert_eq!(passed.unwrap().hello.len(), HELLO_BYTES);
            assert_eq!(knock.read(&mut [0; 1]).unwrap(), 0);
            let mut said = Vec::new();
            receiver.stream.read_to_end(&mut said).unwrap();
            assert!(said.len() < 512, "{} bytes", said.len());
        }
        // Others may open edges meanwhile, but not so many for long.
        until(LONG, "nothing is left", || {
            let now = held();
            now.0 < before.0 + ROUNDS && now.1 < before.1 + ROUNDS
        });
    }
}

#[test]
fn a_receiver_that_refuses_the_knock_gets_the_edge_over_its_socket() {
    let (mut sender, receiver) = open_sender(Sharing::Prefer, LONG);
    drop(receiver.accept());
    until(LONG, "it is decided", || sender.poll_transport().is_some());
    assert_eq!(sender.transport(), Transport::Socket);
    let why = sender.why_not_shared().unwrap();
    assert!(why.contains("has refused to share memory"), "{why}");

    let (mut sender, receiver) = open_sender(Sharing::Require, LONG);
    drop(receiver.accept());
    let why = why_closed(&mut sender);
    assert!(why.contains("no shared memory"), "{why}");
}

#[test]
fn a_sender_that_never_answers_the_offer_is_waited_for_so_long_and_named() {
    let (sender, mut receiver) = open_receiver(Sharing::Require, PATIENCE);
    let (_, ending) = all(&mut receiver);
    let failure = failure(&ending);
    let said = "the sender has not answered the offer for 300ms";
    assert!(failure.contains(said), "{failure}");
    // Nobody listens for it any more.
    until(LONG, "the door is shut", || {
        UnixStream::connect_addr(&address(sender.token())).is_err()
    });
}

#[test]
fn strangers_at_the_door_keep_the_sender_out_of_nothing() {
    let (out, back) = pair();
    let edge = edge(Sharing::Require, LONG);
    let mut receiver = edge.receiver::<RecordBatch>(back, &EdgeOptions::named("strangers"));
    // The name of the door is in the offer, and in /proc/net/unix for anybody.
    let mut peeked = [0; 512];
    until(LONG, "the offer is there", || {
        out.peek(&mut peeked).unwrap() > 60
    });
    let doors = std::fs::read_to_string("/proc/net/unix").unwrap();
    let doors = doors.lines().filter_map(|line| line.split_once('@'));
    let doors: Vec<_> = doors
        .filter(|(_, name)| name.starts_with("ringway-edge-"))
        .filter_map(|(_, name)| SocketAddr::from_abstract_name(name).ok())
        .filter_map(|door| UnixStream::connect_addr(&door).ok())
        .collect();
    assert!(!doors.is_empty());
    for (number, stranger) in doors.iter().enumerate() {
        let own: Vec<OwnedFd> = vec![stranger.as_fd().try_clone_to_owned().unwrap()];
        let own: Vec<_> = own.iter().map(AsFd::as_fd).collect();
        match number % 2 {
            0 => drop(passing::send(stranger, b"hello", &own)),
            _ => drop((&*stranger).write(&[0xff; 64])),
        }
    }
    let mut sender: Sender<RecordBatch> = edge.sender(out, &EdgeOptions::named("strangers"));
    sender.push(data(0..10)).unwrap();
    until(LONG, "they have met", || {
        sender.poll_transport() == Some(Transport::Shared)
    });
    sender.finish().unwrap();
    let (batches, ending) = all(&mut receiver);
    assert_eq!(ending, Ending::End);
    are_all(&batches, 10);
}
