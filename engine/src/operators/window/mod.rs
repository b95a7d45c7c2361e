//! Event-time windows by key, tumbling, sliding and sessions, over typed rows and record batches.

mod aggregator;
mod assigner;
mod columnar;
mod count;
mod frontier;
mod panes;
mod session;
mod slots;
mod stage;
mod trigger;
mod typed;

pub use aggregator::{Aggregator, Count, Extreme, Mean, Sum};
pub use assigner::{WINDOWS_OF_A_ROW_MAX, Window, WindowAssigner};
pub use columnar::{WindowAggregate, WindowSpec};
pub use count::{CountResult, CountWindow};
pub use session::{KeyedSession, SessionAggregate, SessionSpec};
pub use trigger::{EveryRows, Trigger, TriggerAction, TriggeredWindow};
pub use typed::{KeyedWindow, WindowResult};
