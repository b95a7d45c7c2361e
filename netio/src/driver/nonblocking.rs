//! Connections over calls that never block: what the drivers share that are told when a call
//! makes sense, and make it themselves.

mod connection;

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::Bytes;
use rustix::io::Errno;

use self::connection::{Connection, Next, Turn};
use super::chunk_pool::ChunkPool;
use super::slots::{Key, Slots};
use super::{Completion, ConnectionId};
use crate::buffer::Body;

/// Bytes that one poll reads at most, about; the rest waits for the next.
const POLL_BYTES_MAX: usize = 2 << 20;

/// Both directions of a connection. No call blocks: it fails with [`Errno::AGAIN`] instead.
pub(super) trait Stream {
    /// Reads to the front of `buffer`; 0 at the end.
    fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// Reads to the end of a body; how many bytes, and how many were asked for.
    fn read_body(&self, body: &mut Body) -> Result<(usize, usize), Errno>;

    /// Writes from the front of `slices`; how many bytes.
    fn write(&self, slices: &[IoSlice<'_>]) -> Result<usize, Errno>;

    /// Lets acknowledgements of what was read be put off, where there are any.
    fn acknowledge_late(&self) {}

    /// Whether bytes are there to be read.
    fn has_unread(&self) -> bool;

    /// Ends the direction that is written.
    fn shutdown_write(&self) -> Result<(), Errno>;
}

/// What a stream may be ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Readiness {
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer has ended or broken the connection: a read finds out, after the last byte.
    pub(super) hung_up: bool,
}

/// The connections of one driver.
pub(super) struct Connections<S> {
    slots: Slots<Connection<S>>,
    /// Those for which the next poll has something to do, each once.
    ready: VecDeque<Key>,
    /// Those that could read, but for a chunk.
    starved: Vec<Key>,
    /// What was done between polls.
    done: Vec<Completion>,
    pool: ChunkPool,
}

impl<S: Stream> Connections<S> {
    pub(super) fn new() -> Self {
        Self {
            slots: Slots::new(),
            ready: VecDeque::new(),
            starved: Vec::new(),
            done: Vec::new(),
            pool: ChunkPool::default(),
        }
    }

    /// The name that the next connection will have.
    pub(super) fn next_key(&self) -> Key {
        self.slots.next_key()
    }

    pub(super) fn insert(&mut self, stream: S) -> ConnectionId {
        self.slots.insert(Connection::new(stream)).into()
    }

    pub(super) fn stream(&self, connection: ConnectionId) -> Option<&S> {
        let found = self.slots.at(connection.into())?;
        Some(&found.stream)
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &S> {
        self.slots.iter().map(|connection| &connection.stream)
    }

    /// Whether the next poll has something to do whatever the streams say.
    pub(super) fn has_work(&self) -> bool {
        let fed = !self.starved.is_empty() && self.pool.has_room();
        fed || !self.ready.is_empty() || !self.done.is_empty()
    }

    /// Whether the next poll has something to do if the streams are as `readiness` says.
    pub(super) fn would_act(&self, readiness: impl Fn(&S) -> Readiness) -> bool {
        let mut all = self.slots.iter();
        all.any(|connection| connection.would_act(readiness(&connection.stream)))
    }

    pub(super) fn handle_readiness(&mut self, key: Key, readiness: Readiness) {
        if let Some(connection) = self.slots.at_mut(key) {
            connection.handle_readiness(readiness);
            self.enqueue(key);
        }
    }

    /// Asks all streams what they are ready for.
    pub(super) fn handle_all(&mut self, readiness: impl Fn(&S) -> Readiness) {
        let all: Vec<(Key, Readiness)> = self
            .slots
            .iter_mut()
            .map(|(key, connection)| (key, readiness(&connection.stream)))
            .collect();
        for (key, readiness) in all {
            self.handle_readiness(key, readiness);
        }
    }

    pub(super) fn detach(&mut self, connection: ConnectionId) {
        self.with(connection, Connection::detach);
    }

    pub(super) fn send(&mut self, connection: ConnectionId, queue: &mut VecDeque<Bytes>) -> usize {
        let mut bytes = 0;
        self.with(connection, |found| bytes = found.send(queue));
        bytes
    }

    pub(super) fn set_reading(&mut self, connection: ConnectionId, reads: bool) {
        self.with(connection, |found| found.set_reading(reads));
    }

    pub(super) fn expect_tail(&mut self, connection: ConnectionId, bytes: usize) {
        self.with(connection, |found| found.expect_tail(bytes));
    }

    pub(super) fn read_body(&mut self, connection: ConnectionId, body: Body) {
        self.with(connection, |found| found.read_body(body));
    }

    pub(super) fn shutdown_write(&mut self, connection: ConnectionId) {
        self.with(connection, Connection::shutdown_write);
    }

    /// Takes a connection out, which completes its closing.
    pub(super) fn close(&mut self, connection: ConnectionId) -> Option<S> {
        let gone = self.slots.remove(connection.into())?;
        self.done.push(Completion::Closed { connection });
        Some(gone.stream)
    }

    /// Bytes of the send in flight that the stream has not taken yet.
    pub(super) fn unsent_bytes(&self, connection: ConnectionId) -> usize {
        let found = self.slots.at(connection.into());
        found.map_or(0, Connection::unsent_bytes)
    }

    /// Tells what was done between polls.
    pub(super) fn take_done(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.done);
    }

    /// Looks at the connections that are ready now, each once. `detached` has a stream that is
    /// to be the caller's again.
    pub(super) fn serve(
        &mut self,
        completions: &mut Vec<Completion>,
        mut detached: impl FnMut(ConnectionId, S) -> io::Result<Completion>,
    ) -> io::Result<()> {
        if self.pool.has_room() {
            self.feed();
        }
        let mut turn = Turn {
            pool: &self.pool,
            completions,
            bytes_left: POLL_BYTES_MAX,
        };
        for _ in 0..self.ready.len() {
            if turn.bytes_left == 0 {
                break;
            }
            let Some(key) = self.ready.pop_front() else {
                break;
            };
            let Some(connection) = self.slots.at_mut(key) else {
                continue;
            };
            match connection.serve(key.into(), &mut turn) {
                Next::Wait => connection.dequeue(),
                Next::Again => self.ready.push_back(key),
                Next::Starved => {
                    connection.dequeue();
                    if connection.starve() {
                        self.starved.push(key);
                    }
                }
                Next::Detach => {
                    if let Some(gone) = self.slots.remove(key) {
                        turn.completions.push(detached(key.into(), gone.stream)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets those read again that wanted a chunk.
    fn feed(&mut self) {
        for key in std::mem::take(&mut self.starved) {
            if let Some(connection) = self.slots.at_mut(key) {
                connection.feed();
                self.enqueue(key);
            }
        }
    }

    /// Does what is asked with a connection, and lets the next poll look at it.
    fn with(&mut self, connection: ConnectionId, act: impl FnOnce(&mut Connection<S>)) {
        if let Some(found) = self.slots.at_mut(connection.into()) {
            act(found);
            self.enqueue(connection.into());
        }
    }

    /// Lets the next poll look at a connection.
    fn enqueue(&mut self, key: Key) {
        if let Some(connection) = self.slots.at_mut(key)
            && connection.enqueue()
        {
            self.ready.push_back(key);
        }
    }
}
