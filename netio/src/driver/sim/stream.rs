//! The sockets of a simulated network.

use std::io::{self, IoSlice};

use rustix::io::Errno;

use super::SimNetwork;
use crate::buffer::Body;
use crate::driver::Socket;
use crate::driver::nonblocking::{Readiness, Stream};
use crate::driver::socket::unfit;

/// One end of a simulated connection. Dropping it closes it.
#[derive(Debug)]
pub struct SimStream {
    network: SimNetwork,
    wire: u64,
    end: usize,
    /// It is closed already.
    is_over: bool,
}

/// A name under which connections of a simulated network are accepted. Dropping it ends that.
#[derive(Debug)]
pub struct SimListener {
    network: SimNetwork,
    name: String,
}

impl SimStream {
    pub(super) fn new(network: SimNetwork, wire: u64, end: usize) -> Self {
        Self {
            network,
            wire,
            end,
            is_over: false,
        }
    }

    /// Breaks the connection: the other end reads what has arrived, and then an error.
    pub fn reset(mut self) {
        self.is_over = true;
        self.network.lock().reset(self.wire, self.end);
    }

    pub(super) fn network(&self) -> &SimNetwork {
        &self.network
    }

    pub(super) fn readiness(&self) -> Readiness {
        self.network.lock().readiness(self.wire, self.end)
    }

    pub(super) fn unacknowledged_bytes(&self) -> usize {
        let mut net = self.network.lock();
        net.unacknowledged_bytes(self.wire, self.end)
    }

    fn take(&self, count: usize) -> Result<Vec<u8>, Errno> {
        self.network.lock().read(self.wire, self.end, count)
    }
}

impl SimListener {
    pub(super) fn new(network: SimNetwork, name: String) -> Self {
        Self { network, name }
    }

    pub(super) fn network(&self) -> &SimNetwork {
        &self.network
    }

    pub(super) fn is_ready(&self) -> bool {
        self.network.lock().has_call(&self.name)
    }

    pub(super) fn accept(&self) -> Option<SimStream> {
        let wire = self.network.lock().accept(&self.name)?;
        Some(SimStream::new(self.network.clone(), wire, 1))
    }
}

impl Stream for SimStream {
    fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let bytes = self.take(buffer.len())?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn read_body(&self, body: &mut Body) -> Result<(usize, usize), Errno> {
        let asked = body.remaining();
        let bytes = self.take(asked)?;
        body.extend_from_slice(&bytes);
        Ok((bytes.len(), asked))
    }

    fn write(&self, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
        self.network.lock().write(self.wire, self.end, slices)
    }

    fn has_unread(&self) -> bool {
        self.readiness().readable
    }

    fn shutdown_write(&self) -> Result<(), Errno> {
        self.network.lock().shutdown_write(self.wire, self.end)
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.network.lock().close(self.wire, self.end);
        }
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.network.lock().stop_listening(&self.name);
    }
}

impl TryFrom<Socket> for SimStream {
    type Error = io::Error;

    /// # Errors
    /// It is no simulated connection. It is closed then.
    fn try_from(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Sim(stream) => Ok(stream),
            other => Err(unfit(&other, "a simulated connection")),
        }
    }
}

impl TryFrom<Socket> for SimListener {
    type Error = io::Error;

    /// # Errors
    /// It is no simulated listening socket. It is closed then.
    fn try_from(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::SimListener(listener) => Ok(listener),
            other => Err(unfit(&other, "a simulated listening socket")),
        }
    }
}
