//! Looking at queued messages.

use core::slice;

use crate::link::Corrupt;
use crate::link::consumer::Consumer;
use crate::link::walk::Walk;

/// A queued message that stays queued.
#[derive(Clone, Copy, Debug)]
pub struct Peeked<'a> {
    /// What the producer committed it as.
    pub kind: u32,
    /// How many messages were pushed before it.
    pub position: u64,
    /// The payload, as of [`Message::bytes`](crate::link::Message::bytes).
    pub bytes: &'a [u8],
}

/// The queued messages before a position, oldest first, from
/// [`Consumer::peek_until`]. An error is the last that comes.
#[derive(Debug)]
pub struct Peek<'a> {
    consumer: &'a mut Consumer,
    walk: Walk,
    until: u64,
    failed: Option<Corrupt>,
}

impl<'a> Peek<'a> {
    pub(crate) fn new(consumer: &'a mut Consumer, until: u64, failed: Option<Corrupt>) -> Self {
        Peek {
            walk: consumer.walk,
            consumer,
            until,
            failed,
        }
    }
}

impl<'a> Iterator for Peek<'a> {
    type Item = Result<Peeked<'a>, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(corrupt) = self.failed.take() {
            self.until = 0;
            return Some(Err(corrupt));
        }
        if self.walk.message >= self.until || self.walk.slot == self.consumer.tail {
            return None;
        }
        let limits = self.consumer.limits();
        match self.walk.step(&self.consumer.side, &limits) {
            Ok(found) => {
                let at = self.consumer.side.at(found.offset, found.len);
                Some(Ok(Peeked {
                    kind: found.kind,
                    position: found.position,
                    // SAFETY: it was published, and its space can't be given back while the
                    // consumer is borrowed for as long as the bytes are.
                    bytes: unsafe { slice::from_raw_parts(at.as_ptr().cast(), found.len) },
                }))
            }
            Err(corrupt) => {
                self.until = 0;
                Some(Err(self.consumer.die(corrupt)))
            }
        }
    }
}
