//! The control session of a job that runs in several processes: between process 0, which
//! leads, and each of the others.
//!
//! [`ControlSession`] is one end of one connection: it greets, keeps the connection alive, and
//! turns bytes into [`Message`]s. [`Leader`] and [`Follower`] decide what a job does in all of
//! its processes: nothing starts before everything is open everywhere, one failure ends the
//! job everywhere and is named there, and it has ended only when every process says so.
//!
//! All of it is pure: bytes, messages and the time come in, facts go out. `docs/WIRE.md` has
//! the tables of bytes.

mod decode;
mod encode;
mod error;
mod follower;
mod hello;
mod leader;
mod message;
mod session;
#[cfg(test)]
mod tests;

pub use error::ControlError;
pub use follower::{Follower, FollowerAction};
pub use hello::Hello;
pub use leader::{Leader, LeaderAction, LeaderOptions};
pub use message::{CancelCause, Fault, JobEnd, Message, ProcessEnd, StopWay};
pub use session::{ControlOptions, ControlSession};

/// The longest message: the reports of all tasks of a process fit many times over.
pub const MESSAGE_BYTES_MAX: u32 = 16 << 20;

/// The longest text in a message, in bytes; longer ones are cut.
pub const TEXT_BYTES_MAX: usize = 4096;

/// The most processes of a job.
pub const PROCESSES_MAX: usize = 1024;

const _: () = assert!(PROCESSES_MAX * (TEXT_BYTES_MAX + 2) < MESSAGE_BYTES_MAX as usize);
