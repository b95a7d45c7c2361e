//! Tasks stepped by hand over real edges: what a subtask is promised between two steps.

mod ending;
mod parts;
mod resuming;
mod sides;
mod timers;
mod urgent;
