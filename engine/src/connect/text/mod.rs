//! Text of any format: compressed or not, line by line, with the rows that cannot be understood.

pub(super) mod bad_rows;
pub(super) mod columns;
mod counts;
pub(super) mod format;
pub(super) mod input;
pub(super) mod lines;
pub(super) mod output;
pub(super) mod reader;
pub(super) mod rows;
pub(super) mod sample;
pub(super) mod times;
pub(super) mod types;
