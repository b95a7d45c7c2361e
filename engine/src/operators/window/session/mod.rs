//! Windows that last as long as rows follow each other closely.

mod columnar;
mod of_key;
mod sessions;
mod typed;

pub use columnar::{SessionAggregate, SessionSpec};
pub use typed::KeyedSession;

#[cfg(test)]
mod tests;
