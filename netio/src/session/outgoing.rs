//! What waits to be sent.

use std::collections::VecDeque;

use super::{CONTROL_ELEMENTS_MAX, CONTROL_MERGE_FROM, Refusal};
use crate::frame::{Codec, Control, Ending};

/// A batch as its sender hands it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutBatch<B> {
    /// The encoded batch: a whole Arrow IPC stream in version 1, the message without its
    /// schema in the negotiated form.
    pub body: B,
    /// The length of the body.
    pub bytes: u64,
    /// How many rows it has.
    pub rows: u32,
    /// How it is compressed.
    pub codec: Codec,
}

/// What waits to be sent, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing<B> {
    /// A control element.
    Control(Control),
    /// The schema of what follows.
    Schema {
        /// The encoded schema.
        body: B,
        /// The length of the body.
        bytes: u64,
    },
    /// A batch, whose credit is taken.
    Batch(OutBatch<B>),
    /// The end.
    Close(Ending),
}

#[derive(Debug)]
pub(super) struct Queue<B> {
    items: VecDeque<Outgoing<B>>,
    controls: usize,
    bytes: u64,
    bytes_max: u64,
}

impl<B> Queue<B> {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            items: VecDeque::new(),
            controls: 0,
            bytes: 0,
            bytes_max,
        }
    }

    /// Whether a body of this size may wait. An empty queue takes any, or one above the limit
    /// would never be sent.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.bytes == 0 || self.bytes.saturating_add(bytes) <= self.bytes_max
    }

    pub(super) fn push_control(&mut self, control: Control) -> Result<(), Refusal> {
        if self.controls >= CONTROL_MERGE_FROM
            && let Some(Outgoing::Control(last)) = self.items.back_mut()
            && let Some(merged) = last.merge(control)
        {
            *last = merged;
            return Ok(());
        }
        if self.controls >= CONTROL_ELEMENTS_MAX {
            return Err(Refusal::Full);
        }
        self.push(Outgoing::Control(control));
        Ok(())
    }

    /// Puts an element before all others, and says how many it has overtaken.
    pub(super) fn push_front(&mut self, control: Control) -> Result<usize, Refusal> {
        if self.controls >= CONTROL_ELEMENTS_MAX {
            return Err(Refusal::Full);
        }
        self.controls += 1;
        self.items.push_front(Outgoing::Control(control));
        Ok(self.items.len() - 1)
    }

    pub(super) fn push(&mut self, item: Outgoing<B>) {
        match &item {
            Outgoing::Control(_) => self.controls += 1,
            item => self.bytes += item.bytes(),
        }
        self.items.push_back(item);
    }

    pub(super) fn pop(&mut self) -> Option<Outgoing<B>> {
        let item = self.items.pop_front()?;
        match &item {
            Outgoing::Control(_) => self.controls -= 1,
            item => self.bytes -= item.bytes(),
        }
        Some(item)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Outgoing<B>> {
        self.items.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.controls = 0;
        self.bytes = 0;
    }
}

impl<B> Outgoing<B> {
    /// The length of its body, where it has one that is gathered.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Control(_) | Self::Close(_) => 0,
            Self::Schema { bytes, .. } => *bytes,
            Self::Batch(batch) => batch.bytes,
        }
    }
}
