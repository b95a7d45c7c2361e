//! Edges over connections.
//!
//! A half that a user holds is the outer end of a ring, as it is of a local edge. At the inner
//! end is a *link*: the session of the wire, and the codec. The links of one thread are its
//! [`Links`], with the driver that moves their bytes; whoever owns the thread turns them
//! between other work. So a user pushes and pops without a lock and from any thread, and
//! encoding, credit and sockets are where their thread is.
//!
//! - Elements that were accepted and not sent yet, and those that came and were not taken yet,
//!   are within [`EdgeOptions::bytes_max`](super::EdgeOptions::bytes_max) on each side.
//! - The sender is granted what the user takes, when it is taken.
//! - A stream that was finished is sent to its end, as long as its thread lives; see
//!   [`Sender::finish_and_wait`](super::Sender::finish_and_wait).
//! - The barrier of an unaligned checkpoint stays in order, or overtakes what waits at the
//!   receiver, however it was pushed: see [`RemoteOptions::overtaking`]. What waits at the
//!   sender it does not overtake.

mod connection;
mod edge_port;
mod handle;
mod handshake;
mod inflow;
mod io_thread;
mod leaving;
mod links;
mod open;
mod options;
mod outflow;
mod port;
mod reasons;
mod receiver;
mod receiver_link;
mod sender;
mod sender_link;
mod sending;
mod shared;
mod shared_receiving;
mod shared_sending;
mod sharing;
mod vigil;

pub(in crate::edge) use connection::Connection;
pub(in crate::edge) use reasons::Names;

pub use edge_port::{EdgePort, EdgePortOptions, EdgePortStats, ExpectedTwice, listen_for_edges};
pub use handle::{LinksGone, LinksHandle, LinksSeed, links, links_with};
pub use io_thread::{IoThread, spawn_links};
pub use links::Links;
pub use open::{Greeting, RemoteParts, SenderSeat, receive_over, send_later, send_over};
pub use options::RemoteOptions;
pub use port::{Expected, Incoming, listen_for_streams};
pub use receiver::Receiver;
pub use sender::{FinishError, Sender};
pub use shared::RemoteStats;

#[cfg(test)]
mod tests;
