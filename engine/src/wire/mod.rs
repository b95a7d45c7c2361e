//! Elements as bytes.
//!
//! What comes from outside (a peer, a file) is checked before anything is allocated for it
//! and before a library looks at it.
//!
//! [`PayloadCodec`] is between a payload and record batches, [`BatchEncoder`] and
//! [`BatchDecoder`] are between record batches and the bodies of frames, and [`Pieces`] cuts
//! what is too large for one frame. Control elements are converted by [`control_of`] and
//! [`element_of`].

pub(crate) mod compact;
mod control;
mod decode;
mod encode;
pub mod ipc;
mod payload;
mod plain;
pub mod region;
mod split;

pub use control::{control_of, element_of};
pub use decode::BatchDecoder;
pub(crate) use encode::Owned;
pub use encode::{BatchEncoder, Compression, EncodeError, Encoded, EncodedBatch, Form};
pub(crate) use payload::guarded;
pub use payload::{Columns, PayloadCodec, Typed, Wired};
pub use split::Pieces;

#[cfg(test)]
mod tests;
