//! The sending half of an edge over shared memory, as its user holds it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringway_shm::{Bell, Consumer, Producer, ring};

use super::outlet::{Outlet, Seen};
use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::edge::metrics::BlockedTime;
use crate::edge::remote::{Connection, FinishError, RemoteStats};
use crate::edge::turn::Turn;
use crate::edge::{EdgeMetrics, EdgeOptions, Ending, Failure, RejectReason, Rejected};
use crate::element::{Barrier, StreamElement};

/// Orders that wait for the thread of the connection: an outlet, and how it ends.
const ORDERS_MAX: usize = 4;

/// The sending half of an edge over shared memory. It is `Send`; pushing encodes into the
/// segment, takes no lock and makes no system call while the receiver is awake.
pub struct Sender<B: Payload> {
    /// None while the thread of the connection has it.
    outlet: Option<Box<Outlet<B>>>,
    place: Place<B>,
    orders: Producer<Order<B>>,
    connection: Connection,
    edge: EdgeOptions,
    origin: Monotonic,
    /// The last element was a drain marker that stops the stream.
    stops: bool,
    unflushed: bool,
    is_ended: bool,
    metrics: EdgeMetrics,
    blocked: BlockedTime,
    turn: Turn,
}

/// What a half asks of the thread of its connection.
pub(in crate::edge) enum Order<B: Payload> {
    /// To go on with what found no room.
    GoOn(Box<Outlet<B>>),
    /// To end the stream like this, behind that.
    End(Ending),
}

/// How far the end of a stream has come.
enum Ended {
    /// The receiver has it.
    Written,
    /// The thread of the connection brings it, behind what found no room.
    HandedOver,
}

/// Where the thread of the connection leaves an outlet for the half.
pub(in crate::edge) struct Place<B: Payload>(Arc<Mutex<Option<Box<Outlet<B>>>>>);

/// What the thread of the connection keeps of a half.
pub(in crate::edge) struct Ordered<B: Payload> {
    pub(in crate::edge) orders: Consumer<Order<B>>,
    pub(in crate::edge) place: Place<B>,
}

/// What a half is made of, once it is known that it goes over shared memory.
pub(in crate::edge) struct SenderSeed<B: Payload> {
    orders: Producer<Order<B>>,
    place: Place<B>,
}

/// The two ends between a half and the thread of its connection, which is woken by `links`.
pub(in crate::edge) fn seed<B: Payload>(bell: Bell, links: Bell) -> (SenderSeed<B>, Ordered<B>) {
    let (orders, ordered) = ring(ORDERS_MAX, bell, links);
    let place = Place(Arc::default());
    let seed = SenderSeed {
        orders,
        place: place.clone(),
    };
    let ordered = Ordered {
        orders: ordered,
        place,
    };
    (seed, ordered)
}

impl<B: Payload> Place<B> {
    pub(in crate::edge) fn lock(&self) -> MutexGuard<'_, Option<Box<Outlet<B>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Derived, it would ask the same of the payload.
impl<B: Payload> Clone for Place<B> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<B: Payload> SenderSeed<B> {
    /// The outlet, if it waits for the half.
    pub(in crate::edge) fn take_outlet(&self) -> Option<Box<Outlet<B>>> {
        self.place.lock().take()
    }

    /// The half, which goes on from `metrics`.
    pub(in crate::edge) fn grow(
        self,
        outlet: Box<Outlet<B>>,
        connection: Connection,
        edge: EdgeOptions,
        before: Before,
    ) -> Sender<B> {
        Sender {
            outlet: Some(outlet),
            place: self.place,
            orders: self.orders,
            connection,
            edge,
            origin: before.origin,
            stops: before.stops,
            unflushed: false,
            is_ended: false,
            metrics: before.metrics,
            blocked: before.blocked,
            turn: before.turn,
        }
    }
}

/// What a half has done while it was not known how it is carried.
pub(in crate::edge) struct Before {
    pub(in crate::edge) origin: Monotonic,
    pub(in crate::edge) stops: bool,
    pub(in crate::edge) metrics: EdgeMetrics,
    pub(in crate::edge) blocked: BlockedTime,
    pub(in crate::edge) turn: Turn,
}

impl<B: Payload> Sender<B> {
    #[inline]
    pub(in crate::edge) fn try_push(
        &mut self,
        element: StreamElement<B>,
    ) -> Result<(), Rejected<B>> {
        self.push(element, Seen::AtOnce)?;
        self.flush();
        Ok(())
    }

    #[inline]
    pub(in crate::edge) fn try_push_quiet(
        &mut self,
        element: StreamElement<B>,
    ) -> Result<(), Rejected<B>> {
        self.push(element, Seen::Later)
    }

    fn push(&mut self, element: StreamElement<B>, seen: Seen) -> Result<(), Rejected<B>> {
        let (rows, bytes) = match &element {
            StreamElement::Data(batch) => (batch.rows(), batch.bytes()),
            _ => (0, 0),
        };
        let stops = matches!(&element, StreamElement::Drain(drain) if drain.stops());
        let stamp = self.stamp();
        let Some(outlet) = self.outlet() else {
            let reason = self.why_not();
            return Err(Rejected { element, reason });
        };
        outlet.push_sized(element, bytes, stamp, seen)?;
        let is_pending = outlet.is_pending();
        let depth = match outlet.queued() {
            // It may be fewer, which is worth a look where it would be a record.
            queued if queued > self.metrics.high_water => self.look(),
            queued => queued,
        };
        self.stops = stops;
        self.unflushed = true;
        self.metrics.elements += 1;
        self.metrics.rows += rows as u64;
        self.metrics.bytes += bytes as u64;
        self.metrics.high_water = self.metrics.high_water.max(depth);
        if is_pending {
            self.hand_over();
        }
        Ok(())
    }

    #[inline]
    pub(in crate::edge) fn flush(&mut self) {
        if std::mem::take(&mut self.unflushed)
            && let Some(outlet) = &mut self.outlet
        {
            outlet.flush();
        }
    }

    pub(in crate::edge) fn try_push_priority(
        &mut self,
        barrier: Barrier,
    ) -> Result<(), Rejected<B>> {
        let stamp = self.stamp();
        let pushed = match self.outlet() {
            Some(outlet) => outlet.push_priority(&barrier, stamp),
            None => Err(self.why_not()),
        };
        pushed.map_err(|reason| Rejected {
            element: StreamElement::Barrier(barrier),
            reason,
        })
    }

    pub(in crate::edge) fn admits(
        &mut self,
        element: &StreamElement<B>,
    ) -> Result<(), RejectReason> {
        match self.outlet() {
            Some(outlet) => outlet.admits(element),
            None => Err(self.why_not()),
        }
    }

    pub(in crate::edge) fn check(&mut self) -> Result<(), RejectReason> {
        match self.outlet() {
            Some(outlet) => outlet.check(),
            None => self.connection.failure().map_or(Ok(()), Err),
        }
    }

    pub(in crate::edge) fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }

    pub(in crate::edge) fn set_origin(&mut self, origin: Monotonic) {
        self.origin = origin;
    }

    pub(in crate::edge) fn finish(mut self) -> Result<(), RejectReason> {
        let ending = match self.stops {
            true => Ending::Stopped,
            false => Ending::End,
        };
        self.end(ending).map(drop)
    }

    pub(in crate::edge) fn finish_and_wait(mut self, timeout: Duration) -> Result<(), FinishError> {
        let ending = match self.stops {
            true => Ending::Stopped,
            false => Ending::End,
        };
        let connection = self.connection.clone();
        match self.end(ending).map_err(FinishError::Rejected)? {
            // It is in memory that the receiver has, however long this process lives.
            Ended::Written => Ok(()),
            Ended::HandedOver => {
                drop(self);
                connection.wait_for_outcome(timeout)
            }
        }
    }

    pub(in crate::edge) fn close_with(mut self, ending: Ending) {
        drop(self.end(ending));
    }

    pub(in crate::edge) fn fail(self, reason: String) {
        let failure = Failure::peer_failed(self.edge.name.clone(), reason);
        self.close_with(Ending::Failed(failure));
    }

    pub(in crate::edge) fn is_closed(&self) -> bool {
        match &self.outlet {
            Some(outlet) => outlet.is_closed(),
            None => self.connection.is_gone() || self.connection.failure().is_some(),
        }
    }

    pub(in crate::edge) fn len(&self) -> usize {
        self.outlet.as_ref().map_or(0, |outlet| outlet.depth())
    }

    pub(in crate::edge) fn options(&self) -> &EdgeOptions {
        &self.edge
    }

    pub(in crate::edge) fn metrics(&self) -> EdgeMetrics {
        EdgeMetrics {
            depth: self.len(),
            blocked: self.blocked.total(),
            blocked_times: self.blocked.times(),
            ..self.metrics
        }
    }

    pub(in crate::edge) fn remote_stats(&self) -> RemoteStats {
        match &self.outlet {
            Some(outlet) => outlet.stats(),
            None => self.connection.stats(),
        }
    }

    pub(in crate::edge) fn blocked(&mut self, now: Monotonic) {
        if let Some(waited) = self.blocked.blocked(now) {
            tracing::warn!(
                edge = %self.edge.name,
                depth = self.len(),
                capacity = self.edge.capacity_elements,
                waited_ms = waited.as_millis() as u64,
                "edge is stuck: its sender waits, its receiver does not take what is queued"
            );
        }
    }

    pub(in crate::edge) fn unblocked(&mut self, now: Monotonic) {
        self.blocked.unblocked(now);
    }

    pub(in crate::edge) fn bell(&self) -> &Bell {
        self.connection.bell()
    }

    /// The outlet, unless the thread of the connection still needs it.
    fn outlet(&mut self) -> Option<&mut Outlet<B>> {
        if self.outlet.is_none() {
            self.outlet = self.place.lock().take();
        }
        self.outlet.as_deref_mut()
    }

    fn stamp(&self) -> u64 {
        u64::try_from(self.origin.0.as_nanos()).unwrap_or(u64::MAX)
    }

    fn look(&mut self) -> usize {
        self.outlet.as_mut().map_or(0, |outlet| outlet.look())
    }

    /// What found no room goes on without this half.
    fn hand_over(&mut self) {
        if let Some(outlet) = self.outlet.take()
            && let Err(refused) = self.orders.try_push(Order::GoOn(outlet))
            && let Order::GoOn(outlet) = refused.into_inner()
        {
            // Nobody looks after the connection any more, which the outlet tells.
            self.outlet = Some(outlet);
        }
    }

    /// Why nothing is taken while the thread of the connection has the outlet.
    #[cold]
    fn why_not(&self) -> RejectReason {
        self.connection.failure().unwrap_or(RejectReason::Full)
    }

    fn end(&mut self, ending: Ending) -> Result<Ended, RejectReason> {
        self.is_ended = true;
        if let Some(outlet) = self.outlet() {
            outlet.check()?;
            if outlet.end(&ending) {
                self.outlet = None;
                return Ok(Ended::Written);
            }
            self.hand_over();
        }
        if let Some(reason) = self.connection.failure() {
            return Err(reason);
        }
        drop(self.orders.try_push(Order::End(ending)));
        Ok(Ended::HandedOver)
    }
}

impl<B: Payload> Drop for Sender<B> {
    fn drop(&mut self) {
        if !self.is_ended {
            let lost = Failure::peer_lost(self.edge.name.clone());
            drop(self.end(Ending::Failed(lost)));
        }
    }
}

impl<B: Payload> std::fmt::Debug for Sender<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("shared::Sender")
            .field("edge", &self.edge.name)
            .field("depth", &self.len())
            .finish_non_exhaustive()
    }
}
