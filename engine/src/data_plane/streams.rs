//! One port at which many senders connect, each a stream of its own.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringway_netio::driver::Socket;
use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::Clock;
use crate::edge::remote::{Expected, Incoming, LinksHandle, listen_for_streams};
use crate::edge::{EdgeOptions, Receiver};
use crate::wire::PayloadCodec;

use super::{AcceptError, DataPlane, ListenError, ListenOptions, sockets};

/// Listens for streams. Dropping it gives the port up; streams that were accepted go on.
pub struct StreamListener<B: Payload> {
    state: Arc<Mutex<State<B>>>,
    bell: Bell,
    port: u16,
    links: LinksHandle,
}

/// A stream that somebody has connected for.
pub struct AcceptedStream<B: Payload> {
    /// Its receiver.
    pub receiver: Receiver<B>,
    /// The address of its sender.
    pub peer: String,
    /// It counts as served until this is dropped.
    pub permit: StreamPermit,
}

/// The place of a stream among those that are served at a time.
#[derive(Debug)]
pub struct StreamPermit {
    places: Arc<()>,
    links: LinksHandle,
}

struct State<B: Payload> {
    /// Each with its place.
    waiting: VecDeque<(Receiver<B>, String, Arc<()>)>,
    is_closed: bool,
    /// Why nobody can connect any more, if that is so.
    failure: Option<String>,
}

/// Binds, and takes every sender that connects.
pub(super) fn listen<B: Payload>(
    plane: &DataPlane,
    options: ListenOptions,
    bell: Bell,
    codec: Arc<dyn PayloadCodec<B>>,
    served_max: usize,
) -> Result<StreamListener<B>, ListenError> {
    let sharing = options.transport.sharing()?;
    let links = sockets::links_for(plane, options.links.as_ref()).map_err(ListenError::NoLinks)?;
    let bound = sockets::bind(plane, &options)?;
    let port = bound.address.port();
    let state = Arc::new(Mutex::new(State {
        waiting: VecDeque::new(),
        is_closed: false,
        failure: None,
    }));
    let places = Arc::new(());
    let incoming = Streams {
        state: Arc::clone(&state),
        edge: options.edge_at(port),
        codec,
        bell: bell.clone(),
        links: links.clone(),
        places,
        served_max,
    };
    let mut remote = options.remote.unwrap_or_else(|| plane.remote().clone());
    remote.shared.sharing = sharing;
    let socket = Socket::from(bound.listener);
    listen_for_streams(&links, socket, remote, Box::new(incoming))
        .map_err(|error| ListenError::NoLinks(error.to_string()))?;
    Ok(StreamListener {
        state,
        bell,
        port,
        links,
    })
}

impl<B: Payload> StreamListener<B> {
    /// The port; the one that was chosen where 0 was asked for.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes the next stream, if somebody has connected.
    pub fn try_accept(&self) -> Option<AcceptedStream<B>> {
        let (receiver, peer, places) = lock(&self.state).waiting.pop_front()?;
        Some(AcceptedStream {
            receiver,
            peer,
            permit: StreamPermit {
                places,
                links: self.links.clone(),
            },
        })
    }

    /// Why nobody can connect any more, if that is so: for those who poll.
    pub fn failure(&self) -> Option<String> {
        lock(&self.state).failure.clone()
    }

    /// Takes the next stream, waiting for somebody to connect for at most `timeout`, or
    /// without limit. Parks the calling thread on the bell that was given to listen with.
    ///
    /// # Errors
    /// [`AcceptError::TimedOut`]: nobody connected in all that time.
    /// [`AcceptError::Failed`]: nobody can connect any more; the text says why.
    pub fn accept(&self, timeout: Option<Duration>) -> Result<AcceptedStream<B>, AcceptError> {
        let clock = Clock::start();
        loop {
            self.bell.arm();
            let remaining = timeout.map(|timeout| timeout.saturating_sub(clock.now().0));
            let is_over = remaining.is_some_and(|remaining| remaining.is_zero());
            let answer = match (self.try_accept(), self.failure()) {
                (Some(accepted), _) => Some(Ok(accepted)),
                (None, Some(failure)) => Some(Err(AcceptError::Failed(failure))),
                (None, None) => is_over.then_some(Err(AcceptError::TimedOut)),
            };
            if let Some(answer) = answer {
                self.bell.disarm();
                return answer;
            }
            self.bell.park(remaining);
        }
    }
}

impl<B: Payload> Drop for StreamListener<B> {
    fn drop(&mut self) {
        lock(&self.state).is_closed = true;
        self.links.bell().ring();
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        // The place is free once the handle is gone, and somebody may wait for it.
        self.places = Arc::new(());
        self.links.bell().ring();
    }
}

impl<B: Payload> fmt::Debug for StreamListener<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamListener")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl<B: Payload> fmt::Debug for AcceptedStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptedStream")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

fn lock<B: Payload>(state: &Mutex<State<B>>) -> MutexGuard<'_, State<B>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All who connect.
struct Streams<B: Payload> {
    state: Arc<Mutex<State<B>>>,
    edge: EdgeOptions,
    codec: Arc<dyn PayloadCodec<B>>,
    bell: Bell,
    links: LinksHandle,
    /// Each stream that is served has a clone of it.
    places: Arc<()>,
    served_max: usize,
}

impl<B: Payload> Incoming<B> for Streams<B> {
    fn is_full(&mut self) -> bool {
        Arc::strong_count(&self.places) > self.served_max
    }

    fn expect(&mut self, _peer: &str) -> Option<Expected<B>> {
        (!self.is_over()).then(|| Expected {
            edge: self.edge.clone(),
            codec: Arc::clone(&self.codec),
            bell: self.bell.clone(),
            links: self.links.clone(),
        })
    }

    fn deliver(&mut self, receiver: Receiver<B>, peer: &str) {
        let place = Arc::clone(&self.places);
        let waiting = (receiver, peer.to_owned(), place);
        lock(&self.state).waiting.push_back(waiting);
        self.bell.ring();
    }

    fn is_over(&mut self) -> bool {
        lock(&self.state).is_closed
    }

    fn fail(&mut self, why: &str) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.is_closed, true) {
            state.failure = Some(why.to_owned());
            drop(state);
            self.bell.ring();
        }
    }
}
