//! The memory of either side of a link, as words and bytes.
//!
//! The mapped memory of two processes, and under loom a stand-in on the heap
//! whose every access the model checker sees.

#[cfg(loom)]
mod heap;
#[cfg(not(loom))]
mod mapped;

#[cfg(loom)]
pub(crate) use heap::{ConsumerSide, ProducerSide};
#[cfg(not(loom))]
pub(crate) use mapped::{ConsumerSide, ProducerSide};
