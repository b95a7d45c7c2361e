//! Windows by key, over typed rows and record batches: of event time (tumbling, sliding and
//! sessions) and of so many rows.

mod aggregator;
mod assigner;
mod columnar;
mod count;
mod early;
mod frontier;
mod panes;
mod session;
mod slots;
mod stage;
mod trigger;
mod typed;

pub use aggregator::{Aggregator, Count, Extreme, Mean, Sum};
pub(crate) use assigner::Pane;
pub use assigner::{WINDOWS_OF_A_ROW_MAX, Window, WindowAssigner};
pub use columnar::{WindowAggregate, WindowSpec};
pub use count::{CountAggregate, CountResult, CountSpec, CountWindow};
pub use early::EarlyResults;
pub use session::{KeyedSession, SessionAggregate, SessionSpec};
pub use trigger::{EveryRows, Trigger, TriggerAction, TriggeredWindow};
pub use typed::{KeyedWindow, WindowResult};
