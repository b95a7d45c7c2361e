//! One JSON object a line.

mod nesting;
mod numbers;
mod rows;
mod schema;
pub(super) mod sink;
pub(super) mod source;
mod times;
