//! Event-time windows.

mod assigner;

pub use assigner::{Window, WindowAssigner};
