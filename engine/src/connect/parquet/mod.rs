//! Parquet files.

mod footer;
pub(super) mod sink;
pub(super) mod source;
mod types;
