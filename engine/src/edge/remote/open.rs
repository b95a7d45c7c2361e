//! Putting an edge on a connection.

use std::sync::Arc;

use bytes::Bytes;
use ringway_netio::driver::Socket;
use ringway_netio::session::{ReceiverSession, SenderSession};
use ringway_shm::Bell;

use super::handle::{LinksGone, LinksHandle};
use super::inflow::{Inflow, Unread};
use super::links::Links;
use super::options::RemoteOptions;
use super::reasons::Names;
use super::receiver_link::ReceiverLink;
use super::sender_link::SenderLink;
use super::shared::Shared;
use crate::batch::Payload;
use crate::edge::{EdgeOptions, Ending, FailureKind, RejectReason, local};
use crate::wire::PayloadCodec;

/// What either end of an edge over a connection is made of.
pub struct RemoteParts<B> {
    /// Name and bounds of the edge.
    pub edge: EdgeOptions,
    /// What holds for the connection.
    pub remote: RemoteOptions,
    /// How the payload goes over the wire.
    pub codec: Arc<dyn PayloadCodec<B>>,
    /// Who the peer is, as errors name it.
    pub peer: String,
    /// Wakes whoever owns the half.
    pub bell: Bell,
}

/// Sends over a connection that was made.
///
/// # Errors
/// [`LinksGone`]: the thread of the links has ended.
pub fn send_over<B: Payload>(
    links: &LinksHandle,
    socket: Socket,
    parts: RemoteParts<B>,
) -> Result<crate::edge::Sender<B>, LinksGone> {
    let shared = Arc::new(Shared::new(parts.bell.clone()));
    let (outer, inner) = local::halves(parts.edge.clone(), parts.bell, links.bell().clone());
    let sender = super::Sender::new(outer, Arc::clone(&shared));
    let names = Names {
        edge: parts.edge.name.clone(),
        peer: parts.peer,
    };
    let options = parts.remote.for_sender(&parts.edge);
    let (codec, compression) = (parts.codec, parts.remote.compression);
    links.submit(move |links| {
        let session = SenderSession::new(options, Links::now());
        let lost = names.clone();
        let (fallback, observer) = (inner, Arc::clone(&shared));
        match links.reserve(socket) {
            Ok(connection) => {
                let link = SenderLink::new(fallback, session, codec, compression, names, shared);
                links.insert(connection, Box::new(link));
            }
            Err(error) => {
                let failure = lost.failure(FailureKind::ConnectionLost(error.to_string()));
                observer.conclude(Err(RejectReason::Failed(failure.clone())));
                fallback.reject(RejectReason::Failed(failure));
            }
        }
    })?;
    Ok(crate::edge::Sender::Remote(sender))
}

/// Receives over a connection that was accepted.
///
/// # Errors
/// [`LinksGone`]: the thread of the links has ended.
pub fn receive_over<B: Payload>(
    links: &LinksHandle,
    socket: Socket,
    parts: RemoteParts<B>,
) -> Result<crate::edge::Receiver<B>, LinksGone> {
    let (seat, receiver) = Seat::new(links, &parts.edge, parts.bell);
    let options = parts.remote.for_receiver(&parts.edge);
    let adopted = Adopted {
        socket,
        session: ReceiverSession::new(options, Links::now()),
        unread: Unread::default(),
        peer: parts.peer,
    };
    seat.take(links, adopted, parts.codec)?;
    Ok(receiver)
}

/// The inner end of a receiver whose connection is still to come.
pub(super) struct Seat<B: Payload> {
    ring: local::Sender<B>,
    shared: Arc<Shared>,
}

/// A connection with its session, on its way to the link that goes on with it.
pub(super) struct Adopted {
    pub(super) socket: Socket,
    pub(super) session: ReceiverSession<Bytes>,
    pub(super) unread: Unread,
    pub(super) peer: String,
}

impl<B: Payload> Seat<B> {
    pub(super) fn new(
        links: &LinksHandle,
        edge: &EdgeOptions,
        bell: Bell,
    ) -> (Self, crate::edge::Receiver<B>) {
        let shared = Arc::new(Shared::new(bell.clone()));
        let (ring, outer) = local::halves(edge.clone(), links.bell().clone(), bell);
        let receiver = super::Receiver::new(outer, Arc::clone(&shared));
        (
            Self { ring, shared },
            crate::edge::Receiver::Remote(receiver),
        )
    }

    /// Fails the receiver: no connection comes.
    pub(super) fn fail(self, kind: FailureKind) {
        let edge = self.ring.options().name.clone();
        let failure = crate::edge::Failure::new(edge, kind);
        self.ring.close_with(Ending::Failed(failure));
    }

    /// Goes on with a connection, on the thread of `links`.
    pub(super) fn take(
        self,
        links: &LinksHandle,
        adopted: Adopted,
        codec: Arc<dyn PayloadCodec<B>>,
    ) -> Result<(), LinksGone> {
        links.submit(move |links| {
            let names = Names {
                edge: self.ring.options().name.clone(),
                peer: adopted.peer,
            };
            match links.reserve(adopted.socket) {
                Ok(connection) => {
                    let inflow = Inflow::begin_with(adopted.unread);
                    let (ring, shared) = (self.ring, self.shared);
                    let link =
                        ReceiverLink::new(ring, adopted.session, inflow, codec, names, shared);
                    links.insert(connection, Box::new(link));
                }
                Err(error) => {
                    let failure = names.failure(FailureKind::ConnectionLost(error.to_string()));
                    self.ring.close_with(Ending::Failed(failure));
                }
            }
        })
    }
}
