//! What keyed operators remember: a value for each key, and times at which to act.

mod keyed;
mod timers;

pub use keyed::KeyedState;
pub use timers::{TimerQueue, Timers};
