//! Rows of values with a delimiter between them.

mod dialect;
mod rows;
mod schema;
pub(super) mod sink;
pub(super) mod source;
