//! The driver for hosts that deny io_uring: readiness from epoll, calls of its own.
//!
//! Sockets are registered once, edge-triggered, and what the kernel said of them is kept until
//! a call says otherwise. So turning reading on and off costs no system call, and a send is
//! tried at once, when it is asked for.

mod accept;
mod poller;
mod stream;

use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;

use self::accept::Listener;
use self::poller::{Poller, Source};
use super::nonblocking::{Connections, Readiness};
use super::slots::{Key, Slots};
use super::{Completion, ConnectionId, Driver, DriverKind, ListenerId, Socket};
use crate::buffer::Body;
use crate::net::{set_stream_options, tend_stream, unacknowledged_bytes};

/// Moves bytes with nonblocking calls, told by epoll when they make sense.
pub struct EpollDriver {
    poller: Poller,
    connections: Connections<TcpStream>,
    listeners: Slots<Listener>,
}

impl EpollDriver {
    /// A driver for the calling thread.
    ///
    /// # Errors
    /// No descriptor or memory is left: raise the limit of open files.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new()?,
            connections: Connections::new(),
            listeners: Slots::new(),
        })
    }

    fn take_events(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        for index in 0..self.poller.collect()? {
            let (source, flags) = self.poller.event(index);
            match source {
                Source::Connection(key) => {
                    self.connections
                        .handle_readiness(key, Readiness::from(flags));
                }
                Source::Listener(key) => self.accept(key, completions)?,
                Source::Retry => self.poller.retry(self.listeners.iter_mut())?,
                Source::Bell => {}
            }
        }
        Ok(())
    }

    fn accept(&mut self, key: Key, completions: &mut Vec<Completion>) -> io::Result<()> {
        let Some(listener) = self.listeners.at_mut(key) else {
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
        self.poller
            .add_connection(self.connections.next_key(), &stream)?;
        Ok(self.connections.insert(stream))
    }

    fn detach(&mut self, connection: ConnectionId) {
        self.connections.detach(connection);
    }

    fn send(&mut self, connection: ConnectionId, queue: &mut VecDeque<Bytes>) -> usize {
        self.connections.send(connection, queue)
    }

    fn set_reading(&mut self, connection: ConnectionId, reads: bool) {
        self.connections.set_reading(connection, reads);
    }

    fn expect_tail(&mut self, connection: ConnectionId, bytes: usize) {
        self.connections.expect_tail(connection, bytes);
    }

    fn read_body(&mut self, connection: ConnectionId, body: Body) {
        self.connections.read_body(connection, body);
    }

    fn shutdown_write(&mut self, connection: ConnectionId) {
        self.connections.shutdown_write(connection);
    }

    fn close(&mut self, connection: ConnectionId) {
        if let Some(stream) = self.connections.close(connection) {
            // Closing ends the registration too, unless the descriptor was duplicated before.
            let _ = self.poller.remove(&stream);
        }
    }

    fn unacknowledged_bytes(&self, connection: ConnectionId) -> Option<usize> {
        let stream = self.connections.stream(connection)?;
        let held = unacknowledged_bytes(stream).ok()?;
        Some(held + self.connections.unsent_bytes(connection))
    }

    fn tend(&mut self) {
        for stream in self.connections.streams() {
            // Where it fails the connection is broken, and is told to be.
            let _ = tend_stream(stream);
        }
    }

    fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()> {
        self.poller.watch(descriptor)
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> io::Result<usize> {
        let before = completions.len();
        self.connections.take_done(completions);
        if self.poller.take_woken() {
            completions.push(Completion::Woken);
        }
        self.take_events(completions)?;
        let poller = &self.poller;
        self.connections.serve(completions, |connection, stream| {
            poller.remove(&stream)?;
            let socket = Socket::Tcp(stream);
            Ok(Completion::Detached { connection, socket })
        })?;
        Ok(completions.len() - before)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = if self.connections.has_work() {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        self.poller.wait(timeout)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        if self.connections.has_work() {
            self.poller.ring();
        }
        self.poller.as_fd()
    }

    fn copied_bytes(&self) -> u64 {
        // A call reads what is wanted to where it is wanted: nothing is under way elsewhere.
        0
    }
}
