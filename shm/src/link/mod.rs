//! A queue of messages from one process to another, over two segments.
//!
//! The producer's segment holds the payloads, a word for each message and the
//! position up to which they are there; the consumer's holds the position up to
//! which they were taken and the part of the payloads that is still in use.
//! Each side reads the other's and writes its own only, and believes nothing
//! that it reads: a position that can't be is [`Corrupt`], and the link is dead.
//!
//! A message is written in place ([`Producer::try_claim`], fill, commit) and
//! read in place ([`Consumer::try_pop`]). A reader that keeps it takes a
//! [`Lease`]; the producer then writes around it.
//!
//! ```
//! use ringway_shm::Bell;
//! use ringway_shm::link::{Incoming, LinkConfig, Outgoing};
//! # fn pass<const N: usize>(of: [std::os::fd::BorrowedFd<'_>; N]) -> [std::os::fd::OwnedFd; N] {
//! #     of.map(|descriptor| descriptor.try_clone_to_owned().unwrap())
//! # }
//!
//! // Each in a process of its own; `pass` is what `passing` does.
//! let outgoing = Outgoing::new(&LinkConfig::default(), &Bell::descriptor()?)?;
//! let incoming = Incoming::new(&Bell::descriptor()?)?;
//! let (ours, theirs) = (pass(outgoing.descriptors()), pass(incoming.descriptors()));
//! let mut producer = outgoing.meet(theirs)?;
//! let mut consumer = incoming.meet(ours, 1 << 30)?;
//!
//! let mut claim = producer.try_claim(100)?;
//! claim.append(b"payload");
//! claim.commit(1, 7);
//! producer.flush();
//!
//! let lease = consumer.try_pop()?.lease().expect("nothing else is leased");
//! assert_eq!(lease.as_ref(), b"payload");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arena;
mod bounds;
mod claim;
#[cfg(not(loom))]
mod config;
mod consumer;
mod error;
mod leases;
mod message;
#[cfg(loom)]
mod model;
#[cfg(not(loom))]
mod open;
#[cfg(not(loom))]
mod peek;
mod placement;
mod producer;
mod side;
mod stores;
mod walk;
mod watch;
mod words;

pub use claim::Claim;
#[cfg(not(loom))]
pub use config::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, LinkConfig, MESSAGES_MAX};
pub use consumer::Consumer;
pub use error::{ClaimError, Corrupt, PopError};
pub use message::{Lease, Letter, Message};
#[cfg(loom)]
pub use model::model;
#[cfg(not(loom))]
pub use open::{Incoming, Outgoing};
#[cfg(not(loom))]
pub use peek::{Peek, Peeked};
pub use placement::Placement;
pub use producer::Producer;
pub use stores::Stores;
pub use watch::Watch;

/// How many descriptors each side passes to the other: its segment, the page of its bell, and what
/// rings it.
pub const DESCRIPTORS: usize = 3;

/// How long a message of [`Producer::push_small`] may be, in bytes, and a priority message.
pub const SMALL_BYTES_MAX: usize = 256;

/// How many small messages have room however full the link is, beside those in the room of others.
pub const SMALL_QUEUED_MAX: usize = 256;

/// The highest kind of a message; what a kind means is up to the caller.
pub const KIND_MAX: u32 = u32::MAX - 1;
