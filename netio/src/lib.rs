//! Bytes with one remote party, and what the kernel offers to wait for them.
//!
//! [`frame`], [`credit`] and [`session`] are the protocol, pure: they take bytes and the time,
//! and return facts. [`driver`] moves their bytes, [`net`] makes the sockets for it, and
//! [`buffer`] is where bodies arrive. Beneath is the ground that drivers stand on: [`probe`]
//! finds out whether io_uring may be used, and [`executor`] runs a worker's duty cycle beside
//! file I/O on one thread. All that needs unsafe code for it is behind safe interfaces.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod buffer;
pub mod credit;
pub mod driver;
pub mod event_wait;
pub mod executor;
pub mod frame;
pub mod net;
pub mod probe;
mod random;
pub mod session;
