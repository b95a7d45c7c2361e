//! The driver for hosts that deny io_uring: readiness from epoll, calls of its own.
//!
//! Sockets are registered once, edge-triggered, and what the kernel said of them is kept until
//! a call says otherwise. So turning reading on and off costs no system call, and a send is
//! tried at once, when it is asked for.

mod accept;
mod connection;
mod poller;

use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;

use self::accept::Listener;
use self::connection::{Connection, Next, Turn};
use self::poller::{Poller, Source};
use super::pool::ChunkPool;
use super::slots::{Key, Slots};
use super::{Completion, ConnectionId, Driver, DriverKind, ListenerId, Socket};
use crate::buffer::Body;
use crate::net::{set_stream_options, unacknowledged_bytes};

/// Bytes that one poll reads at most, about; the rest waits for the next.
const POLL_BYTES_MAX: usize = 2 << 20;

/// Moves bytes with nonblocking calls, told by epoll when they make sense.
pub struct EpollDriver {
    poller: Poller,
    connections: Slots<Connection>,
    listeners: Slots<Listener>,
    /// Connections for which the next poll has something to do, each once.
    ready: VecDeque<Key>,
    /// Connections that could read, but for a chunk.
    starved: Vec<Key>,
    /// What was done between polls.
    done: Vec<Completion>,
    pool: ChunkPool,
}

impl EpollDriver {
    /// A driver for the calling thread.
    ///
    /// # Errors
    /// No descriptor or memory is left: raise the limit of open files.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new()?,
            connections: Slots::new(),
            listeners: Slots::new(),
            ready: VecDeque::new(),
            starved: Vec::new(),
            done: Vec::new(),
            pool: ChunkPool::default(),
        })
    }

    /// Whether the next poll has something to do that no descriptor tells of.
    fn has_work(&self) -> bool {
        let fed = !self.starved.is_empty() && self.pool.has_room();
        fed || !self.ready.is_empty() || !self.done.is_empty()
    }

    /// Lets the next poll look at a connection.
    fn enqueue(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key)
            && connection.enqueue()
        {
            self.ready.push_back(key);
        }
    }

    /// Does what is asked with a connection, and lets the next poll look at it.
    fn with(&mut self, connection: ConnectionId, act: impl FnOnce(&mut Connection)) {
        if let Some(found) = self.connections.get_mut(connection.into()) {
            act(found);
            self.enqueue(connection.into());
        }
    }

    fn take_events(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        for index in 0..self.poller.collect()? {
            let (source, flags) = self.poller.event(index);
            match source {
                Source::Connection(key) => {
                    if let Some(connection) = self.connections.get_mut(key) {
                        connection.handle_event(flags);
                        self.enqueue(key);
                    }
                }
                Source::Listener(key) => self.accept(key, completions)?,
                Source::Retry => self.poller.retry(self.listeners.iter_mut())?,
                Source::Bell => {}
            }
        }
        Ok(())
    }

    fn accept(&mut self, key: Key, completions: &mut Vec<Completion>) -> io::Result<()> {
        let Some(listener) = self.listeners.get_mut(key) else {
            return Ok(());
        };
        match listener.accept(key.into(), completions) {
            accept::Next::Wait => Ok(()),
            accept::Next::Delay => self.poller.delay(key, listener),
            accept::Next::Stop => {
                self.stop_listening(key.into());
                Ok(())
            }
        }
    }

    /// Looks at the connections that are ready now, each once.
    fn serve(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        if self.pool.has_room() {
            self.ready.extend(self.starved.drain(..));
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
            let Some(connection) = self.connections.get_mut(key) else {
                continue;
            };
            match connection.serve(key.into(), &mut turn) {
                Next::Wait => connection.dequeue(),
                Next::Again => self.ready.push_back(key),
                Next::Starved => self.starved.push(key),
                Next::Detach => {
                    if let Some(gone) = self.connections.remove(key) {
                        self.poller.remove(&gone.stream)?;
                        turn.completions.push(Completion::Detached {
                            connection: key.into(),
                            socket: Socket::Tcp(gone.stream),
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

impl Driver for EpollDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Epoll
    }

    fn listen(&mut self, listener: Socket) -> io::Result<ListenerId> {
        let listener = TcpListener::try_from(listener)?;
        listener.set_nonblocking(true)?;
        let key = self.listeners.next_key();
        self.poller.add_listener(key, &listener)?;
        Ok(self.listeners.insert(Listener::new(listener)).into())
    }

    fn stop_listening(&mut self, listener: ListenerId) {
        if let Some(gone) = self.listeners.remove(listener.into()) {
            // It is registered; were it not, nothing would be left to undo.
            let _ = self.poller.remove(&gone.socket);
        }
    }

    fn attach(&mut self, socket: Socket) -> io::Result<ConnectionId> {
        let stream = TcpStream::try_from(socket)?;
        stream.set_nonblocking(true)?;
        set_stream_options(&stream)?;
        let key = self.connections.next_key();
        self.poller.add_connection(key, &stream)?;
        Ok(self.connections.insert(Connection::new(stream)).into())
    }

    fn detach(&mut self, connection: ConnectionId) {
        self.with(connection, Connection::detach);
    }

    fn send(&mut self, connection: ConnectionId, queue: &mut VecDeque<Bytes>) -> usize {
        let mut bytes = 0;
        self.with(connection, |found| bytes = found.send(queue));
        bytes
    }

    fn set_reading(&mut self, connection: ConnectionId, reads: bool) {
        self.with(connection, |found| found.set_reading(reads));
    }

    fn read_body(&mut self, connection: ConnectionId, body: Body) {
        self.with(connection, |found| found.read_body(body));
    }

    fn shutdown_write(&mut self, connection: ConnectionId) {
        self.with(connection, Connection::shutdown_write);
    }

    fn close(&mut self, connection: ConnectionId) {
        if let Some(gone) = self.connections.remove(connection.into()) {
            // Closing ends the registration too, unless the descriptor was duplicated before.
            let _ = self.poller.remove(&gone.stream);
            self.done.push(Completion::Closed { connection });
        }
    }

    fn unacknowledged_bytes(&self, connection: ConnectionId) -> Option<usize> {
        let found = self.connections.get(connection.into())?;
        let held = unacknowledged_bytes(&found.stream).ok()?;
        Some(held + found.unsent_bytes())
    }

    fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()> {
        self.poller.watch(descriptor)
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> io::Result<usize> {
        let before = completions.len();
        completions.append(&mut self.done);
        if self.poller.take_woken() {
            completions.push(Completion::Woken);
        }
        self.take_events(completions)?;
        self.serve(completions)?;
        Ok(completions.len() - before)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = if self.has_work() {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        self.poller.wait(timeout)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        if self.has_work() {
            self.poller.ring();
        }
        self.poller.as_fd()
    }

    fn copied_bytes(&self) -> u64 {
        // A call reads what is wanted to where it is wanted: nothing is under way elsewhere.
        0
    }
}
