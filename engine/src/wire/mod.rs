//! Elements as bytes.
//!
//! What comes from outside (a peer, a file) is checked before anything is allocated for it
//! and before a library looks at it.
//!
//! [`PayloadCodec`] is between a payload and record batches.

pub mod ipc;
mod payload;

pub use payload::{Columns, PayloadCodec, Typed, Wired};
