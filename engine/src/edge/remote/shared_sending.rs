//! The connection of a sender over shared memory.

use std::sync::Arc;
use std::time::Duration;

use ringway_shm::{Consumer, PopError};

use super::links::{Event, Io, Link};
use super::reasons::Names;
use super::shared::{Carrier, Shared};
use super::sharing::{Relay, Sharer};
use super::vigil::Vigil;
use crate::batch::Payload;
use crate::edge::shared::{Gone, Order, Outlet, Place};
use crate::edge::{Ending, Failure, Popped, RejectReason, local};
use crate::element::StreamElement;
use crate::wire::PayloadCodec;

/// What goes on with a connection whose edge goes over shared memory: it looks whether the
/// receiver lives, and brings what its user has left behind to it.
pub(super) struct SharedSending<B: Payload> {
    /// What was pushed before it was known what carries the edge. None once the user's half has
    /// its outlet.
    ring: Option<local::Receiver<B>>,
    /// What came out of it and found no room.
    element: Option<StreamElement<B>>,
    /// None while the user's half has it.
    outlet: Option<Box<Outlet<B>>>,
    place: Place<B>,
    orders: Consumer<Order<B>>,
    /// How the stream ends when everything is written.
    ending: Option<Ending>,
    names: Arc<Names>,
    vigil: Vigil,
    /// The user's half is gone.
    is_left: bool,
}

impl<B: Payload> SharedSending<B> {
    pub(super) fn new(
        ring: local::Receiver<B>,
        sharer: Sharer<B>,
        codec: Arc<dyn PayloadCodec<B>>,
        names: Names,
        shared: Arc<Shared>,
        links: &ringway_shm::Bell,
    ) -> Self {
        let names = Arc::new(names);
        let gone = Gone::default();
        let relay = Relay::new(shared.bell(), links, || sharer.host.producer.watch());
        let mut outlet = Outlet::new(
            *sharer.host.producer,
            codec,
            sharer.edge,
            Names::clone(&names),
            Arc::clone(&gone),
            sharer.host.region_bytes_max,
        );
        if relay.is_some() {
            outlet.set_relayed_by(links);
        }
        // Where the half finds it as soon as it knows what it is.
        *sharer.ordered.place.lock() = Some(Box::new(outlet));
        shared.set_carrier(Carrier::Memory(Arc::clone(&gone), Arc::clone(&names)));
        Self {
            ring: Some(ring),
            element: None,
            outlet: None,
            place: sharer.ordered.place,
            orders: sharer.ordered.orders,
            ending: None,
            names,
            vigil: Vigil::new(gone, shared, relay, sharer.host.stream),
            is_left: false,
        }
    }

    /// Takes what the user's half asks for.
    fn obey(&mut self) -> usize {
        let mut work = 0;
        loop {
            match self.orders.try_pop() {
                Ok(order) => {
                    // Whoever gives orders has had the outlet, and needs the ring no more.
                    self.ring = None;
                    match order {
                        Order::GoOn(outlet) => self.outlet = Some(outlet),
                        Order::End(ending) => self.ending = Some(ending),
                    }
                }
                Err(PopError::Empty) => return work,
                Err(PopError::Finished | PopError::Abandoned) => {
                    if std::mem::replace(&mut self.is_left, true) {
                        return work;
                    }
                    // It may have been left there when the half had gone already.
                    let left = self.place.lock().take();
                    self.outlet = self.outlet.take().or(left);
                }
            }
            work += 1;
        }
    }

    /// Brings what the user's half pushed before it had its outlet to it.
    fn drain_ring(&mut self) -> usize {
        let Some(ring) = &mut self.ring else {
            return 0;
        };
        if self.outlet.is_none() && ring.is_ready() {
            // The half may have pushed, or have gone, before it saw that.
            self.outlet = self.place.lock().take();
            if self.outlet.is_none() {
                // It has the outlet, and needs the ring no more.
                self.ring = None;
                return 1;
            }
        }
        let Some(outlet) = &mut self.outlet else {
            return 0;
        };
        let mut work = 0;
        loop {
            let element = match self.element.take() {
                Some(element) => element,
                None => match ring.try_pop() {
                    Popped::Element(element) => element,
                    Popped::Empty => break,
                    Popped::Ended(ending) => {
                        self.ending = Some(ending);
                        self.ring = None;
                        self.is_left = true;
                        work += 1;
                        break;
                    }
                },
            };
            let stamp = u64::try_from(ring.origin().0.as_nanos()).unwrap_or(u64::MAX);
            match outlet.push(element, stamp) {
                Ok(()) => work += 1,
                Err(rejected) if rejected.reason == RejectReason::Full => {
                    self.element = Some(rejected.element);
                    break;
                }
                Err(rejected) => {
                    self.conclude(Err(rejected.reason));
                    return work + 1;
                }
            }
        }
        outlet.flush();
        work
    }

    /// Writes what is left, and ends the stream or gives the outlet back.
    fn go_on(&mut self) -> usize {
        let Some(outlet) = &mut self.outlet else {
            return 0;
        };
        if let Err(reason) = outlet.check() {
            self.conclude(Err(reason));
            return 1;
        }
        if !outlet.advance() || self.element.is_some() {
            return 0;
        }
        match (&self.ending, self.is_left) {
            (Some(ending), _) => {
                if !outlet.end(ending) {
                    return 0;
                }
                self.conclude(Ok(()));
            }
            (None, true) => {
                let lost = Failure::peer_lost(self.names.edge.clone());
                self.ending = Some(Ending::Failed(lost));
            }
            (None, false) => {
                *self.place.lock() = self.outlet.take();
                self.vigil.shared().bell().ring();
            }
        }
        1
    }

    fn conclude(&mut self, outcome: Result<(), RejectReason>) {
        if let Some(outlet) = self.outlet.take() {
            self.vigil.shared().publish(outlet.stats());
            if outcome.is_err() && !self.is_left {
                // So that the user's half finds out why, whatever it does next.
                *self.place.lock() = Some(outlet);
                self.vigil.shared().bell().ring();
            }
        }
        if let Err(reason) = &outcome
            && let Some(ring) = self.ring.take()
        {
            ring.reject(reason.clone());
        }
        self.element = None;
        self.vigil.shared().conclude(outcome);
    }
}

impl<B: Payload> Link for SharedSending<B> {
    fn handle(&mut self, event: Event, _io: &mut Io<'_>) {
        self.vigil.handle(event);
    }

    fn pump(&mut self, io: &mut Io<'_>) -> usize {
        if let Some(work) = self.vigil.poll(io) {
            return work;
        }
        let mut work = self.obey() + self.drain_ring() + self.go_on();
        self.vigil.relay();
        if self.is_left && self.outlet.is_none() {
            self.vigil.leave(io);
            work += 1;
        }
        work
    }

    fn timeout(&self) -> Option<Duration> {
        self.vigil.timeout()
    }

    fn is_needed(&self) -> bool {
        self.vigil.is_needed()
    }

    fn is_over(&self) -> bool {
        self.vigil.is_over()
    }
}

impl<B: Payload> Drop for SharedSending<B> {
    /// Nobody looks after the receiver any more.
    fn drop(&mut self) {
        self.vigil.lose(None);
        if self.vigil.shared().outcome().is_none() {
            let failure = self.names.failure(crate::edge::FailureKind::PeerLost);
            self.conclude(Err(RejectReason::Failed(failure)));
        }
    }
}
