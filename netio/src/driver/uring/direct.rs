//! Receiving by calls of one's own, where small frames come to a thread that spins.
//!
//! A receive through the ring begins with the peer's processor, which queues work for this
//! thread and raises a flag; only then does this thread call the kernel, which looks whether
//! something is there, and then takes it. A thread that looks all the time anyway has a frame
//! 1.2 us sooner, of some 12 there and back, by asking for it. It asks as long as it does not
//! sleep; before it does, the ring receives again.

use std::cell::Cell;

use super::UringDriver;
use crate::driver::chunk_pool::ChunkPool;
use crate::driver::slots::Key;
use crate::driver::{Completion, slots::Slots};

/// So many small reads in a row, without a sleep between, and a connection is asked.
pub(super) const READS_MIN: u32 = 32;

/// A read of more is none of a small frame: the ring is as good then.
pub(super) const SMALL_BYTES_MAX: usize = 4 << 10;

/// So many questions in a row without an answer, and the ring receives again: some hundreds of
/// microseconds.
pub(super) const QUESTIONS_MAX: u32 = 2048;

/// The connections that are asked.
#[derive(Default)]
pub(super) struct Direct {
    pub(super) keys: Vec<Key>,
    pub(super) pool: ChunkPool,
    /// Counts the times at which the thread was about to sleep.
    pub(super) sleeps: u64,
    /// The host is about to sleep.
    is_to_end: Cell<bool>,
}

/// How the bytes of a connection come.
#[derive(Debug, Default)]
pub(super) struct Pace {
    small_reads: u32,
    questions: u32,
    /// When the last read was.
    sleeps: u64,
    is_direct: bool,
}

impl Direct {
    /// The host is about to wait for a descriptor. Returns whether it must poll before.
    pub(super) fn ask_to_end(&self) -> bool {
        let asks = !self.keys.is_empty();
        self.is_to_end.set(asks);
        asks
    }

    pub(super) fn begin(&mut self, key: Key) {
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }
}

impl Pace {
    /// Whether the connection is to be asked.
    pub(super) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// So many bytes were read. `may_ask`: connections are few.
    pub(super) fn handle_read(&mut self, bytes: usize, sleeps: u64, may_ask: bool) {
        self.questions = 0;
        let goes_on = bytes <= SMALL_BYTES_MAX && self.sleeps == sleeps;
        self.sleeps = sleeps;
        self.small_reads = if goes_on { self.small_reads + 1 } else { 0 };
        self.is_direct = may_ask && self.small_reads >= READS_MIN;
    }

    /// The connection was asked, and had nothing.
    pub(super) fn handle_nothing(&mut self) {
        self.questions += 1;
        if self.questions == QUESTIONS_MAX {
            self.end();
        }
    }

    /// The ring receives from here.
    pub(super) fn end(&mut self) {
        self.small_reads = 0;
        self.is_direct = false;
    }
}

impl UringDriver {
    /// Asks the connections that are asked, unless the thread is about to sleep.
    pub(super) fn ask(&mut self, done: &mut Vec<Completion>) {
        if self.io.direct.keys.is_empty() {
            return;
        }
        if self.io.direct.is_to_end.take() {
            return self.end_direct();
        }
        let mut keys = std::mem::take(&mut self.io.direct.keys);
        for &key in &keys {
            self.act(key, done, |found, io, done| found.ask(io, done));
        }
        keys.retain(|&key| is_asked(&self.connections, key));
        for key in std::mem::replace(&mut self.io.direct.keys, keys) {
            self.io.direct.begin(key);
        }
    }

    /// Lets the ring receive for all connections, since the thread is about to sleep.
    pub(super) fn end_direct(&mut self) {
        self.io.direct.sleeps += 1;
        for key in std::mem::take(&mut self.io.direct.keys) {
            self.with_connection(key.into(), |found, _, _| found.end_direct());
        }
    }
}

fn is_asked(connections: &Slots<super::Connection>, key: Key) -> bool {
    connections.at(key).is_some_and(super::Connection::is_asked)
}
