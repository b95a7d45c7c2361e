//! Edges over memory that two processes of one host share.
//!
//! The sender writes each batch once, into a segment of its own; the receiver maps that and uses
//! the batch where it lies (see [`wire::region`](crate::wire::region)). There is no thread and no
//! ring in between: whoever holds a half works on the segment.
//!
//! - A batch that the receiver keeps holds its room in the segment. When half of that is held,
//!   batches are copied out, so that an operator which keeps them never stops the edge.
//! - A batch that is larger than the segment takes at a time goes in pieces of fewer rows, and a
//!   row that is goes in parts, which the receiver puts together. What has no room at once goes on
//!   without the user, on the thread of the edge's connection.
//! - The connection over which the two ends have found each other stays open: when it is over,
//!   the other end is gone. What that had published is taken first.

mod entry;
mod meeting;
mod options;
mod outlet;
mod parts;
mod receiver;
mod sender;

pub(in crate::edge) use meeting::{Door, Host, Knock, Knocked, Visitor};
pub(crate) use options::is_disabled;
pub use options::{DISABLE_SHARED_VARIABLE, SharedOptions, Sharing};
pub(in crate::edge) use outlet::{Gone, Outlet};
pub(in crate::edge) use parts::region_bytes_max;
pub use receiver::Receiver;
pub(in crate::edge) use receiver::ReceiverParts;
pub use sender::Sender;
pub(in crate::edge) use sender::{Before, Order, Ordered, Place, SenderSeed, seed};

#[cfg(test)]
mod tests;
