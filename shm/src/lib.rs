//! Memory with exactly two parties.
//!
//! A [`ring`] carries values of one type from one [`Producer`] to one
//! [`Consumer`], without a lock and, as long as both are awake, without a
//! system call. A [`Bell`] lets either of them sleep and be woken by the other.
//!
//! ```
//! use ringway_shm::{Bell, PopError, PushError, ring};
//!
//! let (mut producer, mut consumer) = ring(2, Bell::thread(), Bell::thread());
//! producer.try_push("a").unwrap();
//! producer.try_push("b").unwrap();
//! assert_eq!(producer.try_push("c"), Err(PushError::Full("c")));
//!
//! assert_eq!(consumer.try_pop(), Ok("a"));
//! producer.finish();
//! assert_eq!(consumer.try_pop(), Ok("b"));
//! assert_eq!(consumer.try_pop(), Err(PopError::Finished));
//! ```
//!
//! Between two processes there is a [`link`] of bytes: each side owns a
//! [`segment`] that the other can only read, and both meet by
//! [`passing`] descriptors over a Unix stream.
//!
//! All atomics of the project, and all reasoning about memory order, are in
//! this crate. Its models run under loom: `scripts/loom`.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

mod barrier;
mod bell;
mod blocking;
mod chunk;
mod consumer;
mod doorbell;
mod error;
mod futex;
pub mod link;
pub mod passing;
mod priority;
mod producer;
mod ring;
#[cfg(not(loom))]
pub mod segment;
mod shared;
mod slots;
mod sync;
mod waker;

pub use bell::Bell;
pub use chunk::Chunk;
pub use consumer::Consumer;
pub use error::{PopError, PushError};
pub use producer::Producer;
pub use ring::ring;
