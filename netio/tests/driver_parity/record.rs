//! What a driver told of one connection, checked as it comes.

use std::io;

use ringway_netio::buffer::Body;
use ringway_netio::driver::Socket;

use crate::pattern;

/// The story of one connection so far.
#[derive(Default)]
pub(crate) struct Record {
    /// The stream that is expected, if bytes are checked, and from where.
    pub(crate) expected: Option<(u64, usize)>,
    /// Bytes that came, in chunks or bodies.
    pub(crate) received: usize,
    /// Bytes that came in chunks.
    pub(crate) in_chunks: usize,
    /// Bytes of completed sends.
    pub(crate) sent: usize,
    /// Completed sends.
    pub(crate) sends: usize,
    pub(crate) eof: bool,
    pub(crate) lost: Option<io::Error>,
    pub(crate) closed: bool,
    pub(crate) detached: Option<Socket>,
    /// Bodies that came back, with how many bytes of them are checked already.
    pub(crate) bodies: Vec<Body>,
    /// Bytes that progress told of the body under way.
    pub(crate) progress: usize,
    /// A close was asked for: nothing but its completion may come.
    pub(crate) closing: bool,
}

impl Record {
    pub(crate) fn handle_read(&mut self, bytes: &[u8]) {
        self.check_alive("bytes");
        assert!(!bytes.is_empty(), "an empty chunk");
        assert_eq!(self.progress, 0, "a chunk amid a body");
        self.check_bytes(bytes);
        self.in_chunks += bytes.len();
    }

    pub(crate) fn handle_progress(&mut self, bytes: usize) {
        self.check_alive("progress");
        assert!(bytes > 0, "no progress");
        self.progress += bytes;
    }

    pub(crate) fn handle_body(&mut self, bytes: usize, body: Body) {
        assert!(!self.closing && !self.closed, "a body after close");
        self.progress += bytes;
        let told = std::mem::take(&mut self.progress);
        assert_eq!(told, body.filled().len(), "progress counts every byte once");
        self.check_bytes(body.filled());
        self.bodies.push(body);
    }

    pub(crate) fn handle_sent(&mut self, bytes: usize) {
        assert!(!self.closing && !self.closed, "a send after close");
        self.sent += bytes;
        self.sends += 1;
    }

    pub(crate) fn handle_eof(&mut self) {
        self.check_alive("a second end");
        assert_eq!(self.progress, 0, "the body comes back before the end");
        self.eof = true;
    }

    pub(crate) fn handle_lost(&mut self, error: io::Error) {
        assert!(!self.closing && !self.closed, "lost after close");
        assert!(self.lost.is_none(), "lost twice: {error}");
        assert_eq!(self.progress, 0, "the body comes back before the end");
        self.lost = Some(error);
    }

    pub(crate) fn handle_detached(&mut self, socket: Socket) {
        assert!(!self.closing && !self.closed, "detached after close");
        assert!(self.detached.is_none(), "detached twice");
        self.detached = Some(socket);
    }

    pub(crate) fn handle_closed(&mut self) {
        assert!(self.closing, "closed without being asked");
        assert!(!self.closed, "closed twice");
        self.closed = true;
    }

    /// Whether the connection ended, in order or not.
    pub(crate) fn is_over(&self) -> bool {
        self.eof || self.lost.is_some()
    }

    fn check_bytes(&mut self, bytes: &[u8]) {
        if let Some((stream, from)) = self.expected {
            pattern::check(stream, from + self.received, bytes);
        }
        self.received += bytes.len();
    }

    fn check_alive(&self, what: &str) {
        assert!(!self.is_over(), "{what} after the end");
        assert!(!self.closing && !self.closed, "{what} after close");
        assert!(self.detached.is_none(), "{what} after detach");
    }
}
