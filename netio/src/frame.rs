//! Frames: what goes over a connection, byte by byte.
//!
//! A frame is a length (four bytes, big-endian, counting all that follows), a [`Kind`] and a
//! body. [`Frame`] is the typed view of a kind and its body, [`Deframer`] finds frames in bytes
//! that come in any split, and [`encode`] writes them. The bodies of batches and schemas stay
//! opaque: the deframer hands them to its caller's buffer and never holds them itself.
//!
//! `docs/WIRE.md` has the tables of bytes.

mod body;
mod control;
mod deframe;
pub mod encode;
mod error;
mod extended;
mod fields;
mod kind;
mod view;

pub use body::BodyBuffer;
pub use control::Control;
pub use deframe::{Deframed, Deframer, Direction};
pub use error::FrameError;
pub use extended::{
    Accept, Codec, Ending, Extensions, Grant, Head, Identity, Offer, Reason, ReasonCode, Tag,
};
pub use kind::Kind;
pub use view::Frame;

/// What stands before every body: the length and the kind.
pub const HEADER_BYTES: usize = 5;

/// The longest frame that the wire allows, kind and body counted. Longer ones are refused by
/// their header.
pub const FRAME_BYTES_MAX: u32 = 256 << 20;

/// How much of a small frame's body is kept; what a newer peer appends beyond it is skipped.
pub const KEPT_BYTES_MAX: usize = 256;

/// How far memory is taken ahead of the bytes that have arrived: a peer that claims much and
/// sends little gets no more than this.
pub const AHEAD_BYTES_MAX: usize = 256 << 10;

/// The head of negotiated data frames: with the header 64 bytes, so that a body that follows
/// an aligned header is aligned as Arrow wants it.
pub const HEAD_BYTES: usize = 64 - HEADER_BYTES;

/// What negotiated frames are padded to.
pub const ALIGNMENT_BYTES: usize = 64;

/// The length of a filler, its header counted: it moves no frame off its alignment.
pub const FILLER_BYTES: usize = ALIGNMENT_BYTES;

const _: () = assert!((FRAME_BYTES_MAX as usize) > KEPT_BYTES_MAX);
const _: () = assert!(HEAD_BYTES <= KEPT_BYTES_MAX);
const _: () = assert!(AHEAD_BYTES_MAX <= FRAME_BYTES_MAX as usize);
