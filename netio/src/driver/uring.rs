//! The driver over io_uring.
//!
//! One ring for the thread that made it; the kernel works for it only inside of that thread's
//! calls. Receiving is asked for once and goes on, into buffers that the kernel chooses; the
//! sends of all connections go with one call.
//!
//! What is under way is never forgotten: a thing stays in its slot, with every buffer that the
//! kernel may touch, until the last of its operations has come back, and so does the driver
//! when it is dropped.

mod chunks;
mod connection;
mod direct;
mod listener;
mod message;
mod ring;
mod self_test;
mod token;

pub(in crate::driver) use chunks::RingChunk;
pub(crate) use self_test::self_test;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::mem;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;

use self::chunks::ChunkRing;
use self::connection::Connection;
use self::direct::Direct;
use self::listener::{Listener, Retry};
use self::ring::{Done, Ring};
use self::token::{Operation, Token};
use super::slots::{Key, Slots};
use super::{Completion, ConnectionId, Driver, DriverKind, ListenerId, Socket};
use crate::buffer::Body;
use crate::net::{set_stream_options, tend_stream, unacknowledged_bytes};
use crate::probe::{self, Denial};

/// How often one poll takes what found no room in the queue of completions.
const POLL_ROUNDS_MAX: usize = 4;

/// How often an ending driver waits for what is under way, and for how long each time. A
/// cancelled operation comes back at once; only a broken kernel takes all of it.
const END_WAITS_MAX: usize = 50;
const END_WAIT: Duration = Duration::from_millis(100);

/// Moves bytes through a ring of the kernel.
///
/// It belongs to the thread that made it, and to no other:
///
/// ```compile_fail
/// fn to_another_thread<T: Send>() {}
/// to_another_thread::<ringway_netio::driver::UringDriver>();
/// ```
pub struct UringDriver {
    io: Io,
    connections: Slots<Connection>,
    listeners: Slots<Listener>,
    watched: Option<Watched>,
    /// What was done between polls.
    done: Vec<Completion>,
    /// Kept for its memory.
    batch: Vec<Done>,
}

/// What connections need to go on.
struct Io {
    ring: Ring,
    /// Made when the first connection comes.
    chunks: Option<ChunkRing>,
    /// Connections that could receive, but for a buffer.
    starved: Vec<Key>,
    /// Connections that receive no chunk until the next poll.
    held: Vec<Key>,
    /// Connections whose send went at once, which the next poll tells.
    sent: Vec<Key>,
    /// Connections that receive by calls of this thread.
    direct: Direct,
    /// Connections are few enough for calls of their own.
    is_few: bool,
    copied_bytes: u64,
    /// Sends that the kernel has only begun.
    short_sends: u64,
    settings: Settings,
}

struct Watched {
    descriptor: OwnedFd,
    armed: bool,
}

/// The sizes of a driver. Tests make them small.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    mode: Mode,
    submissions: u32,
    completions: u32,
    /// A power of two.
    chunks: u16,
    chunk_bytes: u32,
    /// Whether the kernel goes on with a send that it could only begin.
    wait_all: bool,
    /// Sends go at once, and what comes in small pieces is asked for, while there are at most so
    /// many connections.
    at_once_max: usize,
}

/// How the kernel works for a ring, from the best down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Deferred, and without an array that nobody needs. From 6.6 on.
    DeferredBare,
    /// Only inside of calls that ask for it. From 6.1 on.
    Deferred,
    /// At the end of any call. From 5.19 on.
    Cooperative,
    /// Whenever it likes.
    Plain,
}

impl UringDriver {
    /// A driver for the calling thread.
    ///
    /// # Errors
    /// io_uring is denied, lacks something, or no descriptor or memory is left: use another
    /// driver, and tell why.
    pub fn new() -> Result<Self, Denial> {
        probe::driver().usable()?;
        Self::with(Settings::default()).map_err(|error| probe::denial("io_uring_setup", &error))
    }

    pub(crate) fn with(settings: Settings) -> io::Result<Self> {
        Ok(Self {
            io: Io {
                ring: Ring::new(&settings)?,
                chunks: None,
                starved: Vec::new(),
                held: Vec::new(),
                sent: Vec::new(),
                direct: Direct::default(),
                is_few: false,
                copied_bytes: 0,
                short_sends: 0,
                settings,
            },
            connections: Slots::new(),
            listeners: Slots::new(),
            watched: None,
            done: Vec::new(),
            batch: Vec::new(),
        })
    }

    fn attach_stream(&mut self, stream: TcpStream) -> io::Result<ConnectionId> {
        // On a nonblocking socket operations would fail instead of waiting.
        stream.set_nonblocking(false)?;
        self.io.make_chunks()?;
        let key = self.connections.next_key();
        let key = self.connections.insert(Connection::new(key, stream));
        self.count();
        Ok(key.into())
    }

    /// Does what is asked with a connection, and what follows from it.
    fn with_connection(
        &mut self,
        connection: ConnectionId,
        act: impl FnOnce(&mut Connection, &mut Io, &mut Vec<Completion>),
    ) {
        let mut done = mem::take(&mut self.done);
        self.act(connection.into(), &mut done, act);
        self.done = done;
    }

    fn act(
        &mut self,
        key: Key,
        done: &mut Vec<Completion>,
        act: impl FnOnce(&mut Connection, &mut Io, &mut Vec<Completion>),
    ) {
        let Some(found) = self.connections.at_mut(key) else {
            return;
        };
        act(found, &mut self.io, done);
        if found.proceed(&mut self.io, done) == connection::Next::Leave
            && let Some(gone) = self.connections.remove(key)
        {
            gone.leave(done);
            self.count();
        }
    }

    /// Notes how many connections there are now.
    fn count(&mut self) {
        // A call for each costs less than the ring for a few connections, and more for many.
        self.io.is_few = self.connections.len() <= self.io.settings.at_once_max;
    }

    fn handle(&mut self, came: Done, done: &mut Vec<Completion>) {
        let key = came.token.key;
        match came.token.operation {
            Operation::Receive => self.act(key, done, |found, io, done| {
                found.received(came, io, done);
            }),
            Operation::Send => self.act(key, done, |found, io, done| {
                found.sent(came, io, done);
            }),
            Operation::Accept | Operation::Retry => {
                let Some(listener) = self.listeners.at_mut(key) else {
                    return;
                };
                let retry = listener.came(came, done);
                self.proceed_listener(key, retry);
            }
            Operation::Watch => {
                if let Some(watched) = &mut self.watched {
                    watched.armed = false;
                    done.push(Completion::Woken);
                }
            }
            Operation::Cancel => {}
        }
    }

    fn proceed_listener(&mut self, key: Key, retry: Retry) {
        if let Some(listener) = self.listeners.at_mut(key)
            && let listener::Next::Leave = listener.proceed(retry, &mut self.io.ring)
        {
            self.listeners.remove(key);
        }
    }

    /// Watches, unless that is under way. The one who watches has seen what came before.
    fn arm_watch(&mut self) {
        if let Some(watched) = &mut self.watched
            && !mem::replace(&mut watched.armed, true)
        {
            let token = Token::sole(Operation::Watch);
            self.io.ring.poll_readable(&watched.descriptor, token);
        }
    }

    /// Hands buffers over again, and lets those receive who waited for them.
    fn feed(&mut self, done: &mut Vec<Completion>) {
        let Some(chunks) = &mut self.io.chunks else {
            return;
        };
        chunks.recycle();
        if !self.io.starved.is_empty() && chunks.is_fed() {
            for key in mem::take(&mut self.io.starved) {
                self.act(key, done, |found, _, _| found.feed());
            }
        }
    }

    /// Lets those go on whose callers have seen the body that came.
    fn release(&mut self) {
        if self.io.held.is_empty() {
            return;
        }
        let mut held = mem::take(&mut self.io.held);
        for key in held.drain(..) {
            self.with_connection(key.into(), |found, _, _| found.release());
        }
        self.io.held = held;
    }

    /// Drops what was done on a connection and is not told. A socket that was to be given back
    /// is closed by that, which is told instead.
    fn forget(&mut self, connection: ConnectionId) {
        let mut given_back = false;
        self.done.retain(|told| {
            let is_last = matches!(told, Completion::Closed { .. });
            let is_dropped = told.connection() == Some(connection) && !is_last;
            given_back |= is_dropped && matches!(told, Completion::Detached { .. });
            !is_dropped
        });
        if given_back {
            self.done.push(Completion::Closed { connection });
        }
    }

    /// Tells of the sends that went at once.
    fn tell_sent(&mut self) {
        if self.io.sent.is_empty() {
            return;
        }
        let mut sent = mem::take(&mut self.io.sent);
        for key in sent.drain(..) {
            self.with_connection(key.into(), |found, _, done| found.tell_sent(done));
        }
        self.io.sent = sent;
    }

    /// Whether the next poll has something to do that the ring does not know of.
    fn has_work(&self) -> bool {
        let fed = || self.io.chunks.as_ref().is_some_and(ChunkRing::would_be_fed);
        let is_told = self.done.is_empty() && self.io.sent.is_empty();
        !is_told || !self.io.held.is_empty() || (!self.io.starved.is_empty() && fed())
    }

    /// Ends everything, and waits until the kernel has let go of all memory.
    fn end(&mut self) -> io::Result<()> {
        // Without a shutdown of the sockets, for the reason that closing one has.
        self.io.ring.cancel_all();
        let mut batch = mem::take(&mut self.batch);
        for _ in 0..END_WAITS_MAX {
            self.io.ring.submit()?;
            self.io.ring.reap(&mut batch);
            for came in batch.drain(..) {
                if came.token.operation == Operation::Accept {
                    drop(came.accepted());
                }
            }
            if self.io.ring.in_flight() == 0 {
                break;
            }
            self.io.ring.wait(Some(END_WAIT))?;
        }
        Ok(())
    }
}

impl Driver for UringDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Uring
    }

    fn listen(&mut self, listener: Socket) -> io::Result<ListenerId> {
        let socket = TcpListener::try_from(listener)?;
        socket.set_nonblocking(false)?;
        let key = self.listeners.next_key();
        let key = self.listeners.insert(Listener::new(key, socket));
        self.proceed_listener(key, Retry::AtOnce);
        Ok(key.into())
    }

    fn stop_listening(&mut self, listener: ListenerId) {
        let key = listener.into();
        if let Some(listener) = self.listeners.at_mut(key) {
            listener.stop(&mut self.io.ring);
            self.proceed_listener(key, Retry::AtOnce);
        }
    }

    fn attach(&mut self, socket: Socket) -> io::Result<ConnectionId> {
        let stream = TcpStream::try_from(socket)?;
        set_stream_options(&stream)?;
        self.attach_stream(stream)
    }

    fn detach(&mut self, connection: ConnectionId) {
        self.with_connection(connection, |found, _, _| found.detach());
    }

    fn send(&mut self, connection: ConnectionId, queue: &mut VecDeque<Bytes>) -> usize {
        let at_once = self.io.is_few;
        let mut bytes = 0;
        self.with_connection(connection, |found, io, done| {
            bytes = found.send(queue, at_once, io, done);
        });
        bytes
    }

    fn set_reading(&mut self, connection: ConnectionId, reads: bool) {
        self.with_connection(connection, |found, _, _| found.set_reading(reads));
    }

    fn expect_tail(&mut self, connection: ConnectionId, bytes: usize) {
        self.with_connection(connection, |found, _, _| found.expect_tail(bytes));
    }

    fn read_body(&mut self, connection: ConnectionId, body: Body) {
        self.with_connection(connection, |found, _, done| found.read_body(body, done));
    }

    fn shutdown_write(&mut self, connection: ConnectionId) {
        self.with_connection(connection, |found, _, _| found.shutdown_write());
    }

    fn close(&mut self, connection: ConnectionId) {
        self.forget(connection);
        self.with_connection(connection, |found, io, _| found.close(io));
    }

    fn unacknowledged_bytes(&self, connection: ConnectionId) -> Option<usize> {
        let found = self.connections.at(connection.into())?;
        let held = unacknowledged_bytes(&found.stream).ok()?;
        Some(held + found.unsent_bytes())
    }

    fn tend(&mut self) {
        for connection in self.connections.iter() {
            // Where it fails the connection is broken, and is told to be.
            let _ = tend_stream(&connection.stream);
        }
    }

    fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()> {
        if self.watched.is_some() {
            return Err(io::Error::other("a driver watches one descriptor at most"));
        }
        self.watched = Some(Watched {
            descriptor,
            armed: false,
        });
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> io::Result<usize> {
        let before = completions.len();
        self.release();
        self.tell_sent();
        completions.append(&mut self.done);
        self.ask(completions);
        self.feed(completions);
        self.arm_watch();
        let mut batch = mem::take(&mut self.batch);
        for _ in 0..POLL_ROUNDS_MAX {
            self.io.ring.submit()?;
            self.io.ring.reap(&mut batch);
            for came in batch.drain(..) {
                self.handle(came, completions);
            }
            if !self.io.ring.has_overflowed() {
                break;
            }
        }
        self.batch = batch;
        Ok(completions.len() - before)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.release();
        self.end_direct();
        if self.has_work() {
            return self.io.ring.submit();
        }
        self.arm_watch();
        self.io.ring.wait(timeout)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io
            .ring
            .event(self.io.direct.ask_to_end() || self.has_work())
    }

    fn copied_bytes(&self) -> u64 {
        self.io.copied_bytes
    }
}

impl Io {
    fn make_chunks(&mut self) -> io::Result<()> {
        if self.chunks.is_none() {
            let chunks = ChunkRing::new(self.settings.chunks, self.settings.chunk_bytes)?;
            self.ring.register(&chunks)?;
            self.chunks = Some(chunks);
        }
        Ok(())
    }
}

impl Drop for UringDriver {
    fn drop(&mut self) {
        // An error counts as something that is still under way.
        let ended = self.end();
        let chunks = self.io.chunks.take();
        if ended.is_ok() && self.io.ring.in_flight() == 0 {
            // Without it the kernel would look at the entries until the ring is gone, which is
            // later than its descriptor.
            if let Some(chunks) = &chunks {
                let _ = self.io.ring.unregister(chunks);
            }
            return;
        }
        // The kernel may still write to what it was given, so it keeps it.
        mem::forget(mem::replace(&mut self.connections, Slots::new()));
        if let Some(chunks) = chunks {
            chunks.leak();
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::DeferredBare,
            submissions: 256,
            completions: 4096,
            chunks: 64,
            chunk_bytes: 64 << 10,
            wait_all: true,
            at_once_max: 4,
        }
    }
}

impl Mode {
    const ALL: [Self; 4] = [
        Self::DeferredBare,
        Self::Deferred,
        Self::Cooperative,
        Self::Plain,
    ];
}

impl fmt::Debug for UringDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UringDriver")
            .field("in_flight", &self.io.ring.in_flight())
            .finish()
    }
}

#[cfg(test)]
mod tests;
