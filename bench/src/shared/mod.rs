//! Ways for messages through memory that two processes share: the link, and what else there is.
//!
//! Both processes of a case are this program. They meet at a Unix socket whose name the one tells
//! the other on its command line, and pass over it what else they need.

#[cfg(feature = "aeron")]
pub(crate) mod aeron;
#[cfg(feature = "iceoryx2")]
pub(crate) mod iceoryx;
pub(crate) mod linked;
pub(crate) mod meeting;
pub(crate) mod memfd;

use crate::error::BenchError;

/// Bytes of memory for messages that are under way, of every way: as many as an edge has.
pub(crate) const MEMORY_BYTES: usize = 4 << 20;

/// Messages under way at most.
pub(crate) const MESSAGES_MAX: usize = 1024;

/// Messages that are made visible together where they are small, as at the end of a step.
pub(crate) const PUBLISHED_TOGETHER: u64 = 16;

/// From this size on each message is worth making visible at once.
pub(crate) const LARGE_BYTES: usize = 4096;

/// The end of a way that takes messages in.
pub(crate) trait WayIn {
    /// Copies a message in, and waits for room where there is none.
    ///
    /// # Errors
    /// When the way is broken.
    fn push(&mut self, message: &[u8]) -> Result<(), BenchError>;

    /// Makes visible what was pushed.
    fn publish(&mut self);
}

/// The end of a way that gives messages out.
pub(crate) trait WayOut {
    /// Lets `read` see the next message where it lies, if there is one.
    ///
    /// # Errors
    /// When the way is broken.
    fn pop(&mut self, read: impl FnOnce(&[u8])) -> Result<bool, BenchError>;

    /// There is nothing, and whoever waits may sleep.
    ///
    /// # Errors
    /// When the wait takes too long.
    fn wait(&mut self) -> Result<(), BenchError>;
}

/// How many messages of a size are under way at most.
pub(crate) const fn messages_of(message_bytes: usize) -> usize {
    let slot_bytes = slot_bytes_of(message_bytes);
    let messages = MEMORY_BYTES / slot_bytes;
    if messages > MESSAGES_MAX {
        MESSAGES_MAX
    } else if messages < 2 {
        2
    } else {
        messages
    }
}

/// A message begins at a line of its own.
pub(crate) const fn slot_bytes_of(message_bytes: usize) -> usize {
    let bytes = message_bytes.next_multiple_of(64);
    if bytes == 0 { 64 } else { bytes }
}

/// How many messages of a size are made visible together.
pub(crate) const fn published_together(message_bytes: usize) -> u64 {
    if message_bytes < LARGE_BYTES {
        PUBLISHED_TOGETHER
    } else {
        1
    }
}
