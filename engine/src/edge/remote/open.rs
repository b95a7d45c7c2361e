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
use super::receiver::ReceiverPlace;
use super::receiver_link::ReceiverLink;
use super::sender_link::SenderLink;
use super::shared::Shared;
use crate::batch::Payload;
use crate::edge::shared::{Door, Ordered, seed};
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
    let (sender, seat) = send_later(links, parts);
    seat.connect(socket)?;
    Ok(sender)
}

/// A sender whose connection is still to be made. It takes elements until it is full, and has
/// failed if its seat is dropped.
pub fn send_later<B: Payload>(
    links: &LinksHandle,
    parts: RemoteParts<B>,
) -> (crate::edge::Sender<B>, SenderSeat<B>) {
    let shared = Arc::new(Shared::new(parts.bell.clone()));
    let (outer, ring) = local::halves(parts.edge.clone(), parts.bell.clone(), links.bell().clone());
    let sharing = parts
        .remote
        .may_share()
        .then(|| seed(parts.bell.clone(), links.bell().clone()));
    let (seed, ordered) = sharing.unzip();
    let sender = super::Sender::new(outer, Arc::clone(&shared), seed);
    let seat = SenderSeat {
        ring,
        ordered,
        shared,
        parts,
        links: links.clone(),
    };
    (crate::edge::Sender::Remote(sender), seat)
}

/// The inner end of a sender whose connection is still to be made.
pub struct SenderSeat<B: Payload> {
    ring: local::Receiver<B>,
    ordered: Option<Ordered<B>>,
    shared: Arc<Shared>,
    parts: RemoteParts<B>,
    links: LinksHandle,
}

/// A connection that a sender was put on.
#[derive(Clone, Debug)]
pub struct Greeting {
    shared: Arc<Shared>,
    may_share: bool,
}

impl Greeting {
    /// Whether both ends have greeted, and know what carries the edge, or nothing comes of it.
    pub fn is_over(&self) -> bool {
        let has_greeted = match self.may_share {
            true => self.shared.carrier().is_some(),
            false => self.shared.stats().mode.is_some(),
        };
        has_greeted || self.shared.outcome().is_some()
    }
}

impl<B: Payload> SenderSeat<B> {
    /// Fails the sender: there is no connection.
    pub fn fail(self, why: impl Into<String>) {
        let names = Names {
            edge: self.parts.edge.name,
            peer: self.parts.peer,
        };
        reject(self.ring, &self.shared, &names, why.into());
    }

    /// Sends over a connection that was made.
    ///
    /// # Errors
    /// [`LinksGone`]: the thread of the links has ended.
    pub fn connect(self, socket: Socket) -> Result<Greeting, LinksGone> {
        let greeting = Greeting {
            shared: Arc::clone(&self.shared),
            may_share: self.ordered.is_some(),
        };
        let (ring, shared, parts) = (self.ring, self.shared, self.parts);
        let ordered = self.ordered;
        self.links.submit(move |links| {
            let options = parts.remote.for_sender(&parts.edge);
            let session = SenderSession::new(options, Links::now());
            let names = Names {
                edge: parts.edge.name.clone(),
                peer: parts.peer,
            };
            match links.reserve(socket) {
                Ok(connection) => {
                    let (codec, compression) = (parts.codec, parts.remote.compression);
                    let mut link =
                        SenderLink::new(ring, session, codec, compression, names, shared);
                    if let Some(ordered) = ordered {
                        let (edge, options) = (parts.edge, parts.remote.shared);
                        let patience = parts.remote.stalled_after;
                        link.set_sharing(ordered, edge, options, parts.remote.identity, patience);
                    }
                    links.insert(connection, Box::new(link));
                }
                Err(error) => reject(ring, &shared, &names, error.to_string()),
            }
        })?;
        Ok(greeting)
    }
}

fn reject<B: Payload>(ring: local::Receiver<B>, shared: &Shared, names: &Names, why: String) {
    let failure = names.failure(FailureKind::ConnectionLost(why));
    shared.conclude(Err(RejectReason::Failed(failure.clone())));
    ring.reject(RejectReason::Failed(failure));
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
    let may_share = parts.remote.may_share();
    let (seat, receiver) = Seat::new(links, &parts.edge, parts.bell, may_share);
    let options = parts.remote.for_receiver(&parts.edge);
    let adopted = Adopted {
        socket,
        door: parts.remote.door(options.token),
        session: ReceiverSession::new(options, Links::now()),
        unread: Unread::default(),
        peer: parts.peer,
        overtaking: parts.remote.overtaking,
    };
    seat.take(links, adopted, parts.codec)?;
    Ok(receiver)
}

/// The inner end of a receiver whose connection is still to come.
pub(super) struct Seat<B: Payload> {
    ring: local::Sender<B>,
    shared: Arc<Shared>,
    place: Option<ReceiverPlace<B>>,
}

/// A connection with its session, on its way to the link that goes on with it.
pub(super) struct Adopted {
    pub(super) socket: Socket,
    /// Where the sender may come in that is on this host.
    pub(super) door: Option<Door>,
    pub(super) session: ReceiverSession<Bytes>,
    pub(super) unread: Unread,
    pub(super) peer: String,
    pub(super) overtaking: bool,
}

impl<B: Payload> Seat<B> {
    pub(super) fn new(
        links: &LinksHandle,
        edge: &EdgeOptions,
        bell: Bell,
        may_share: bool,
    ) -> (Self, crate::edge::Receiver<B>) {
        let shared = Arc::new(Shared::new(bell.clone()));
        let (ring, outer) = local::halves(edge.clone(), links.bell().clone(), bell);
        let place = may_share.then(ReceiverPlace::default);
        let receiver = super::Receiver::new(outer, Arc::clone(&shared), place.clone());
        let seat = Self {
            ring,
            shared,
            place,
        };
        (seat, crate::edge::Receiver::Remote(receiver))
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
                    let mut link =
                        ReceiverLink::new(ring, adopted.session, inflow, codec, names, shared);
                    link.set_overtaking(adopted.overtaking);
                    link.set_sharing(self.place.zip(adopted.door));
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
