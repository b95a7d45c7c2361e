//! Sessions: one edge over one connection, seen from its sender or from its receiver.
//!
//! A session takes what the connection brings (`handle_*`) and what its user wants (`push_*`,
//! `close`, `abort`), and tells what is to be done (`poll_*`): bytes to send, a body to
//! receive, a direction to shut down, a time to be woken at. It does no I/O and reads no
//! clock. `now` is the time since any moment, the same one for the whole session.
//!
//! Both begin in version 1 of the wire. The receiver's first grant offers the negotiated form
//! in bytes that older peers ignore; a sender that answers uses it from there on, and one that
//! does not stays in version 1. What it is shows in [`Mode`].
//!
//! ```
//! use std::time::Duration;
//! use ringway_netio::frame::{Control, Ending};
//! use ringway_netio::session::{
//!     Intake, Received, ReceiverOptions, ReceiverSession, SenderOptions, SenderSession,
//! };
//!
//! let now = Duration::ZERO;
//! let mut sender = SenderSession::<Vec<u8>>::new(SenderOptions::default(), now);
//! let mut receiver = ReceiverSession::<Vec<u8>>::new(ReceiverOptions::default(), now);
//!
//! // The receiver speaks first. These bytes would go over a socket.
//! let mut backward = Vec::new();
//! receiver.poll_transmit(&mut backward);
//! sender.handle_input(now, &backward);
//!
//! sender.push_control(Control::Watermark { timestamp_ms: 1000 }).unwrap();
//! sender.close(Ending::End);
//! let mut forward = Vec::new();
//! while let Some(frame) = sender.poll_transmit(&mut forward) {
//!     assert!(frame.body.is_none(), "a batch's body would be gathered here");
//! }
//!
//! assert_eq!(receiver.handle_input(now, &mut &forward[..]), Intake::Ended);
//! let watermark = Control::Watermark { timestamp_ms: 1000 };
//! assert_eq!(receiver.poll_element(), Some(Received::Control(watermark)));
//! assert_eq!(receiver.poll_end(), Some(Ok(Ending::End)));
//!
//! backward.clear();
//! receiver.poll_transmit(&mut backward);
//! sender.handle_input(now, &backward);
//! assert!(sender.is_delivered());
//! ```

mod error;
mod inbox;
mod liveness;
mod options;
mod outgoing;
mod receiver;
mod reverse;
mod sender;

pub use error::{Refusal, Rejected, SessionError};
pub use inbox::{Batch, Received, Taken};
pub use options::{Negotiation, ReceiverOptions, SenderOptions};
pub use outgoing::{OutBatch, Outgoing};
pub use receiver::{BodyWanted, Intake, ReceiverSession};
pub use sender::{SenderSession, Transmit};

use std::time::Duration;

use crate::frame::Extensions;

/// How many control elements wait in an inbox or in a sender's queue.
pub const CONTROL_ELEMENTS_MAX: usize = 256;

/// From so many waiting control elements on, adjacent watermarks merge. Below, they are passed
/// on as they were pushed.
pub const CONTROL_MERGE_FROM: usize = CONTROL_ELEMENTS_MAX / 2;

/// How many elements wait in an inbox before reading stops.
pub const INBOX_ELEMENTS: usize = 256;

/// How long a peer may be silent inside of a frame, or owe the beginning of a negotiated
/// connection.
pub const STALLED_AFTER: Duration = Duration::from_secs(10);

/// How long a receiver in the negotiated form holds back a grant of less than a quarter of its
/// window, when its consumer has taken everything. Each grant costs a send, and the peer a
/// wake-up; only a sender with a batch that needs more than three quarters of the window waits
/// for it.
pub const LITTLE_GRANT_AFTER: Duration = Duration::from_millis(10);

/// How long an aborted connection stays open for the peer to read why.
pub const ABORT_LINGER: Duration = Duration::from_secs(1);

const _: () = assert!(CONTROL_ELEMENTS_MAX <= INBOX_ELEMENTS);
const _: () = assert!(CONTROL_MERGE_FROM < CONTROL_ELEMENTS_MAX);

/// Which form of the wire a session speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The first grant, or the answer to its offer, has not come.
    Undecided,
    /// Version 1.
    V1,
    /// The negotiated form, with these extensions.
    Negotiated(Extensions),
}

/// What is to be shut down, once all that was polled before is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangUp {
    /// The sending direction only (FIN): the peer still has something to say.
    Write,
    /// The connection.
    Both,
}
