//! One listening socket.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::Errno;

use super::ring::{Done, Ring};
use super::token::{Operation, Token};
use crate::driver::accept_error::{Failures, Then};
use crate::driver::slots::Key;
use crate::driver::{Completion, ListenerId, Socket};

/// A listening socket, and what is under way on it.
pub(super) struct Listener {
    key: Key,
    socket: TcpListener,
    /// The operation under way: accepting, or waiting to try again.
    under_way: Option<Operation>,
    /// To be dropped, once nothing is under way.
    stopping: bool,
    failures: Failures,
}

/// What becomes of a listening socket.
pub(super) enum Next {
    Stay,
    /// Nothing is under way, and it is to be let go.
    Leave,
}

impl Listener {
    pub(super) fn new(key: Key, socket: TcpListener) -> Self {
        Self {
            key,
            socket,
            under_way: None,
            stopping: false,
            failures: Failures::default(),
        }
    }

    /// Ends what is under way. The caller hears nothing more.
    pub(super) fn stop(&mut self, ring: &mut Ring) {
        if !self.stopping
            && let Some(operation) = self.under_way
        {
            ring.cancel(Token::new(operation, self.key));
        }
        self.stopping = true;
    }

    /// Somebody was accepted, accepting has failed, or it is time to try again.
    pub(super) fn came(&mut self, came: Done, done: &mut Vec<Completion>) -> Retry {
        if !came.more {
            self.under_way = None;
        }
        let is_accept = came.token.operation == Operation::Accept;
        // Owned before anything else, or it would stay open.
        let socket = is_accept.then(|| came.accepted()).flatten();
        if self.stopping {
            return Retry::AtOnce;
        }
        let listener = self.id();
        match came.result {
            Ok(_) => {
                if let Some(socket) = socket.map(TcpStream::from) {
                    self.failures.clear();
                    done.push(Completion::Accepted {
                        listener,
                        peer: socket.peer_addr().ok(),
                        socket: Socket::Tcp(socket),
                    });
                }
            }
            Err(Errno::TIME | Errno::CANCELED) => {}
            Err(error) => match self.failures.judge(error, listener, done) {
                Then::Again => {}
                Then::Later => return Retry::Later,
                Then::Stop => self.stopping = true,
            },
        }
        Retry::AtOnce
    }

    /// Asks for what comes next.
    pub(super) fn proceed(&mut self, retry: Retry, ring: &mut Ring) -> Next {
        if self.under_way.is_none() {
            if self.stopping {
                return Next::Leave;
            }
            let operation = match retry {
                Retry::AtOnce => Operation::Accept,
                Retry::Later => Operation::Retry,
            };
            self.under_way = Some(operation);
            let token = Token::new(operation, self.key);
            match retry {
                Retry::AtOnce => ring.accept(&self.socket, token),
                Retry::Later => ring.retry_later(token),
            }
        }
        Next::Stay
    }

    fn id(&self) -> ListenerId {
        self.key.into()
    }
}

/// When to accept again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    AtOnce,
    Later,
}

impl Done {
    /// The socket that an accepting operation has brought.
    pub(super) fn accepted(&self) -> Option<OwnedFd> {
        let descriptor = i32::try_from(self.result.ok()?).ok()?;
        debug_assert_eq!(self.token.operation, Operation::Accept);
        // SAFETY: the result of an accepting operation is a new descriptor that nobody else
        // has; each such result is looked at once.
        Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}
