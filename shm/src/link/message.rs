//! What comes out of a link.

use core::fmt;
use core::marker::PhantomData;

use crate::link::{Corrupt, SMALL_BYTES_MAX};

/// A message in place, until it is dropped or leased.
#[derive(Debug)]
pub struct Message<'a> {
    kind: u32,
    position: u64,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// What the producer committed it as.
    pub fn kind(&self) -> u32 {
        self.kind
    }

    /// How many messages were pushed before it.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The payload, at an address that is a multiple of 64. A producer that does not keep to the
    /// rules may change it at any time: what must stay valid after a check is copied first.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Keeps the payload where it is, for as long as the lease lives.
    ///
    /// # Errors
    ///
    /// Gives the message back if leases span half of the arena already, or are too many: copy it.
    pub fn lease(self) -> Result<Lease, Message<'a>> {
        Err(self)
    }
}

/// A payload that stays in place until this is dropped, by whichever thread, in whichever order,
/// also when the link is gone.
pub struct Lease {
    bytes: &'static [u8],
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self.bytes
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("len", &self.bytes.len())
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
    /// The payload.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A queued message that stays queued.
#[derive(Clone, Copy, Debug)]
pub struct Peeked<'a> {
    /// What the producer committed it as.
    pub kind: u32,
    /// How many messages were pushed before it.
    pub position: u64,
    /// The payload, as of [`Message::bytes`].
    pub bytes: &'a [u8],
}

/// The queued messages before a position, oldest first.
#[derive(Debug)]
pub struct Peek<'a>(pub(crate) PhantomData<&'a ()>);

impl<'a> Iterator for Peek<'a> {
    type Item = Result<Peeked<'a>, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}
