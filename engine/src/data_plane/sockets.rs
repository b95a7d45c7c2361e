//! Edges to other processes.

use std::sync::Arc;
use std::time::Duration;

use ringway_netio::driver::Socket;
use ringway_netio::net::{self, Bound, HostPort};
use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::Clock;
use crate::edge::remote::{
    Expected, Incoming, LinksHandle, RemoteParts, listen_for_streams, send_over,
};
use crate::edge::shared::Sharing;
use crate::edge::{Receiver, Sender, Transport};
use crate::wire::PayloadCodec;

use super::endpoint::Endpoint;
use super::names::{self, Names};
use super::{ConnectError, ConnectOptions, DataPlane, ListenError, ListenOptions, Listener};

/// Binds, and takes one sender, over a ring or a connection, whichever comes first.
pub(super) fn listen<B: Payload>(
    plane: &DataPlane,
    options: ListenOptions,
    receiver_bell: Bell,
    codec: Arc<dyn PayloadCodec<B>>,
) -> Result<Listener<B>, ListenError> {
    let sharing = options.transport.sharing()?;
    let links = links_for(plane, options.links.as_ref()).map_err(ListenError::NoLinks)?;
    let bound = bind(plane, &options)?;
    let port = bound.address.port();
    let names = Names::new(&options, port);
    let endpoint = Arc::new(Endpoint::new(options.edge_at(port), receiver_bell));
    if options.transport.allows_local() {
        plane
            .lock()
            .register::<B>(names.clone(), endpoint.clone())?;
    }
    // From here on the listener unregisters it.
    let accepting = Some(links.clone());
    let listener = Listener::new(plane.clone(), names, Arc::clone(&endpoint), accepting);
    let incoming = OneStream {
        endpoint,
        codec,
        links: links.clone(),
    };
    let mut remote = options.remote.unwrap_or_else(|| plane.remote().clone());
    remote.shared.sharing = sharing;
    let socket = Socket::from(bound.listener);
    listen_for_streams(&links, socket, remote, Box::new(incoming))
        .map_err(|error| ListenError::NoLinks(error.to_string()))?;
    Ok(listener)
}

/// Makes a connection. Blocks until it is there, or for as long as the options say.
pub(super) fn connect<B: Payload>(
    plane: &DataPlane,
    host: &str,
    port: u16,
    sender_bell: Bell,
    options: ConnectOptions,
    codec: Arc<dyn PayloadCodec<B>>,
) -> Result<Sender<B>, ConnectError> {
    let not_shared = |why| ConnectError::NotShared {
        endpoint: names::display(host, port),
        why,
    };
    let sharing = options.transport.sharing();
    let sharing = sharing.map_err(|error| not_shared(error.to_string()))?;
    let links = links_for(plane, options.links.as_ref()).map_err(ConnectError::NoLinks)?;
    let clock = Clock::start();
    let to = HostPort::new(names::normal(host), port);
    let stream = net::connect(&to, &options.patience, || clock.now().0)
        .map_err(|error| ConnectError::Unreachable(error.to_string()))?;
    let peer = stream.peer_addr();
    let remote = options.remote.clone();
    let mut remote = remote.unwrap_or_else(|| plane.remote().clone());
    remote.shared.sharing = sharing;
    let parts = RemoteParts {
        edge: options.edge_to(host, port),
        remote,
        codec,
        peer: peer.map_or_else(|_| to.to_string(), |peer| peer.to_string()),
        bell: sender_bell,
    };
    let sender = send_over(&links, stream.into(), parts)
        .map_err(|error| ConnectError::NoLinks(error.to_string()))?;
    match sharing {
        Sharing::Require => {
            let left = options.patience.time_limit.saturating_sub(clock.now().0);
            wait_until_shared(sender, left).map_err(not_shared)
        }
        Sharing::Off | Sharing::Prefer => Ok(sender),
    }
}

/// Waits until it is known that the edge goes over shared memory, at most for `limit`.
fn wait_until_shared<B: Payload>(
    mut sender: Sender<B>,
    limit: Duration,
) -> Result<Sender<B>, String> {
    let clock = Clock::start();
    let bell = sender.bell().clone();
    loop {
        bell.arm();
        let left = limit.saturating_sub(clock.now().0);
        let answer = match sender.poll_transport() {
            Some(Transport::Shared) => Some(Ok(())),
            _ => match sender.check() {
                Err(reason) => Some(Err(reason.to_string())),
                Ok(()) if left.is_zero() => Some(Err("the receiver has not answered".to_owned())),
                Ok(()) => None,
            },
        };
        if let Some(answer) = answer {
            bell.disarm();
            return answer.map(|()| sender);
        }
        bell.park(Some(left));
    }
}

/// Binds where the options say, unless a listener of this process has that name.
pub(super) fn bind(plane: &DataPlane, options: &ListenOptions) -> Result<Bound, ListenError> {
    if options.port != 0 {
        let names = Names::new(options, options.port);
        if let Some(endpoint) = plane.lock().clash(&names) {
            return Err(ListenError::InUse { endpoint });
        }
    }
    let at = HostPort::new(names::normal(&options.bind_host), options.port);
    net::bind(&at).map_err(|error| ListenError::Bind(error.to_string()))
}

/// Who drives a connection.
pub(super) fn links_for(
    plane: &DataPlane,
    wanted: Option<&LinksHandle>,
) -> Result<LinksHandle, String> {
    match wanted {
        Some(links) => Ok(links.clone()),
        None => plane.links(),
    }
}

/// The first who connects, and nobody else.
struct OneStream<B: Payload> {
    endpoint: Arc<Endpoint<B>>,
    codec: Arc<dyn PayloadCodec<B>>,
    links: LinksHandle,
}

impl<B: Payload> Incoming<B> for OneStream<B> {
    fn expect(&mut self, _peer: &str) -> Option<Expected<B>> {
        self.endpoint.is_open().then(|| Expected {
            edge: self.endpoint.edge().clone(),
            codec: Arc::clone(&self.codec),
            bell: self.endpoint.receiver_bell().clone(),
            links: self.links.clone(),
        })
    }

    fn deliver(&mut self, receiver: Receiver<B>, _peer: &str) {
        self.endpoint.deliver(receiver);
    }

    fn is_over(&mut self) -> bool {
        !self.endpoint.is_open()
    }

    fn fail(&mut self, why: &str) {
        self.endpoint.fail(why);
    }
}
