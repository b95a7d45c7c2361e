//! Watermarks: the one of a subtask with several inputs ([`WatermarkMerge`]), and the one of
//! a source ([`WatermarkStrategy`], [`WatermarkGenerator`]).
//!
//! An idle watermark says only that its stream should not hold others back. Its timestamp
//! is for information: it never enters the minimum, and no timer may fire by it.

mod generator;
mod merge;
mod min_tree;
mod split;
mod strategy;

pub use generator::WatermarkGenerator;
pub use merge::WatermarkMerge;
pub use strategy::{SplitId, WatermarkStrategy};
