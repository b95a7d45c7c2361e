//! What has come and waits to be taken.

use std::collections::VecDeque;

use super::CONTROL_MERGE_FROM;
use crate::frame::{Codec, Control};

/// An element that has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<B> {
    /// A control element.
    Control(Control),
    /// The schema of the batches that follow (negotiated form only). A new one replaces it.
    Schema(B),
    /// A batch.
    Batch(Batch<B>),
}

/// A batch that has come.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch<B> {
    /// The encoded batch, with its schema in version 1, without one in the negotiated form.
    pub body: B,
    /// How it is compressed, as far as its frame says.
    pub codec: Codec,
    /// What its sender gets back once the consumer has it.
    pub taken: Taken,
}

/// The credit of a batch that was taken out of a session. Hand it back with the number of
/// decoded rows: until then the sender is not granted what the batch took.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the sender waits for this credit"]
pub struct Taken {
    pub(super) declared: Option<u32>,
    pub(super) bytes: u64,
}

impl Taken {
    /// The rows that the frame declares, if it or its reader did.
    pub fn rows(&self) -> Option<u32> {
        self.declared
    }

    /// The length of the body.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<B> Received<B> {
    fn is_unaligned_barrier(&self) -> bool {
        matches!(self, Self::Control(control) if control.is_unaligned_barrier())
    }
}

#[derive(Debug)]
pub(super) struct Inbox<B> {
    items: VecDeque<(Received<B>, u64)>,
    bytes: u64,
    /// How many barriers wait that may overtake.
    unaligned: usize,
    elements_max: usize,
    bytes_max: u64,
}

impl<B> Inbox<B> {
    pub(super) fn new(elements_max: usize, bytes_max: u64) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            unaligned: 0,
            elements_max,
            bytes_max,
        }
    }

    /// Whether a frame may be begun.
    pub(super) fn has_room(&self) -> bool {
        self.items.len() < self.elements_max
    }

    /// Whether a body of this size may be begun. An empty inbox takes any that its header
    /// admits.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        self.bytes == 0 || self.bytes.saturating_add(bytes) <= self.bytes_max
    }

    pub(super) fn push_control(&mut self, control: Control) {
        if self.items.len() >= CONTROL_MERGE_FROM.min(self.elements_max)
            && let Some((Received::Control(last), _)) = self.items.back_mut()
            && let Some(merged) = last.merge(control)
        {
            *last = merged;
            return;
        }
        self.push(Received::Control(control), 0);
    }

    pub(super) fn push(&mut self, received: Received<B>, bytes: u64) {
        self.bytes += bytes;
        self.unaligned += usize::from(received.is_unaligned_barrier());
        self.items.push_back((received, bytes));
    }

    pub(super) fn pop(&mut self) -> Option<(Received<B>, u64)> {
        let (received, bytes) = self.items.pop_front()?;
        self.bytes -= bytes;
        self.unaligned -= usize::from(received.is_unaligned_barrier());
        Some((received, bytes))
    }

    /// Takes the first barrier that may overtake, with how many elements are before it.
    pub(super) fn take_unaligned(&mut self) -> Option<(Control, usize)> {
        if self.unaligned == 0 {
            return None;
        }
        let is_one = |(received, _): &(Received<B>, u64)| received.is_unaligned_barrier();
        let at = self.items.iter().position(is_one)?;
        match self.items.remove(at) {
            Some((Received::Control(control), _)) => {
                self.unaligned -= 1;
                Some((control, at))
            }
            _ => None,
        }
    }

    /// Whether a barrier waits that may overtake.
    pub(super) fn has_unaligned(&self) -> bool {
        self.unaligned > 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Received<B>> {
        self.items.iter().map(|(received, _)| received)
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.bytes = 0;
        self.unaligned = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
