//! Listening sockets: what becomes of those who connect.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringway_netio::driver::Socket;
use ringway_netio::session::ReceiverSession;

use super::handle::{LinksGone, LinksHandle};
use super::inflow::Unread;
use super::links::Link;
use super::open::{Adopted, Seat};
use super::options::RemoteOptions;
use crate::batch::Payload;
use crate::edge::{EdgeOptions, Receiver};
use crate::wire::PayloadCodec;
use ringway_shm::Bell;

/// A listening socket's owner.
pub(super) trait Port {
    /// Somebody has connected. What is returned is driven by the thread that listens.
    fn accept(
        &mut self,
        socket: Socket,
        peer: Option<SocketAddr>,
        now: Duration,
    ) -> Option<(Socket, Box<dyn Link>)>;

    /// When it is to be looked at again at the latest.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Whether nobody is to connect any more.
    fn is_over(&mut self, now: Duration) -> bool;

    /// Nobody can connect any more, for this reason.
    fn fail(&mut self, why: &str);
}

/// Connections that wait for their turn where there are as many streams as are served at a
/// time. More are dropped at once.
const BACKLOG_MAX: usize = 128;

/// Why nobody can connect when nothing else was said.
pub(super) const THREAD_ENDED: &str = "the thread that drives its connections has ended";

/// Takes the streams of those who connect to one port, each a receiver of its own.
pub trait Incoming<B: Payload>: Send {
    /// Whether nobody more is served now: who connects waits.
    fn is_full(&mut self) -> bool {
        false
    }

    /// Somebody has connected. Nothing refuses the connection.
    fn expect(&mut self, peer: &str) -> Option<Expected<B>>;

    /// Takes the receiver, which was made as `expect` said.
    fn deliver(&mut self, receiver: Receiver<B>, peer: &str);

    /// Whether nobody is to connect any more.
    fn is_over(&mut self) -> bool;

    /// Nobody can connect any more, for this reason: the driver cannot listen, or its thread
    /// has ended. Also called when it is over already.
    fn fail(&mut self, why: &str);
}

/// How the receiver of a new stream is to be.
pub struct Expected<B> {
    /// Name and bounds of the edge.
    pub edge: EdgeOptions,
    /// How the payload goes over the wire.
    pub codec: Arc<dyn PayloadCodec<B>>,
    /// Wakes whoever will own the receiver.
    pub bell: Bell,
    /// Who drives the connection.
    pub links: LinksHandle,
}

struct StreamPort<B: Payload> {
    incoming: Box<dyn Incoming<B>>,
    remote: RemoteOptions,
    backlog: VecDeque<(Socket, String)>,
}

impl<B: Payload> StreamPort<B> {
    fn admit(&mut self, socket: Socket, peer: String, now: Duration) {
        let Some(expected) = self.incoming.expect(&peer) else {
            return;
        };
        let may_share = self.remote.may_share();
        let (links, edge) = (&expected.links, &expected.edge);
        let (seat, receiver) = Seat::new(links, edge, expected.bell, may_share);
        let options = self.remote.for_receiver(edge);
        let adopted = Adopted {
            socket,
            door: self.remote.door(options.token),
            session: ReceiverSession::new(options, now),
            unread: Unread::default(),
            peer: peer.clone(),
            overtaking: self.remote.overtaking,
        };
        match seat.take(&expected.links, adopted, expected.codec) {
            Ok(()) => self.incoming.deliver(receiver, &peer),
            Err(error) => tracing::warn!(%error, peer, "a connection is dropped"),
        }
    }
}

impl<B: Payload> Port for StreamPort<B> {
    fn accept(
        &mut self,
        socket: Socket,
        peer: Option<SocketAddr>,
        now: Duration,
    ) -> Option<(Socket, Box<dyn Link>)> {
        let peer = peer_name(peer);
        if !self.incoming.is_full() {
            self.admit(socket, peer, now);
        } else if self.backlog.len() < BACKLOG_MAX {
            self.backlog.push_back((socket, peer));
        } else {
            tracing::warn!(peer, "a connection is dropped: too many wait");
        }
        None
    }

    fn is_over(&mut self, now: Duration) -> bool {
        while !self.backlog.is_empty()
            && !self.incoming.is_full()
            && let Some((socket, peer)) = self.backlog.pop_front()
        {
            self.admit(socket, peer, now);
        }
        self.incoming.is_over()
    }

    fn fail(&mut self, why: &str) {
        self.incoming.fail(why);
    }
}

impl<B: Payload> Drop for StreamPort<B> {
    fn drop(&mut self) {
        self.incoming.fail(THREAD_ENDED);
    }
}

/// Accepts streams at a socket that was bound, on the thread of `links`, until `incoming` says
/// that it is over. `incoming` is told if the driver cannot listen.
///
/// # Errors
/// [`LinksGone`]: the thread of the links has ended.
pub fn listen_for_streams<B: Payload>(
    links: &LinksHandle,
    socket: Socket,
    remote: RemoteOptions,
    incoming: Box<dyn Incoming<B>>,
) -> Result<(), LinksGone> {
    let port = StreamPort {
        incoming,
        remote,
        backlog: VecDeque::new(),
    };
    links.submit(move |links| {
        links.listen(socket, Box::new(port));
    })
}

/// A peer as errors name it.
pub(super) fn peer_name(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "of unknown address".to_owned(), |peer| peer.to_string())
}
