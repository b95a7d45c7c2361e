//! Parquet files.

mod footer;
mod nesting;
pub(super) mod sink;
pub(super) mod source;
mod types;
