//! What the suites share: the promises of an edge as functions, seeds, measuring the process.

pub mod block_on;
pub mod columns;
pub mod conformance;
pub mod process;
pub mod scenarios;
pub mod seed;
pub mod within;
