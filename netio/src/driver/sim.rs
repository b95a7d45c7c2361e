//! A network in memory, for tests: every run of a seed is the same.
//!
//! It has no clock of its own: its user advances the time, and nothing arrives before. Reads
//! and writes are partial, what is written takes time to arrive, windows are finite, and where
//! asked for connections break. One thread is meant to use a network with all its drivers;
//! from several the order of the random choices is that of the scheduler.

mod network;
mod pipe;
mod stream;

pub use network::{SimNetwork, SimOptions};
pub use stream::{SimListener, SimStream};

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::nonblocking::Connections;
use super::slots::Slots;
use super::{Completion, ConnectionId, Driver, DriverKind, ListenerId, Socket};
use crate::buffer::Body;

/// Moves bytes within a [`SimNetwork`].
pub struct SimDriver {
    network: SimNetwork,
    connections: Connections<SimStream>,
    listeners: Slots<SimListener>,
    /// Readable when a poll would find something, as of when it was asked for.
    bell: OwnedFd,
    watched: Option<OwnedFd>,
    woken: bool,
}

impl SimDriver {
    /// A driver for sockets of this network.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(network: &SimNetwork) -> io::Result<Self> {
        Ok(Self {
            network: network.clone(),
            connections: Connections::new(),
            listeners: Slots::new(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            watched: None,
            woken: false,
        })
    }

    fn would_find(&self) -> bool {
        self.woken
            || self.connections.has_work()
            || self.connections.would_act(SimStream::readiness)
            || self.listeners.iter().any(SimListener::is_ready)
    }

    fn accept(&mut self, completions: &mut Vec<Completion>) {
        for (key, listener) in self.listeners.iter_mut() {
            while let Some(stream) = listener.accept() {
                completions.push(Completion::Accepted {
                    listener: key.into(),
                    socket: Socket::Sim(stream),
                    peer: None,
                });
            }
        }
    }

    /// Only sockets of one network can be connected with each other.
    fn check_network(&self, network: &SimNetwork) -> io::Result<()> {
        if self.network.is(network) {
            return Ok(());
        }
        let why = "a socket of another simulated network";
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

impl Driver for SimDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Sim
    }

    fn listen(&mut self, listener: Socket) -> io::Result<ListenerId> {
        let listener = SimListener::try_from(listener)?;
        self.check_network(listener.network())?;
        Ok(self.listeners.insert(listener).into())
    }

    fn stop_listening(&mut self, listener: ListenerId) {
        self.listeners.remove(listener.into());
    }

    fn attach(&mut self, socket: Socket) -> io::Result<ConnectionId> {
        let stream = SimStream::try_from(socket)?;
        self.check_network(stream.network())?;
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
        self.connections.close(connection);
    }

    fn unacknowledged_bytes(&self, connection: ConnectionId) -> Option<usize> {
        let held = self.connections.stream(connection)?.unacknowledged_bytes();
        Some(held + self.connections.unsent_bytes(connection))
    }

    /// Hosts do not die here.
    fn tend(&mut self) {}

    fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()> {
        if self.watched.is_some() {
            return Err(io::Error::other("a driver watches one descriptor at most"));
        }
        self.watched = Some(descriptor);
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> io::Result<usize> {
        let before = completions.len();
        self.connections.take_done(completions);
        if std::mem::take(&mut self.woken) {
            completions.push(Completion::Woken);
        }
        self.accept(completions);
        self.connections.handle_all(SimStream::readiness);
        self.connections.serve(completions, |connection, stream| {
            let socket = Socket::Sim(stream);
            Ok(Completion::Detached { connection, socket })
        })?;
        Ok(completions.len() - before)
    }

    /// Returns at once, whatever the timeout: time passes when the network is told.
    fn wait(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        if let Some(watched) = &self.watched {
            self.woken |= is_readable(watched)?;
        }
        Ok(())
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        // Neither can fail in a way that matters: the count of a bell that is rung at its end
        // stays readable, and one that nobody rang has nothing to take.
        let _ = if self.would_find() {
            rustix::io::write(&self.bell, &1u64.to_ne_bytes())
        } else {
            rustix::io::read(&self.bell, &mut [0; 8])
        };
        self.bell.as_fd()
    }

    fn copied_bytes(&self) -> u64 {
        0
    }
}

fn is_readable(descriptor: &OwnedFd) -> io::Result<bool> {
    let mut asked = [PollFd::new(descriptor, PollFlags::IN)];
    Ok(poll(&mut asked, Some(&Timespec::default()))? > 0)
}

#[cfg(test)]
mod tests;
