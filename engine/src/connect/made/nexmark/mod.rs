//! The events of the Nexmark benchmark.

pub(in crate::connect) mod columns;
pub(in crate::connect) mod source;
