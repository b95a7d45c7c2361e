//! Credit: how much a sender may send before the receiver's consumer has taken it.
//!
//! Both sides count what was ever used against what was ever allowed, so that nothing can be
//! granted twice or lost; version 1 of the wire carries the differences, the negotiated form
//! the limits themselves. Rows are counted in both, bytes in the negotiated form only.

mod error;
mod receiver;
mod sender;

pub use error::{CreditError, Shortage};
pub use receiver::ReceiverCredit;
pub use sender::{Piece, SenderCredit};

/// What a receiver grants first in version 1, in rows.
pub const V1_WINDOW_ROWS: u32 = 2048;

/// What a receiver allows to be on the way in the negotiated form, in rows. Bytes bind first
/// for all but the smallest rows.
pub const WINDOW_ROWS: u32 = 1 << 20;

/// What a receiver allows to be on the way in the negotiated form, in bytes of bodies: all
/// that either end of an edge ever holds.
pub const WINDOW_BYTES: u64 = 64 << 20;

/// The bytes of a piece in the negotiated form: many fit the window, so that sending, reading
/// and taking overlap.
pub const PIECE_BYTES: u64 = 4 << 20;

/// A batch of more rows than the window is sent in pieces of a window divided by this. With
/// one it would wait until everything is taken; with two, one piece travels while another is
/// taken.
pub const PIECES_PER_WINDOW: u32 = 2;

const _: () = assert!(PIECES_PER_WINDOW >= 2);
const _: () = assert!(V1_WINDOW_ROWS / PIECES_PER_WINDOW == 1024);
const _: () = assert!(V1_WINDOW_ROWS <= WINDOW_ROWS);
const _: () = assert!(PIECE_BYTES * PIECES_PER_WINDOW as u64 <= WINDOW_BYTES);
// A frame of a whole window is still one that the wire allows.
const _: () = assert!(WINDOW_BYTES + 64 <= crate::frame::FRAME_BYTES_MAX as u64);
