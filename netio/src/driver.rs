//! Drivers: what moves bytes between sockets and memory, one for each thread.
//!
//! The style is that of completions: a caller asks for things to be done, polls, and finds what
//! was done in a list. A driver belongs to the thread that made it and is never shared; sockets
//! are handed to it, and can be taken back and handed to another.
//!
//! All drivers keep the same promises:
//!
//! - one send is in flight on a connection at a time, and its completion tells that all of its
//!   segments were taken by the kernel, however many short sends that took;
//! - bytes of one connection come in order, and after the last of them one
//!   [`Completion::Eof`] or [`Completion::Lost`]; a `Lost` can follow an `Eof`, when a send
//!   breaks later;
//! - a send that fails is told as `Lost` once all is read that the peer sent before; while reading
//!   is off and such bytes are there, not before it is on again;
//! - a connection that does not read lets the kernel hold the peer back;
//! - after [`Driver::close`] nothing more comes of a connection but
//!   [`Completion::Closed`], and until then every buffer given to it stays alive;
//! - dropping a driver ends what is in flight before the memory of it goes.

mod accept_error;
mod acknowledging;
mod burst;
mod chunk_pool;
mod completion;
mod epoll;
mod nonblocking;
mod open;
mod outgoing;
pub mod sim;
mod slots;
mod socket;
pub(crate) mod uring;

pub use completion::{Chunk, Completion};
pub use epoll::EpollDriver;
pub use open::{DRIVER_VARIABLE, DriverChoice, OpenError, Opened, UnknownDriver, Why, open};
pub use socket::Socket;
pub use uring::UringDriver;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;

use crate::buffer::Body;

/// Segments that one send gathers at most.
pub const SEND_SEGMENTS_MAX: usize = 64;

/// Bytes that one send gathers at most, unless its first segment alone has more.
pub const SEND_BYTES_MAX: usize = 512 << 10;

/// Bytes that come together at most, for what stands behind them to be read by itself: see
/// [`Driver::expect_tail`].
pub const TAILED_BYTES_MAX: usize = 2 << 10;

/// A connection of one driver. It stays a name of nothing once it is closed or taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A listening socket of one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListenerId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Which driver it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverKind {
    /// io_uring.
    Uring,
    /// epoll, where io_uring is denied.
    Epoll,
    /// A simulated network, for tests.
    Sim,
}

/// Moves bytes. See the [module](self) for what every driver promises.
///
/// Identifiers of connections and listeners that are closed or taken back already are ignored:
/// their last completion may still be on its way to the caller.
pub trait Driver {
    /// Which driver it is.
    fn kind(&self) -> DriverKind;

    /// Accepts on a listening socket, until [`Driver::stop_listening`].
    ///
    /// # Errors
    /// The socket cannot be used with this driver, or no memory or descriptor is left.
    fn listen(&mut self, listener: Socket) -> io::Result<ListenerId>;

    /// Stops accepting and closes the listening socket.
    fn stop_listening(&mut self, listener: ListenerId);

    /// Takes over a connected socket. It reads once it is told to.
    ///
    /// # Errors
    /// As [`Driver::listen`].
    fn attach(&mut self, socket: Socket) -> io::Result<ConnectionId>;

    /// Stops reading, and gives the socket back in [`Completion::Detached`] once nothing is in
    /// flight on it; what was read before comes first, and so does a body, as far as it is.
    fn detach(&mut self, connection: ConnectionId);

    /// Begins a send of segments from the front of `queue`, at most [`SEND_SEGMENTS_MAX`] and
    /// about [`SEND_BYTES_MAX`], and returns how many bytes that are; 0 if a send is in flight
    /// (its [`Completion::Sent`] was not polled yet), or if nothing can be sent any more.
    /// [`Completion::Sent`] follows when the kernel has all of them, or [`Completion::Lost`].
    fn send(&mut self, connection: ConnectionId, queue: &mut VecDeque<Bytes>) -> usize;

    /// Reads into chunks of the driver's pool from now on, or stops. What has been read
    /// already still comes.
    fn set_reading(&mut self, connection: ConnectionId, reads: bool);

    /// From now on the peer puts so many bytes that mean nothing behind what it sends together,
    /// where that has at most [`TAILED_BYTES_MAX`]: they are best read after the rest, in the next
    /// poll. They come in order as all others do, and [`Driver::wait`] does not wait while they
    /// are there. A peer that does otherwise loses speed, nothing else. Until this is called none
    /// are expected; a driver that always reads what there is may take no notice, as by default.
    fn expect_tail(&mut self, _connection: ConnectionId, _bytes: usize) {}

    /// Reads the rest of `body` before anything else, straight from the socket where it can: for
    /// large bodies, when the caller has used up every chunk. It is read whether reading into
    /// chunks is on or not. While the driver has it, nothing
    /// comes as [`Completion::Read`]; bytes that were under way to a chunk are put into the body
    /// and counted as copied. [`Completion::BodyProgress`] tells of bytes, [`Completion::Body`]
    /// gives it back when it is full, or when the connection is over (before `Eof` or `Lost`).
    ///
    /// # Panics
    /// If the driver has one of this connection.
    fn read_body(&mut self, connection: ConnectionId, body: Body);

    /// Ends the sending direction (FIN) once the send in flight is done.
    fn shutdown_write(&mut self, connection: ConnectionId);

    /// Ends the connection and drops its socket; [`Completion::Closed`] follows. What was done
    /// on it before and not handed out yet is dropped, also a socket that was to be given back.
    fn close(&mut self, connection: ConnectionId);

    /// Bytes that the kernel holds and the peer has not acknowledged (0: it has all), where
    /// that can be known.
    fn unacknowledged_bytes(&self, connection: ConnectionId) -> Option<usize>;

    /// Looks after the connections: a peer's host that is silent is given up in time, one whose
    /// peer does not read is waited for. Call it about every
    /// [`TEND_EVERY`](crate::net::TEND_EVERY); without it, a host that dies while bytes are on
    /// the way is noticed only after many minutes.
    fn tend(&mut self);

    /// Wakes [`Driver::wait`] when this descriptor is readable, such as that of a bell. Its
    /// count is left to its owner. At most one.
    ///
    /// # Errors
    /// The descriptor cannot be waited for.
    fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()>;

    /// Hands over what was asked for and appends what was done. Never blocks. Returns how many
    /// completions that were.
    ///
    /// # Errors
    /// The driver itself is broken: give its connections up.
    fn poll(&mut self, completions: &mut Vec<Completion>) -> io::Result<usize>;

    /// Blocks until a poll would find something, the watched descriptor is readable, or
    /// `timeout` has passed. May return for no reason.
    ///
    /// # Errors
    /// As [`Driver::poll`].
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// A descriptor that is readable when a poll would find something, for a host that waits by
    /// itself. It does not cover the watched descriptor. Poll before, and ask for it anew each
    /// time, since asking is what tells it of work that waits in the driver.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Bytes that went through one more copy than they had to.
    fn copied_bytes(&self) -> u64;
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uring => "uring",
            Self::Epoll => "epoll",
            Self::Sim => "sim",
        })
    }
}
