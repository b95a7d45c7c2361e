//! Accepting.

use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

use crate::driver::accept_error::{Failures, Then};
use crate::driver::{Completion, ListenerId, Socket};

/// Connections that one poll accepts of a listener; the rest waits in its queue.
const ACCEPTS_MAX: usize = 64;

pub(super) struct Listener {
    pub(super) socket: TcpListener,
    /// It is looked away from, until descriptors or memory may be there again.
    pub(super) delayed: bool,
    failures: Failures,
}

/// What a listener waits for.
pub(super) enum Next {
    /// A connection.
    Wait,
    /// Descriptors or memory.
    Delay,
    /// Nothing: it is broken.
    Stop,
}

impl Listener {
    pub(super) fn new(socket: TcpListener) -> Self {
        Self {
            socket,
            delayed: false,
            failures: Failures::default(),
        }
    }

    /// Accepts who is there.
    pub(super) fn accept(
        &mut self,
        listener: ListenerId,
        completions: &mut Vec<Completion>,
    ) -> Next {
        for _ in 0..ACCEPTS_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match acceptfrom_with(&self.socket, flags) {
                Ok((socket, peer)) => {
                    self.failures.clear();
                    completions.push(Completion::Accepted {
                        listener,
                        socket: Socket::Tcp(TcpStream::from(socket)),
                        peer: peer.and_then(|peer| SocketAddr::try_from(peer).ok()),
                    });
                }
                Err(Errno::AGAIN) => return Next::Wait,
                Err(error) => match self.failures.judge(error, listener, completions) {
                    Then::Again => {}
                    Then::Later => return Next::Delay,
                    Then::Stop => return Next::Stop,
                },
            }
        }
        Next::Wait
    }
}
