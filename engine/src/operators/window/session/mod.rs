//! Windows that last as long as rows follow each other closely.

mod columnar;
mod few;
mod sessions;
mod typed;

pub use columnar::{SessionAggregate, SessionSpec};
pub use typed::KeyedSession;

#[cfg(test)]
mod tests;
