//! The connection of a receiver over shared memory.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ringway_shm::{Bell, Consumer, PopError};

use super::connection::Connection;
use super::links::{Event, Io, Link};
use super::reasons::Names;
use super::receiver::ReceiverPlace;
use super::shared::{Carrier, Shared};
use super::sharing::Relay;
use super::vigil::Vigil;
use crate::batch::Payload;
use crate::edge::local;
use crate::edge::shared::{Gone, Receiver, ReceiverParts, Visitor};
use crate::wire::PayloadCodec;

/// What goes on with a connection whose edge goes over shared memory: it looks whether the
/// sender lives, for as long as the user's half does.
pub(super) struct SharedReceiving<B: Payload> {
    /// None once the user's half is the one over shared memory.
    ring: Option<local::Sender<B>>,
    place: ReceiverPlace<B>,
    lives: Consumer<()>,
    vigil: Vigil,
    is_begun: bool,
}

impl<B: Payload> SharedReceiving<B> {
    pub(super) fn new(
        ring: local::Sender<B>,
        place: ReceiverPlace<B>,
        visitor: Visitor,
        codec: Arc<dyn PayloadCodec<B>>,
        names: Names,
        shared: Arc<Shared>,
        links: &Bell,
    ) -> Self {
        let names = Arc::new(names);
        let gone = Gone::default();
        let relay = Relay::new(shared.bell(), links, || visitor.consumer.watch());
        let (lives, looked_at) = ringway_shm::ring::<()>(1, shared.bell().clone(), links.clone());
        let receiver = Receiver::new(ReceiverParts {
            consumer: visitor.consumer,
            codec,
            edge: ring.options().clone(),
            connection: Connection::new(Arc::clone(&shared), Arc::clone(&gone), Arc::clone(&names)),
            lives,
            copies: visitor.copies,
            shift_nanos: visitor.shift_nanos,
        });
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(receiver));
        shared.set_carrier(Carrier::Memory(Arc::clone(&gone), names));
        Self {
            ring: Some(ring),
            place,
            lives: looked_at,
            vigil: Vigil::new(gone, shared, relay, visitor.stream),
            is_begun: false,
        }
    }

    /// Looks whether the user's half is gone, the one from before or the one that came after.
    fn is_left(&mut self) -> bool {
        if let Some(ring) = self.ring.take_if(|ring| ring.is_closed()) {
            let left = self
                .place
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(receiver) = left {
                receiver.reject(&ring.closed_because());
            }
        }
        !matches!(self.lives.try_pop(), Err(PopError::Empty))
    }
}

impl<B: Payload> Link for SharedReceiving<B> {
    fn handle(&mut self, event: Event, _io: &mut Io<'_>) {
        self.vigil.handle(event);
    }

    fn pump(&mut self, io: &mut Io<'_>) -> usize {
        if let Some(work) = self.vigil.poll(io) {
            return work;
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            // Nothing comes but the end, and that is seen by reading only.
            io.driver.set_reading(io.connection, true);
        }
        self.vigil.relay();
        let is_left = self.is_left();
        if is_left {
            self.vigil.leave(io);
        }
        usize::from(is_left)
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
