//! Where processes come in.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use crate::control::{ControlError, ControlOptions, Hello, Leader};

use super::connection::Connection;
use super::{LINGER, wait_for};

/// Connections that have not said who they are, or are about to hear that they are not wanted.
/// More wait in the queue of the listening socket: none that is here goes for them.
const STRANGERS_MAX: usize = 64;

/// Time until it is tried again to let somebody in, where the system did not let us.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Where processes come in: whoever connects is a stranger until it has said who it is, which
/// it has some time for.
pub(super) struct Door {
    listener: TcpListener,
    strangers: Vec<Stranger>,
    /// Nobody is let in before this.
    accept_at: Duration,
    /// Why the last one that was not wanted was not.
    refused: Option<String>,
}

struct Stranger {
    connection: Connection,
    /// For one that is not wanted: when it goes, whether or not it has heard so.
    leaves_at: Option<Duration>,
}

impl Door {
    /// # Errors
    /// The socket cannot be used.
    pub(super) fn new(listener: TcpListener) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            strangers: Vec::new(),
            accept_at: Duration::ZERO,
            refused: None,
        })
    }

    /// Why the last one that was not wanted was not.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.clone()
    }

    /// The socket, for whoever comes when all are there.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub(super) fn into_listener(self) -> std::io::Result<TcpListener> {
        self.listener.set_nonblocking(false)?;
        Ok(self.listener)
    }

    /// Takes those that have come, as far as there is room.
    pub(super) fn accept(&mut self, now: Duration, own: &Hello, options: ControlOptions) {
        while self.accepts(now) {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let connection = Connection::new(stream, own.clone(), options, now);
                    self.strangers
                        .extend(connection.ok().map(|connection| Stranger {
                            connection,
                            leaves_at: None,
                        }));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What one peer has broken, or what passes by itself, such as a lack of
                // descriptors, is no end of waiting; but the socket stays ready meanwhile.
                Err(_) => self.accept_at = now + ACCEPT_AGAIN,
            }
        }
    }

    /// Those that have said who they are and are wanted.
    pub(super) fn let_in(
        &mut self,
        now: Duration,
        leader: &mut Leader,
    ) -> Vec<(Hello, Connection)> {
        let mut wanted = Vec::new();
        for mut stranger in std::mem::take(&mut self.strangers) {
            let connection = &mut stranger.connection;
            connection.poll(now);
            if stranger.leaves_at.is_none() {
                let peer = match (connection.error(), connection.peer()) {
                    (None, None) => None,
                    (None, Some(peer)) => Some(Ok(peer.clone())),
                    (Some(error), _) => Some(Err(error.clone())),
                };
                let peer = peer.map(|peer| {
                    let peer = peer?;
                    let joined = leader.handle_joined(peer.process);
                    joined.map(|()| peer).map_err(ControlError::Mismatch)
                });
                match peer {
                    None => {}
                    Some(Ok(peer)) => {
                        wanted.push((peer, stranger.connection));
                        continue;
                    }
                    Some(Err(error)) => {
                        connection.refuse(now, error.to_string());
                        self.refuse(&error);
                        let hears = matches!(error, ControlError::Mismatch(_));
                        stranger.leaves_at = Some(if hears { now + LINGER } else { now });
                    }
                }
            }
            // What it is told has to reach it before its connection goes.
            let stays = stranger.leaves_at.is_none_or(|at| now < at);
            if stays && !stranger.connection.is_over() {
                self.strangers.push(stranger);
            }
        }
        wanted
    }

    /// What to wait for.
    pub(super) fn wanted(&self, now: Duration, until: &mut Duration) -> Vec<PollFd<'_>> {
        let mut wanted = Vec::new();
        if self.accepts(now) {
            wanted.push(PollFd::new(&self.listener, PollFlags::IN));
        } else if now < self.accept_at {
            *until = self.accept_at.min(*until);
        }
        for stranger in &self.strangers {
            let is_known = stranger.leaves_at.is_some();
            wait_for(&stranger.connection, is_known, &mut wanted, until);
            *until = stranger.leaves_at.unwrap_or(*until).min(*until);
        }
        wanted
    }

    fn accepts(&self, now: Duration) -> bool {
        self.strangers.len() < STRANGERS_MAX && now >= self.accept_at
    }

    fn refuse(&mut self, error: &ControlError) {
        let reason = error.to_string();
        tracing::warn!(reason, "a process that came was refused");
        self.refused = Some(reason);
    }
}
