//! Aggregates over record batches: what they are, and the arrays that hold them.

mod accumulators;
mod encoding;
mod extreme;
mod hash;
mod hashed_numbers;
mod keys;
mod number_table;
mod spec;
mod store;
mod total;
mod values;

#[cfg(test)]
mod tests;

pub(crate) use accumulators::Accumulators;
pub(crate) use hash::FastHash;
pub(crate) use keys::KeyInterner;
pub use spec::{AggregateKind, AggregateSpec};
