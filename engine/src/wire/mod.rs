//! Elements as bytes.
//!
//! What comes from outside (a peer, a file) is checked before anything is allocated for it
//! and before a library looks at it.

pub mod ipc;
