//! How the two ends of a connection find out that they are on one host, and pass each other what
//! a link is made of.
//!
//! A receiver that may share memory listens at an abstract Unix socket before it makes its offer.
//! The socket's name is half of the offer's token; the other half is shown in the hello, since
//! names of such sockets can be listed by anybody. A sender that reaches it is on the same host
//! (in the same network namespace), sends its descriptors, and only then answers the offer: so
//! they are there when the receiver has the answer, and if they are not there never come.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ringway_netio::frame::Identity;
use ringway_shm::Bell;
use ringway_shm::link::{Consumer, DESCRIPTORS, Incoming, LinkConfig, Outgoing, Producer};
use ringway_shm::passing::{self, PassError, Peer, Receiving};
use ringway_shm::segment::PagesInUse;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};

use super::{DISABLE_SHARED_VARIABLE, SharedOptions, Sharing, is_disabled};

/// Begins a hello; the second number is its version.
const MAGIC: [u8; 4] = *b"RWSM";
const VERSION: u8 = 1;
const SENDER: u8 = 0;
const RECEIVER: u8 = 1;
const HELLO_BYTES: usize = 64;

/// Connections that may wait at a door. Names of such sockets can be listed, so others may be in
/// front of the sender.
const BACKLOG: i32 = 128;

/// What a sender knows of it that is not let in.
const REFUSED: &str = "the receiver has refused to share memory: it says why";

/// What either end says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hello {
    role: u8,
    token: u128,
    identity: Option<Identity>,
    /// The largest region that it puts together (receiver).
    region_bytes_max: u32,
    /// When the clock began by which it stamps elements, in nanoseconds of the host's clock.
    clock_began_nanos: u64,
}

/// The receiver's end, until somebody has come or nobody comes any more.
pub(in crate::edge) struct Door {
    /// Or why there is none.
    listener: Result<OwnedFd, String>,
    token: u128,
    options: SharedOptions,
    patience: Duration,
}

/// The sender's end, while the receiver has not answered.
pub(in crate::edge) struct Knock {
    stream: OwnedFd,
    outgoing: Outgoing,
    answer: Receiving<DESCRIPTORS>,
    token: u128,
    identity: Option<Identity>,
}

/// What became of a knock.
pub(in crate::edge) enum Knocked {
    /// The receiver has not answered.
    Waiting(Box<Knock>),
    /// Both have what they need.
    Met(Host),
    /// The receiver does not want to, for a reason that it tells its own users.
    Refused(String),
}

/// Who has answered a knock.
pub(in crate::edge) struct Host {
    pub(in crate::edge) producer: Box<Producer>,
    /// Stays open as long as the edge.
    pub(in crate::edge) stream: OwnedFd,
    /// The largest region that it puts together.
    pub(in crate::edge) region_bytes_max: u32,
}

/// Who has come to a door.
pub(in crate::edge) struct Visitor {
    pub(in crate::edge) consumer: Consumer,
    /// Stays open as long as the edge.
    pub(in crate::edge) stream: OwnedFd,
    /// Added to the stamps of the sender.
    pub(in crate::edge) shift_nanos: i64,
    pub(in crate::edge) copies: bool,
}

impl Door {
    /// Listens for whoever gets an offer with this token, and answers it within `patience`.
    pub(in crate::edge) fn open(token: u128, options: SharedOptions, patience: Duration) -> Self {
        let listener = match is_disabled() {
            true => Err(format!("switched off by {DISABLE_SHARED_VARIABLE}")),
            false => {
                let opened = listen_at(token);
                opened.map_err(|error| format!("no Unix socket to meet at: {error}"))
            }
        };
        Self {
            listener,
            token,
            options,
            patience,
        }
    }

    /// The door of an edge that may go over shared memory so; none if it may not.
    pub(in crate::edge) fn sharing(mut self, sharing: Sharing) -> Option<Self> {
        self.options.sharing = sharing;
        (sharing != Sharing::Off).then_some(self)
    }

    /// Whether the edge is to fail if nobody comes, and what else holds.
    pub(in crate::edge) fn options(&self) -> &SharedOptions {
        &self.options
    }

    /// How long the sender may take to answer the offer.
    pub(in crate::edge) fn patience(&self) -> Duration {
        self.patience
    }

    /// Lets the sender in that has answered the offer as `identity`, and tells it how large the
    /// regions may be that are to be put together. None if it has not come
    /// here: then it is not on this host, or wants a socket.
    ///
    /// # Errors
    /// It is here and can't be let in; why.
    pub(in crate::edge) fn let_in(
        &self,
        identity: Option<Identity>,
        region_bytes_max: u32,
        bell: &Bell,
        clock_began_nanos: u64,
    ) -> Result<Option<Visitor>, String> {
        let answer = Hello {
            role: RECEIVER,
            token: self.token,
            identity,
            region_bytes_max,
            clock_began_nanos,
        };
        let listener = self.listener.as_ref().map_err(String::clone)?;
        let mut refused = None;
        for _ in 0..=2 * BACKLOG {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let stream = match accept_with(listener, flags) {
                Ok(stream) => stream,
                Err(Errno::INTR) => continue,
                Err(_) => break,
            };
            match self.welcome(stream, &answer, bell) {
                Ok(visitor) => return Ok(Some(visitor)),
                // Perhaps it was not the sender.
                Err(why) => refused = Some(why),
            }
        }
        refused.map_or(Ok(None), Err)
    }

    fn welcome(&self, stream: OwnedFd, answer: &Hello, bell: &Bell) -> Result<Visitor, String> {
        check_user(&stream, self.options.copies)?;
        let received = Receiving::<DESCRIPTORS>::new().poll(&stream);
        let received = received.map_err(|error| error.to_string())?;
        let received = received.ok_or("the sender has come without its hello")?;
        let hello = Hello::parse(&received.hello, SENDER)?;
        hello.check(answer.token, answer.identity)?;
        let incoming = Incoming::new(bell).map_err(|error| error.to_string())?;
        let own = incoming.descriptors().map(|own| own.try_clone_to_owned());
        // What the sender has passed is looked at before the answer: without one it still has its
        // socket.
        let consumer = incoming.meet(received.descriptors, self.options.segment_bytes_max);
        let consumer = consumer.map_err(|error| error.to_string())?;
        let own = own.into_iter().collect::<io::Result<Vec<OwnedFd>>>();
        let own = own.map_err(|error| error.to_string())?;
        let own: Vec<_> = own.iter().map(AsFd::as_fd).collect();
        let sent = passing::send(&stream, &answer.bytes(), &own);
        sent.map_err(|error| error.to_string())?;
        Ok(Visitor {
            consumer,
            stream,
            shift_nanos: hello
                .clock_began_nanos
                .wrapping_sub(answer.clock_began_nanos) as i64,
            copies: self.options.copies,
        })
    }
}

impl Knock {
    /// Looks for the receiver that has made an offer with this token, and passes it what a link
    /// is made of.
    ///
    /// # Errors
    /// Why that can't be.
    pub(in crate::edge) fn at(
        token: u128,
        identity: Option<Identity>,
        options: &SharedOptions,
        link: &LinkConfig,
        bell: &Bell,
        clock_began_nanos: u64,
    ) -> Result<Self, String> {
        let stream = reach(token).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::CONNREFUSED) => {
                "the receiver is on another host, or does not share memory".to_owned()
            }
            _ => format!("the receiver cannot be met at a Unix socket: {error}"),
        })?;
        check_user(&stream, options.copies)?;
        let outgoing = Outgoing::new(link, bell).map_err(|error| error.to_string())?;
        if let PagesInUse::NormalInstead(error) = outgoing.pages() {
            tracing::warn!(%error, "no huge pages for a shared-memory edge: it uses normal ones");
        }
        let hello = Hello {
            role: SENDER,
            token,
            identity,
            region_bytes_max: 0,
            clock_began_nanos,
        };
        let sent = passing::send(&stream, &hello.bytes(), &outgoing.descriptors());
        sent.map_err(|error| match error {
            PassError::Closed => REFUSED.to_owned(),
            other => other.to_string(),
        })?;
        Ok(Self {
            stream,
            outgoing,
            answer: Receiving::new(),
            token,
            identity,
        })
    }

    /// Looks whether the receiver has answered.
    ///
    /// # Errors
    /// It has, and the link can't be: the receiver believes that it is.
    pub(in crate::edge) fn poll(mut self: Box<Self>) -> Result<Knocked, String> {
        let received = match self.answer.poll(&self.stream) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(Knocked::Waiting(self)),
            Err(PassError::Closed | PassError::Io(_)) => {
                return Ok(Knocked::Refused(REFUSED.to_owned()));
            }
            Err(error) => return Err(error.to_string()),
        };
        let hello = Hello::parse(&received.hello, RECEIVER)?;
        hello.check(self.token, self.identity)?;
        let met = self.outgoing.meet(received.descriptors);
        let producer = met.map_err(|error| error.to_string())?;
        Ok(Knocked::Met(Host {
            producer: Box::new(producer),
            stream: self.stream,
            region_bytes_max: hello.region_bytes_max,
        }))
    }
}

impl Hello {
    fn bytes(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = self.role;
        bytes[6] = u8::from(self.identity.is_some());
        bytes[8..24].copy_from_slice(&self.token.to_le_bytes());
        if let Some(identity) = &self.identity {
            bytes[24..40].copy_from_slice(&identity.job.to_le_bytes());
            bytes[40..48].copy_from_slice(&identity.edge.to_le_bytes());
            bytes[48..52].copy_from_slice(&identity.attempt.to_le_bytes());
        }
        bytes[52..56].copy_from_slice(&self.region_bytes_max.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.clock_began_nanos.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8], role: u8) -> Result<Self, String> {
        let bytes: &[u8; HELLO_BYTES] =
            bytes.try_into().map_err(|_| "a hello of another length")?;
        let field = |at: usize, length: usize| {
            let mut field = [0; 16];
            field[..length].copy_from_slice(&bytes[at..at + length]);
            u128::from_le_bytes(field)
        };
        if bytes[..4] != MAGIC || bytes[4] != VERSION || bytes[5] != role {
            return Err(
                "a hello of another kind or version: use the same version of Ringway \
                        on both sides"
                    .to_owned(),
            );
        }
        let identity = Identity {
            job: field(24, 16),
            edge: field(40, 8) as u64,
            attempt: field(48, 4) as u32,
        };
        Ok(Self {
            role,
            token: field(8, 16),
            identity: (bytes[6] == 1).then_some(identity),
            region_bytes_max: field(52, 4) as u32,
            clock_began_nanos: field(56, 8) as u64,
        })
    }

    fn check(&self, token: u128, identity: Option<Identity>) -> Result<(), String> {
        if self.token != token {
            return Err("a hello with another token: it is another edge".to_owned());
        }
        match self.identity == identity {
            true => Ok(()),
            false => Err("a hello of another edge, job or attempt".to_owned()),
        }
    }
}

/// Only the half of a token that is not shown is a secret.
fn name(token: u128) -> rustix::io::Result<SocketAddrUnix> {
    let name = format!("ringway-edge-{:016x}", (token >> 64) as u64);
    SocketAddrUnix::new_abstract_name(name.as_bytes())
}

fn unix_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn listen_at(token: u128) -> rustix::io::Result<OwnedFd> {
    let listener = unix_socket()?;
    bind(&listener, &name(token)?)?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}

fn reach(token: u128) -> io::Result<OwnedFd> {
    let stream = unix_socket()?;
    connect(&stream, &name(token)?)?;
    Ok(stream)
}

/// A peer of another user could change what is computed with, and may be let in only where it
/// can't.
fn check_user(stream: impl AsFd, copies: bool) -> Result<(), String> {
    let peer = passing::peer(stream).map_err(|error| error.to_string())?;
    admit(&peer, peer.is_same_user(), copies)
}

fn admit(peer: &Peer, is_same_user: bool, copies: bool) -> Result<(), String> {
    match is_same_user || copies {
        true => Ok(()),
        false => Err(format!(
            "the other end is of user {}, and memory is shared within one user, or with ends that \
             both copy (`copies`)",
            peer.uid
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        job: 1 << 100,
        edge: 7,
        attempt: 3,
    };

    #[test]
    fn a_hello_comes_back_and_another_one_is_told_apart() {
        for identity in [None, Some(IDENTITY)] {
            let hello = Hello {
                role: SENDER,
                token: u128::MAX - 5,
                identity,
                region_bytes_max: 77,
                clock_began_nanos: 9,
            };
            let bytes = hello.bytes();
            assert_eq!(Hello::parse(&bytes, SENDER), Ok(hello));
            assert!(Hello::parse(&bytes, RECEIVER).is_err());
            assert!(Hello::parse(&bytes[1..], SENDER).is_err());
            assert_eq!(hello.check(u128::MAX - 5, identity), Ok(()));
            assert!(hello.check(u128::MAX - 6, identity).is_err());
            let attempt = IDENTITY.attempt + 1;
            let other = Some(Identity {
                attempt,
                ..IDENTITY
            });
            assert!(hello.check(u128::MAX - 5, other).is_err());
        }
    }

    #[test]
    fn a_peer_of_another_user_is_let_in_by_who_copies_only_and_is_named() {
        let peer = Peer {
            pid: 1,
            uid: 65_534,
            gid: 65_534,
        };
        assert_eq!(admit(&peer, true, false), Ok(()));
        assert_eq!(admit(&peer, false, true), Ok(()));
        let why = admit(&peer, false, false).unwrap_err();
        assert!(why.contains("user 65534"), "{why}");
    }

    #[test]
    fn a_door_is_found_by_its_token_alone_and_nobody_finds_it_when_it_is_gone() {
        let options = SharedOptions::default();
        let bell = Bell::descriptor().unwrap();
        let token = 0x0123_4567_89ab_cdef_1111_2222_3333_4444;
        let knock = |token| Knock::at(token, None, &options, &LinkConfig::default(), &bell, 0);
        assert!(knock(token).is_err());
        let door = Door::open(token, options, Duration::from_secs(10));
        assert!(door.let_in(None, 0, &bell, 0).unwrap().is_none());
        assert!(knock(token ^ (1 << 64)).is_err());
        // Whoever has read the name does not know the rest.
        assert!(knock(token ^ 1).is_ok());
        assert!(door.let_in(None, 0, &bell, 0).is_err());
        // Strangers that say nothing keep nobody out.
        let strangers: Vec<_> = (0..20).map(|_| reach(token).unwrap()).collect();
        let knock_behind = knock(token).unwrap();
        assert!(door.let_in(None, 0, &bell, 0).unwrap().is_some());
        assert!(matches!(
            Box::new(knock_behind).poll(),
            Ok(Knocked::Met(..))
        ));
        drop(strangers);
        drop(door);
        assert!(knock(token).is_err());
    }
}
