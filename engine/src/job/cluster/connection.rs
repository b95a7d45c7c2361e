//! A control session over its socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::event::PollFlags;

use crate::control::{ControlError, ControlOptions, ControlSession, Hello, Message};

/// Bytes that one read takes at most.
const READ_BYTES_MAX: usize = 64 << 10;

/// Reads of one connection in a row, so that one that says much does not keep others waiting.
const READS_MAX: usize = 32;

/// Messages that wait to be looked at, beyond which nothing is read: whoever says more waits.
const WAITING_MAX: usize = 1024;

/// A control session over its socket, which never blocks.
pub(super) struct Connection {
    stream: TcpStream,
    session: ControlSession,
    unsent: Vec<u8>,
    /// The connection can be neither read nor written any more.
    over: bool,
}

impl Connection {
    /// A connection that says first who this process is.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub(super) fn new(
        stream: TcpStream,
        own: Hello,
        options: ControlOptions,
        now: Duration,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            session: ControlSession::new(own, options, now),
            unsent: Vec::new(),
            over: false,
        })
    }

    /// Reads and writes what can be, and keeps the session alive.
    pub(super) fn poll(&mut self, now: Duration) {
        self.read(now);
        self.session.handle_timeout(now);
        self.write();
    }

    /// Writes what can be, and reads nothing: what is read has to be looked at.
    pub(super) fn flush(&mut self) {
        self.write();
    }

    /// Tells the peer something; it goes with the next poll or flush.
    pub(super) fn push(&mut self, now: Duration, message: &Message) {
        self.session.push(now, message);
    }

    /// The peer is not wanted; it is told why.
    pub(super) fn refuse(&mut self, now: Duration, reason: String) {
        self.session.refuse(now, reason);
        self.write();
    }

    pub(super) fn poll_message(&mut self) -> Option<Message> {
        self.session.poll_message()
    }

    /// Whether something that was read is still to be looked at.
    pub(super) fn has_message(&self) -> bool {
        self.session.waiting() > 0
    }

    pub(super) fn peer(&self) -> Option<&Hello> {
        self.session.peer()
    }

    pub(super) fn error(&self) -> Option<&ControlError> {
        self.session.error()
    }

    /// Whether the connection has ended and all that could be sent was.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether all that was pushed is handed to the kernel.
    pub(super) fn is_flushed(&self) -> bool {
        self.unsent.is_empty() && !self.session.has_transmit()
    }

    /// Bytes that the kernel has not taken.
    #[cfg(test)]
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Says that nothing more will be said.
    pub(super) fn finish(&mut self) {
        // A peer that is gone already has nothing to learn from it.
        drop(self.stream.shutdown(std::net::Shutdown::Write));
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What to wait for.
    pub(super) fn wanted(&self) -> PollFlags {
        match (self.over, self.is_flushed()) {
            (true, _) => PollFlags::empty(),
            (false, true) => PollFlags::IN,
            (false, false) => PollFlags::IN | PollFlags::OUT,
        }
    }

    /// When to poll again though nothing came.
    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.session.poll_timeout()
    }

    fn read(&mut self, now: Duration) {
        let mut bytes = [0; READ_BYTES_MAX];
        for _ in 0..READS_MAX {
            if self.over || self.session.waiting() >= WAITING_MAX {
                return;
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    self.session.handle_eof();
                    self.over = true;
                }
                Ok(read) => self.session.handle_input(now, &bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.lose(&error),
            }
        }
    }

    fn write(&mut self) {
        self.session.poll_transmit(&mut self.unsent);
        let mut sent = 0;
        while sent < self.unsent.len() && !self.over {
            match self.stream.write(&self.unsent[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.lose(&error),
            }
        }
        self.unsent.drain(..sent);
        if self.over {
            self.unsent.clear();
        }
    }

    /// A reset is what a process that died leaves behind, as an end is.
    fn lose(&mut self, error: &io::Error) {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => self.session.handle_eof(),
            _ => self.session.handle_lost(error.to_string()),
        }
        self.over = true;
    }
}
