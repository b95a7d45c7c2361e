//! Event-time windows.

mod assigner;
mod columnar;
mod panes;
mod slots;
mod stage;

pub use assigner::{Window, WindowAssigner};
pub use columnar::{WindowAggregate, WindowSpec};
