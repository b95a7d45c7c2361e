//! What the suites share: the promises of an edge as functions, seeds, measuring the process.

pub mod block_on;
pub mod boxed;
pub mod columns;
pub mod conformance;
pub mod fuzzed;
pub mod process;
pub mod recordings;
pub mod scenarios;
pub mod seed;
pub mod sockets;
pub mod usage;
pub mod within;
