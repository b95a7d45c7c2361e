//! What keyed operators remember: a value for each key, and times at which to act.

mod by_key;
mod due;
mod first_seen;
mod keyed;
mod timers;

pub(crate) use by_key::{KeyForm, KeyMap, ManyNumbers, Numbers, Values};
pub(crate) use due::DueKeys;
pub(crate) use first_seen::{FirstSeen, Seen};
pub use keyed::KeyedState;
pub use timers::{TimerQueue, Timers};
