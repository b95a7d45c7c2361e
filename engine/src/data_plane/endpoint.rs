//! What one endpoint holds for its listener, from the moment a sender connects.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::edge::{EdgeOptions, Receiver, Sender, local};

use super::ConnectError;

/// One endpoint: what its edge is opened with, and the hand-over of the receiver.
pub(super) struct Endpoint<B: Payload> {
    edge: EdgeOptions,
    receiver_bell: Bell,
    offer: Mutex<Offer<B>>,
}

/// How far an endpoint's one connection has come.
enum Offer<B: Payload> {
    /// No sender has connected.
    Open,
    /// A sender has connected; its receiver waits for the listener.
    Connected(Box<Receiver<B>>),
    /// The listener has taken its receiver.
    Taken,
    /// The listener is gone.
    Closed,
    /// Nobody can connect any more, for this reason.
    Failed(String),
}

/// Why an endpoint takes no sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Closed,
    AlreadyConnected,
}

impl<B: Payload> Endpoint<B> {
    pub(super) fn new(edge: EdgeOptions, receiver_bell: Bell) -> Self {
        Self {
            edge,
            receiver_bell,
            offer: Mutex::new(Offer::Open),
        }
    }

    /// Opens the edge, leaves the receiver for the listener, and wakes it.
    pub(super) fn connect(&self, sender_bell: Bell) -> Result<Sender<B>, Refusal> {
        let mut offer = self.lock();
        match *offer {
            Offer::Open => {}
            Offer::Closed | Offer::Failed(_) => return Err(Refusal::Closed),
            Offer::Connected(_) | Offer::Taken => return Err(Refusal::AlreadyConnected),
        }
        let bell = self.receiver_bell.clone();
        let (sender, receiver) = local::open(self.edge.clone(), sender_bell, bell);
        *offer = Offer::Connected(Box::new(receiver));
        drop(offer);
        self.receiver_bell.ring();
        Ok(sender)
    }

    /// Leaves a receiver that came over a connection for the listener, and wakes it. If a
    /// sender was faster, the receiver goes, and its peer learns of it.
    pub(super) fn deliver(&self, receiver: Receiver<B>) {
        let mut offer = self.lock();
        if let Offer::Open = *offer {
            *offer = Offer::Connected(Box::new(receiver));
            drop(offer);
            self.receiver_bell.ring();
        }
    }

    /// Whether a sender may still connect.
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.lock(), Offer::Open)
    }

    /// Takes the receiver, if a sender has connected.
    pub(super) fn take(&self) -> Option<Receiver<B>> {
        let mut offer = self.lock();
        match std::mem::replace(&mut *offer, Offer::Taken) {
            Offer::Connected(receiver) => Some(*receiver),
            other => {
                *offer = other;
                None
            }
        }
    }

    /// Nobody can connect any more. Wakes the listener, unless somebody has connected.
    pub(super) fn fail(&self, why: &str) {
        let mut offer = self.lock();
        if let Offer::Open = *offer {
            *offer = Offer::Failed(why.to_owned());
            drop(offer);
            self.receiver_bell.ring();
        }
    }

    /// Why nobody can connect any more, if that is so.
    pub(super) fn failure(&self) -> Option<String> {
        match &*self.lock() {
            Offer::Failed(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// Whether the receiver was taken, so that no other comes.
    pub(super) fn is_taken(&self) -> bool {
        matches!(*self.lock(), Offer::Taken)
    }

    /// Whether a sender has connected.
    pub(super) fn is_connected(&self) -> bool {
        matches!(*self.lock(), Offer::Connected(_) | Offer::Taken)
    }

    /// Takes no sender from now on. A receiver that nobody took goes, and its sender learns of
    /// it.
    pub(super) fn close(&self) {
        let before = std::mem::replace(&mut *self.lock(), Offer::Closed);
        drop(before);
    }

    pub(super) fn edge(&self) -> &EdgeOptions {
        &self.edge
    }

    pub(super) fn receiver_bell(&self) -> &Bell {
        &self.receiver_bell
    }

    fn lock(&self) -> MutexGuard<'_, Offer<B>> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refusal {
    /// The error for a sender that wanted to connect to `endpoint`.
    pub(super) fn at(self, endpoint: String) -> ConnectError {
        match self {
            Self::Closed => ConnectError::NotListening { endpoint },
            Self::AlreadyConnected => ConnectError::AlreadyConnected { endpoint },
        }
    }
}
