//! The two halves of a link before they have met.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::bell::Bell;
use crate::doorbell::Doorbell;
use crate::link::bounds::Bounds;
use crate::link::side::{ConsumerSide, ProducerSide};
use crate::link::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, Consumer, DESCRIPTORS, LinkConfig, Producer};
use crate::segment::{OpenError, Own, Pages, PagesInUse, Role, Shape, inspect};
use crate::sync::Arc;

/// The half that will push, before it has met the other.
#[derive(Debug)]
pub struct Outgoing {
    own: Own,
    pages: PagesInUse,
    messages_max: usize,
    bell: Bell,
}

impl Outgoing {
    /// Makes the producer's segment. `bell` is that of whoever pushes: the consumer rings it when
    /// it has made room for one who waits. It may serve other edges too.
    ///
    /// # Errors
    ///
    /// Those of [`OpenError`] that are about this process: do what they say, or use a socket.
    pub fn new(config: &LinkConfig, bell: &Bell) -> Result<Outgoing, OpenError> {
        bell.share()?;
        let (own, pages) = Own::new(Role::Producer, config.pages, |page| config.shape(page))?;
        Ok(Outgoing {
            own,
            pages,
            messages_max: config.messages_max(),
            bell: bell.clone(),
        })
    }

    /// What to pass to the other half, in this order.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; DESCRIPTORS] {
        descriptors(&self.own, &self.bell)
    }

    /// Which pages the segment has.
    pub fn pages(&self) -> &PagesInUse {
        &self.pages
    }

    /// Takes what the other half passed.
    ///
    /// # Errors
    ///
    /// Those of [`OpenError`] that are about the peer: refuse it.
    pub fn meet(self, theirs: [OwnedFd; DESCRIPTORS]) -> Result<Producer, OpenError> {
        let [segment, page, descriptor] = theirs;
        let doorbell = Doorbell::open(page, descriptor)?;
        let (map, _) = inspect(segment.as_fd(), Role::Consumer, Shape::WORDS_BYTES_MAX)?;
        let Own {
            map: own, shape, ..
        } = self.own;
        let bounds = Bounds::new(self.messages_max, shape.arena_bytes);
        let side = ProducerSide::new(own, &shape);
        let peer = ConsumerSide::new(map);
        Ok(Producer::new(side, peer, bounds, doorbell, self.bell))
    }
}

/// The half that will pop, before it has met the other.
#[derive(Debug)]
pub struct Incoming {
    own: Own,
    bell: Bell,
}

impl Incoming {
    /// Makes the consumer's segment. `bell` is that of whoever pops: the producer rings it when it
    /// has pushed. It may serve other edges too.
    ///
    /// # Errors
    ///
    /// As for [`Outgoing::new`].
    pub fn new(bell: &Bell) -> Result<Incoming, OpenError> {
        bell.share()?;
        let (own, _) = Own::new(Role::Consumer, Pages::Normal, Shape::returns)?;
        Ok(Incoming {
            own,
            bell: bell.clone(),
        })
    }

    /// What to pass to the other half, in this order.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; DESCRIPTORS] {
        descriptors(&self.own, &self.bell)
    }

    /// Takes what the other half passed. A segment above `segment_bytes_max` is refused.
    ///
    /// # Errors
    ///
    /// As for [`Outgoing::meet`].
    pub fn meet(
        self,
        theirs: [OwnedFd; DESCRIPTORS],
        segment_bytes_max: usize,
    ) -> Result<Consumer, OpenError> {
        let [segment, page, descriptor] = theirs;
        let doorbell = Doorbell::open(page, descriptor)?;
        let (map, shape) = inspect(segment.as_fd(), Role::Producer, segment_bytes_max as u64)?;
        if !(ARENA_BYTES_MIN..=ARENA_BYTES_MAX).contains(&shape.arena_bytes) {
            return Err(OpenError::WrongHeader {
                field: "arena_bytes",
                found: shape.arena_bytes as u64,
            });
        }
        let own = ConsumerSide::new(self.own.map);
        let bounds = Bounds::new(0, shape.arena_bytes);
        let side = Arc::new(ProducerSide::new(map, &shape));
        Ok(Consumer::new(side, own, bounds, doorbell, self.bell))
    }
}

fn descriptors<'a>(own: &'a Own, bell: &'a Bell) -> [BorrowedFd<'a>; DESCRIPTORS] {
    // Invariant: a half is made only with a bell that is shared, which stays so.
    let bell = bell.share().expect("a bell stays shared");
    [own.descriptor.as_fd(), bell.page, bell.descriptor]
}
