//! Threads beside the workers, for whatever may block, and the queues to and from them.

pub(crate) mod channel;
pub(super) mod reader;
pub(super) mod source;
pub(crate) mod thread;
pub(super) mod writer;
