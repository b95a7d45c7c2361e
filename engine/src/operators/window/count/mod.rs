//! Windows of so many rows of a key.

mod columnar;
mod typed;

pub use columnar::{CountAggregate, CountSpec};
pub use typed::{CountResult, CountWindow};
