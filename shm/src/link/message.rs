//! What comes out of a link.

use core::fmt;

use crate::link::consumer::Consumer;
use crate::link::leases::Returns;
use crate::link::walk::Found;
use crate::link::words::LetterWords;
use crate::link::{Corrupt, SMALL_BYTES_MAX};
use crate::sync::Arc;

/// A message in place, until it is dropped or leased.
#[must_use = "the message was taken from the queue"]
pub struct Message<'a> {
    consumer: &'a mut Consumer,
    found: Found,
    /// The model checker is shown the accesses when the message is popped.
    #[cfg(loom)]
    bytes: Vec<u8>,
}

impl<'a> Message<'a> {
    #[inline]
    pub(crate) fn new(consumer: &'a mut Consumer, found: Found) -> Message<'a> {
        Message {
            #[cfg(loom)]
            bytes: consumer.side.read(found.offset, found.len),
            consumer,
            found,
        }
    }

    /// What the producer committed it as.
    #[inline]
    pub fn kind(&self) -> u32 {
        self.found.kind
    }

    /// How many messages were pushed before it.
    #[inline]
    pub fn position(&self) -> u64 {
        self.found.position
    }

    /// The payload, at an address that is a multiple of 64. A producer that does not keep to the
    /// rules may change it at any time: what must stay valid after a check is copied first.
    #[cfg(not(loom))]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let Found { offset, len, .. } = self.found;
        // SAFETY: it was published, and its space is given back with a later call to the
        // consumer, which this message borrows.
        unsafe { self.consumer.side.bytes(offset, len) }
    }

    /// The payload.
    #[cfg(loom)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps the payload where it is, for as long as the lease lives.
    ///
    /// # Errors
    ///
    /// Gives the message back if leases would span more than half of the arena, or are too many
    /// (1024): copy it.
    pub fn lease(self) -> Result<Lease, Message<'a>> {
        let Found { offset, len, .. } = self.found;
        let Some(mark) = self.consumer.leases.hold(offset, len) else {
            return Err(self);
        };
        Ok(Lease {
            offset,
            len,
            returns: self.consumer.leases.returns().clone(),
            mark,
        })
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("kind", &self.kind())
            .field("position", &self.position())
            .field("len", &self.found.len)
            .finish_non_exhaustive()
    }
}

/// A payload that stays in place until this is dropped, by whichever thread, in whichever order,
/// also when the link is gone. The space is given back by the consumer's next pop or flush after
/// that; until then the producer writes around it.
pub struct Lease {
    offset: usize,
    len: usize,
    returns: Arc<Returns>,
    mark: u32,
}

const _: () = {
    const fn is_send_and_sync<L: Send + Sync>() {}
    is_send_and_sync::<Lease>();
};

#[cfg(loom)]
impl Lease {
    /// Copies the payload, as an access that the model checker sees.
    pub fn read(&self) -> Vec<u8> {
        self.returns.side.read(self.offset, self.len)
    }
}

#[cfg(not(loom))]
impl AsRef<[u8]> for Lease {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: it was published, and the consumer does not give the space back before this is
        // dropped.
        unsafe { self.returns.side.bytes(self.offset, self.len) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.returns.give_back(self.mark);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// The message beside the queue, copied out.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    /// What the producer pushed it as.
    pub kind: u32,
    /// The messages from this position on were pushed after it.
    pub position: u64,
    len: usize,
    bytes: [u8; SMALL_BYTES_MAX],
}

impl Letter {
    pub(crate) fn read(words: &LetterWords) -> Result<Letter, Corrupt> {
        let mut bytes = [0; SMALL_BYTES_MAX];
        let (kind, len) = words.read(&mut bytes)?;
        Ok(Letter {
            kind,
            position: words.position(),
            len,
            bytes,
        })
    }

    /// The payload.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
