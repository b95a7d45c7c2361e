//! What the negotiated form adds: the offer, its answer, and the frames that use it.

mod abort;
mod bits;
mod head;
mod hello;

pub use abort::{Ending, Reason, ReasonCode};
pub use bits::{Codec, Extensions};
pub use head::{Grant, Head, Tag};
pub use hello::{Accept, Identity, Offer};
