//! The half of a link that pushes.

use core::ops::{Deref, DerefMut};

use crate::bell::Bell;
use crate::doorbell::Doorbell;
use crate::link::config::claim_max;
use crate::link::{ClaimError, LinkConfig};
use crate::segment::{Map, Own};

/// How bytes are copied into the segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stores {
    /// By the size and the placement, whichever is faster.
    #[default]
    Auto,
    /// Through the caches.
    Plain,
    /// Past the caches.
    Streaming,
}

/// How far the core of the peer is, as its answers tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Too few answers yet.
    #[default]
    Unknown,
    /// The cores share a cache.
    Near,
    /// They don't.
    Far,
}

/// Pushes messages. It may move between threads but not be shared by them.
#[derive(Debug)]
pub struct Producer {
    own: Own,
    theirs: Map,
    doorbell: Doorbell,
    bell: Bell,
    messages_max: usize,
    gone: bool,
    stores: Stores,
}

impl Producer {
    pub(crate) fn new(
        own: Own,
        theirs: Map,
        doorbell: Doorbell,
        bell: Bell,
        messages_max: usize,
    ) -> Self {
        Producer {
            own,
            theirs,
            doorbell,
            bell,
            messages_max,
            gone: false,
            stores: Stores::Auto,
        }
    }

    /// A place for a message of up to `len` bytes, in one piece that begins at a multiple of 64.
    ///
    /// # Errors
    ///
    /// See [`ClaimError`].
    pub fn try_claim(&mut self, _len: usize) -> Result<Claim<'_>, ClaimError> {
        Err(ClaimError::PeerGone)
    }

    /// Commits a message of at most [`SMALL_BYTES_MAX`](crate::link::SMALL_BYTES_MAX) bytes, in
    /// order with the others but with room of its own.
    ///
    /// # Errors
    ///
    /// See [`ClaimError`].
    pub fn push_small(&mut self, _kind: u32, _bytes: &[u8]) -> Result<(), ClaimError> {
        Err(ClaimError::PeerGone)
    }

    /// Pushes a message beside the queue, with the position of this moment, and wakes the
    /// consumer.
    ///
    /// # Errors
    ///
    /// See [`ClaimError`]; full means that the last one was not taken yet.
    pub fn try_push_priority(&mut self, kind: u32, bytes: &[u8]) -> Result<(), ClaimError> {
        self.try_push_priority_at(kind, bytes, self.position())
    }

    /// As [`try_push_priority`](Producer::try_push_priority), with the position that it is to have.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// If the position was passed: what is queued has been pushed before this.
    pub fn try_push_priority_at(
        &mut self,
        _kind: u32,
        _bytes: &[u8],
        _position: u64,
    ) -> Result<(), ClaimError> {
        Err(ClaimError::PeerGone)
    }

    /// Publishes what was committed, and wakes the consumer if it sleeps.
    pub fn flush(&mut self) {}

    /// How many messages were ever committed: the position of the next one.
    pub fn position(&self) -> u64 {
        0
    }

    /// How many messages were committed and not popped yet.
    pub fn len(&mut self) -> usize {
        0
    }

    /// Whether nothing is queued.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// How many messages that are not small may be in flight.
    pub fn messages_max(&self) -> usize {
        self.messages_max
    }

    /// The bytes of the arena between the oldest message in flight and the next one.
    pub fn in_flight_bytes(&mut self) -> usize {
        0
    }

    /// The bytes of the largest message, see [`LinkConfig::claim_max_bytes`].
    pub fn claim_max_bytes(&self) -> usize {
        claim_max(self.arena_bytes())
    }

    /// The size of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.own.shape.arena_bytes
    }

    /// Whether a claim of `len` bytes would not be [`ClaimError::Full`]: the last look of a
    /// producer that has armed its bell before it parks.
    pub fn has_room(&mut self, _len: usize) -> bool {
        self.gone
    }

    /// Says that the consumer's process is gone.
    pub fn set_peer_gone(&mut self) {
        self.gone = true;
    }

    /// Whether the consumer's process is known to be gone.
    pub fn is_peer_gone(&self) -> bool {
        self.gone
    }

    /// Sets how bytes are copied into the segment.
    pub fn set_stores(&mut self, stores: Stores) {
        self.stores = stores;
    }

    /// How far the core of the consumer is.
    pub fn placement(&self) -> Placement {
        Placement::Unknown
    }

    /// The bell that the consumer rings; the owner of this half parks on it.
    pub fn producer_bell(&self) -> &Bell {
        &self.bell
    }

    /// How many times this half woke the consumer: one system call each.
    pub fn rings_total(&self) -> u64 {
        self.doorbell.rings_total()
    }
}

/// A place for a message. Dropping it without [`commit`](Claim::commit) leaves no trace.
#[derive(Debug)]
pub struct Claim<'a> {
    bytes: &'a mut [u8],
    appended: usize,
}

impl Claim<'_> {
    /// Copies `bytes` behind what was appended before.
    ///
    /// # Panics
    ///
    /// If they don't fit.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes[self.appended..][..bytes.len()].copy_from_slice(bytes);
        self.appended += bytes.len();
    }

    /// Appends `len` zero bytes.
    ///
    /// # Panics
    ///
    /// If they don't fit.
    pub fn append_zeroes(&mut self, len: usize) {
        self.bytes[self.appended..][..len].fill(0);
        self.appended += len;
    }

    /// How many bytes were appended.
    pub fn appended(&self) -> usize {
        self.appended
    }

    /// Makes a message of the first `len` bytes, to be published by the next flush.
    ///
    /// # Panics
    ///
    /// If that is more than was claimed, or `kind` is above [`KIND_MAX`](crate::link::KIND_MAX).
    pub fn commit(self, _kind: u32, _len: usize) {}
}

impl Deref for Claim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl DerefMut for Claim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes
    }
}

const _: fn(&LinkConfig) -> usize = LinkConfig::claim_max_bytes;
