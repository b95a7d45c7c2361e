//! Halves of an edge by hand.
//!
//! Such a peer speaks the session of the wire over its connection, and over the Unix socket whatever
//! the test wants: the bytes stand in docs/WIRE.md.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ringway::edge::remote::RemoteOptions;
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Receiver, Sender};
use ringway_netio::driver::DriverChoice;
use ringway_netio::frame::Identity;
use ringway_netio::session::{
    Mode, Negotiation, ReceiverOptions, ReceiverSession, SenderOptions, SenderSession,
};
use ringway_shm::passing;
use ringway_tests::conformance::subjects::RemoteEdge;
use ringway_tests::sockets::pair;

pub(crate) const IDENTITY: Identity = Identity {
    job: 7 << 70,
    edge: 3,
    attempt: 2,
};

pub(crate) const SENDER: u8 = 0;
pub(crate) const RECEIVER: u8 = 1;

/// Bytes of a hello, and where its fields are.
pub(crate) const HELLO_BYTES: usize = 64;
pub(crate) const VERSION_AT: usize = 4;
pub(crate) const ROLE_AT: usize = 5;
pub(crate) const TOKEN_AT: usize = 8;
pub(crate) const JOB_AT: usize = 24;
pub(crate) const EDGE_AT: usize = 40;
pub(crate) const ATTEMPT_AT: usize = 48;

pub(crate) fn hello(role: u8, token: u128) -> Vec<u8> {
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
pub(crate) struct Wrong {
    pub(crate) what: &'static str,
    pub(crate) hello: fn(&mut Vec<u8>),
    /// How many descriptors come, and whether they are those of a link.
    pub(crate) descriptors: usize,
    pub(crate) of_a_link: bool,
    pub(crate) said: &'static str,
}

pub(crate) const RIGHT: Wrong = Wrong {
    what: "nothing",
    hello: |_| {},
    descriptors: 3,
    of_a_link: true,
    said: "",
};

pub(crate) const WRONG: &[Wrong] = &[
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
    pub(crate) fn send(
        &self,
        stream: &UnixStream,
        role: u8,
        token: u128,
        right: [BorrowedFd<'_>; 3],
    ) {
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

pub(crate) fn address(token: u128) -> SocketAddr {
    let name = format!("ringway-edge-{:016x}", (token >> 64) as u64);
    SocketAddr::from_abstract_name(name).unwrap()
}

/// How long who waits for a silent peer does so.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);

/// How long others wait: enough for a busy machine, and no longer, since what waits is open.
pub(crate) const UNHURRIED: Duration = Duration::from_secs(15);

pub(crate) fn edge(sharing: Sharing, patience: Duration) -> RemoteEdge {
    edge_over(DriverChoice::Epoll, sharing, patience)
}

pub(crate) fn edge_over(driver: DriverChoice, sharing: Sharing, patience: Duration) -> RemoteEdge {
    let mut remote = RemoteOptions::default().sharing(sharing).identity(IDENTITY);
    remote.stalled_after = patience;
    RemoteEdge::new("strangers", driver, remote)
}

/// A sender by hand.
pub(crate) struct HandSender {
    pub(crate) stream: TcpStream,
    pub(crate) session: SenderSession<Vec<u8>>,
    since: Instant,
}

impl HandSender {
    /// Reads the receiver's offer, and answers nothing.
    pub(crate) fn greet(stream: TcpStream) -> Self {
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

    pub(crate) fn token(&self) -> u128 {
        self.session.offer().unwrap().token
    }

    /// Sends what the session has to say.
    pub(crate) fn transmit(&mut self) {
        let mut out = Vec::new();
        while let Some(sent) = self.session.poll_transmit(&mut out) {
            assert!(sent.body.is_none(), "no batch was pushed");
        }
        self.stream.write_all(&out).unwrap();
    }
}

/// A receiver by hand, which waits for its sender at a Unix socket.
pub(crate) struct HandReceiver {
    pub(crate) stream: TcpStream,
    pub(crate) door: UnixListener,
    pub(crate) token: u128,
}

impl HandReceiver {
    pub(crate) fn offer(mut stream: TcpStream) -> Self {
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

    pub(crate) fn accept(&self) -> UnixStream {
        self.door.accept().unwrap().0
    }
}

pub(crate) fn open_receiver(
    sharing: Sharing,
    patience: Duration,
) -> (HandSender, Receiver<RecordBatch>) {
    let (out, back) = pair();
    let receiver = edge(sharing, patience).receiver(back, &EdgeOptions::named("strangers"));
    (HandSender::greet(out), receiver)
}

pub(crate) fn open_sender(
    sharing: Sharing,
    patience: Duration,
) -> (Sender<RecordBatch>, HandReceiver) {
    let (out, back) = pair();
    let sender = edge(sharing, patience).sender(out, &EdgeOptions::named("strangers"));
    (sender, HandReceiver::offer(back))
}
