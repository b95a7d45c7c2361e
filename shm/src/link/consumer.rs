//! The half of a link that pops.

use core::marker::PhantomData;

use crate::bell::Bell;
use crate::doorbell::Doorbell;
use crate::link::{Corrupt, Letter, Message, Peek, PopError};
use crate::segment::{Map, Own, Shape};

/// Pops messages. It may move between threads but not be shared by them.
#[derive(Debug)]
pub struct Consumer {
    own: Own,
    theirs: Map,
    shape: Shape,
    doorbell: Doorbell,
    bell: Bell,
    gone: bool,
}

impl Consumer {
    pub(crate) fn new(own: Own, theirs: Map, shape: Shape, doorbell: Doorbell, bell: Bell) -> Self {
        Consumer {
            own,
            theirs,
            shape,
            doorbell,
            bell,
            gone: false,
        }
    }

    /// Pops the oldest message.
    ///
    /// # Errors
    ///
    /// See [`PopError`].
    pub fn try_pop(&mut self) -> Result<Message<'_>, PopError> {
        Err(PopError::Empty)
    }

    /// Looks at the queued messages before `position` without taking them; those not pushed yet
    /// are not waited for.
    pub fn peek_until(&mut self, _position: u64) -> Peek<'_> {
        Peek(PhantomData)
    }

    /// Takes the message that was pushed beside the queue.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: drop the edge.
    pub fn take_priority(&mut self) -> Result<Option<Letter>, Corrupt> {
        Ok(None)
    }

    /// The position of the message that waits beside the queue.
    ///
    /// # Errors
    ///
    /// [`Corrupt`]: drop the edge.
    pub fn peek_priority(&mut self) -> Result<Option<u64>, Corrupt> {
        Ok(None)
    }

    /// Gives the space of what was popped, and of leases that were dropped, back to the producer,
    /// and wakes it if it waits for some. To be called at the end of each step.
    pub fn flush(&mut self) {}

    /// How many messages were ever popped: the position of the next one.
    pub fn position(&self) -> u64 {
        0
    }

    /// How many messages are queued. The producer may be pushing more meanwhile.
    pub fn len(&mut self) -> usize {
        0
    }

    /// Whether nothing is queued.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// The part of the arena that leases keep from being used, in bytes: all that lies between
    /// the first and the last of them.
    pub fn leased_bytes(&self) -> usize {
        0
    }

    /// How many leases are held.
    pub fn leases(&self) -> usize {
        0
    }

    /// The size of the producer's arena.
    pub fn arena_bytes(&self) -> usize {
        self.shape.arena_bytes
    }

    /// Whether there is anything to take or to learn: the last look of a consumer that has armed
    /// its bell before it parks.
    pub fn is_ready(&mut self) -> bool {
        self.gone
    }

    /// Says that the producer's process is gone. What it has published is still popped.
    pub fn set_peer_gone(&mut self) {
        self.gone = true;
    }

    /// Whether the producer's process is known to be gone.
    pub fn is_peer_gone(&self) -> bool {
        self.gone
    }

    /// The bell that the producer rings; the owner of this half parks on it.
    pub fn consumer_bell(&self) -> &Bell {
        &self.bell
    }

    /// How many times this half woke the producer: one system call each.
    pub fn rings_total(&self) -> u64 {
        self.doorbell.rings_total()
    }
}
