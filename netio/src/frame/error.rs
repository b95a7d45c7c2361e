//! What is wrong with a frame.

use super::Kind;

/// A peer broke the framing. The connection can't be read any further: where the next frame
/// begins is unknown or can't be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length of 0 leaves no room for the kind. The peer speaks another protocol, or bytes
    /// were lost.
    #[error("frame of length 0: the peer speaks another protocol, or bytes were lost")]
    Empty,
    /// The length is above the limit of this edge. Raise the limit, or let the sender split.
    #[error(
        "frame of {length_bytes} bytes is above the limit of {limit_bytes}: \
         raise the limit of this edge, or send smaller batches"
    )]
    TooLong {
        /// The length that the frame claims.
        length_bytes: u32,
        /// The most that is taken.
        limit_bytes: u32,
    },
    /// The form of rows that nobody sends any more. Upgrade the peer.
    #[error("frame of kind 0, which is no longer spoken: upgrade the peer")]
    LegacyKind,
    /// The body lacks fields that its kind has.
    #[error("{kind} frame with a body of {body_bytes} bytes, which needs {needed_bytes}")]
    Short {
        /// The kind of the frame.
        kind: Kind,
        /// How long its body is.
        body_bytes: usize,
        /// How long it must be at least.
        needed_bytes: usize,
    },
    /// The body has its length, but a field makes no sense.
    #[error("{kind} frame with {what}")]
    Malformed {
        /// The kind of the frame.
        kind: Kind,
        /// The field and its fault.
        what: &'static str,
    },
    /// The connection ended inside of a frame.
    #[error("the connection ended inside of a frame, {received_bytes} bytes after its beginning")]
    Truncated {
        /// How much of the frame arrived, its header counted.
        received_bytes: usize,
    },
}
