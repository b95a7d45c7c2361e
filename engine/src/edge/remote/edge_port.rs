//! One listening socket for many edges: each connection says which edge it is.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringway_netio::driver::Socket;
use ringway_netio::frame::Identity;
use ringway_netio::session::ReceiverSession;
use ringway_shm::Bell;

use super::handle::{LinksGone, LinksHandle};
use super::handshake::Handshake;
use super::links::Link;
use super::open::{Adopted, Seat};
use super::options::RemoteOptions;
use super::port::{Port, THREAD_ENDED, peer_name};
use crate::batch::Payload;
use crate::edge::shared::Sharing;
use crate::edge::{EdgeOptions, FailureKind, Receiver};
use crate::wire::PayloadCodec;

/// Connections that may be showing who they are at a time. More are dropped at once.
const HANDSHAKES_MAX: usize = 256;

/// What a port for edges is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgePortOptions {
    /// The job, whose edges come here: the same number in all of its processes.
    pub job: u128,
    /// The attempt of the job.
    pub attempt: u32,
    /// Bytes that each edge may hold on this side, since a connection is told before it says
    /// which edge it is.
    pub bytes_max: usize,
    /// What else holds for all connections. The identity in it is not looked at.
    pub remote: RemoteOptions,
}

/// What has happened at a port for edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgePortStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Edges that have their connection.
    pub connected: u64,
    /// Connections that were refused, or were not heard of in time.
    pub refused: u64,
    /// Why the last one was, and who it was.
    pub last_refused: Option<String>,
}

/// A port at which many edges of one job arrive. It stays open until this is dropped; a wrong
/// or silent peer is refused or timed out, is counted, and keeps nobody else waiting.
pub struct EdgePort {
    state: Arc<Mutex<State>>,
    links: LinksHandle,
    /// Whether its edges may go over shared memory, if nothing else is said of one.
    sharing: Sharing,
}

/// An edge cannot be expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("edge {edge} is expected twice: the numbers of edges are those of the plan")]
pub struct ExpectedTwice {
    /// Its number.
    pub edge: u64,
}

/// Goes on with the connection of an edge.
pub(super) type Adopt = Box<dyn FnOnce(Result<Adopted, String>) + Send>;

#[derive(Default)]
pub(super) struct State {
    expected: HashMap<u64, Adopt>,
    known: HashSet<u64>,
    stats: EdgePortStats,
    is_closed: bool,
    /// Why nobody can connect any more, if that is so.
    failure: Option<String>,
}

/// What a port says about an edge.
pub(super) enum Answer {
    Take(Adopt),
    /// It may be expected later.
    Later,
    /// It has its connection, or the port is closed.
    Never(&'static str),
}

/// Listens for the edges of a job, on the thread of `links`.
///
/// # Errors
/// [`LinksGone`]: the thread of the links has ended.
pub fn listen_for_edges(
    links: &LinksHandle,
    socket: Socket,
    options: EdgePortOptions,
) -> Result<EdgePort, LinksGone> {
    let state = Arc::new(Mutex::new(State::default()));
    let sharing = options.remote.shared.sharing;
    let port = Listening {
        state: Arc::clone(&state),
        options,
        handshakes: Arc::new(()),
    };
    links.submit(move |links| links.listen(socket, Box::new(port)))?;
    Ok(EdgePort {
        state,
        links: links.clone(),
        sharing,
    })
}

impl EdgePort {
    /// Expects the sender of an edge. The receiver is there at once, and has its first element
    /// when the sender has come. `links` will drive the connection, and `bell` wakes the owner
    /// of the receiver. A sender that comes before it is expected waits for a while.
    ///
    /// # Errors
    /// [`ExpectedTwice`]: the number was used before.
    pub fn expect<B: Payload>(
        &self,
        edge: u64,
        options: &EdgeOptions,
        codec: Arc<dyn PayloadCodec<B>>,
        bell: Bell,
        links: &LinksHandle,
    ) -> Result<Receiver<B>, ExpectedTwice> {
        self.expect_sharing(edge, options, codec, bell, links, self.sharing)
    }

    /// As [`expect`](Self::expect), of an edge that may go over shared memory more or less than
    /// others of the port; not at all if those may not.
    ///
    /// # Errors
    /// As there.
    pub fn expect_sharing<B: Payload>(
        &self,
        edge: u64,
        options: &EdgeOptions,
        codec: Arc<dyn PayloadCodec<B>>,
        bell: Bell,
        links: &LinksHandle,
        sharing: Sharing,
    ) -> Result<Receiver<B>, ExpectedTwice> {
        let may_share = self.sharing != Sharing::Off && sharing != Sharing::Off;
        let (seat, receiver) = Seat::new(links, options, bell, may_share);
        let links = links.clone();
        let adopt = move |adopted: Result<Adopted, String>| match adopted {
            Ok(mut adopted) => {
                adopted.door = adopted.door.and_then(|door| door.sharing(sharing));
                if let Err(error) = seat.take(&links, adopted, codec) {
                    tracing::warn!(%error, edge, "a connection is dropped");
                }
            }
            Err(why) => seat.fail(FailureKind::ConnectionLost(why)),
        };
        let mut state = lock(&self.state);
        if !state.known.insert(edge) {
            return Err(ExpectedTwice { edge });
        }
        if let Some(why) = &state.failure {
            let why = why.clone();
            drop(state);
            adopt(Err(why));
            return Ok(receiver);
        }
        state.expected.insert(edge, Box::new(adopt));
        drop(state);
        self.links.bell().ring();
        Ok(receiver)
    }

    /// The expected edges that have no connection yet.
    pub fn missing(&self) -> Vec<u64> {
        let mut missing: Vec<u64> = lock(&self.state).expected.keys().copied().collect();
        missing.sort_unstable();
        missing
    }

    /// Why nobody can connect any more, if that is so: the edges that were expected and had not
    /// come have failed.
    pub fn failure(&self) -> Option<String> {
        lock(&self.state).failure.clone()
    }

    /// What has happened so far.
    pub fn stats(&self) -> EdgePortStats {
        lock(&self.state).stats.clone()
    }
}

impl Drop for EdgePort {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let given_up = std::mem::take(&mut state.expected);
        drop(state);
        for (_, adopt) in given_up {
            adopt(Err("nobody connected".to_owned()));
        }
        self.links.bell().ring();
    }
}

impl std::fmt::Debug for EdgePort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EdgePort")
            .field("stats", &self.stats())
            .field("missing", &self.missing())
            .finish_non_exhaustive()
    }
}

impl State {
    /// What becomes of a connection that says it is this edge.
    pub(super) fn answer(&mut self, edge: u64) -> Answer {
        if self.is_closed {
            return Answer::Never("no more edges are expected");
        }
        match self.expected.remove(&edge) {
            Some(adopt) => Answer::Take(adopt),
            None if self.known.contains(&edge) => Answer::Never("the edge has its sender"),
            None => Answer::Later,
        }
    }

    /// The connection was lost before it could be handed over: another may come.
    pub(super) fn put_back(&mut self, edge: u64, adopt: Adopt) {
        self.expected.insert(edge, adopt);
    }

    pub(super) fn count_connected(&mut self) {
        self.stats.connected += 1;
    }

    pub(super) fn count_refused(&mut self, peer: &str, why: &str) {
        tracing::warn!(peer, why, "a connection is refused");
        self.stats.refused += 1;
        self.stats.last_refused = Some(format!("{peer}: {why}"));
    }
}

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The port on the thread that listens.
struct Listening {
    state: Arc<Mutex<State>>,
    options: EdgePortOptions,
    /// Counts the handshakes that are going on, by its other owners.
    handshakes: Arc<()>,
}

impl Port for Listening {
    fn accept(
        &mut self,
        socket: Socket,
        peer: Option<SocketAddr>,
        now: Duration,
    ) -> Option<(Socket, Box<dyn Link>)> {
        let peer = peer_name(peer);
        let mut state = lock(&self.state);
        state.stats.accepted += 1;
        if Arc::strong_count(&self.handshakes) > HANDSHAKES_MAX {
            state.count_refused(&peer, "too many connections are showing who they are");
            return None;
        }
        drop(state);
        let identity = Identity {
            job: self.options.job,
            edge: Identity::ANY_EDGE,
            attempt: self.options.attempt,
        };
        let remote = self.options.remote.clone().identity(identity);
        let edge = EdgeOptions::named("").bytes(self.options.bytes_max);
        let options = remote.for_receiver(&edge);
        let door = remote.door(options.token);
        let handshake = Handshake::new(
            ReceiverSession::new(options, now),
            door,
            peer,
            Arc::clone(&self.state),
            Arc::clone(&self.handshakes),
            now + remote.stalled_after,
            remote.overtaking,
        );
        Some((socket, Box::new(handshake)))
    }

    fn is_over(&mut self, _now: Duration) -> bool {
        lock(&self.state).is_closed
    }

    fn fail(&mut self, why: &str) {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.is_closed, true) {
            return;
        }
        tracing::error!(why, "no edge can connect any more");
        state.failure = Some(why.to_owned());
        let given_up = std::mem::take(&mut state.expected);
        drop(state);
        for (_, adopt) in given_up {
            adopt(Err(why.to_owned()));
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.fail(THREAD_ENDED);
    }
}
