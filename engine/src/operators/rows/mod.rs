//! Operators over typed rows. None of them touches Arrow.

mod co_process;
mod deduplicate;
mod filter;
mod flat_map;
mod inspect;
mod map;
mod process;
mod reduce;
mod split;
mod timestamps;
mod top;

pub use co_process::{CoProcess, CoProcessing};
pub use deduplicate::Deduplicate;
pub use filter::Filter;
pub use flat_map::FlatMap;
pub use inspect::Inspect;
pub use map::Map;
pub use process::{KeyedProcess, Process, ProcessScope, Timer};
pub use reduce::KeyedReduce;
pub use split::Split;
pub use timestamps::AssignTimestamps;
pub use top::{Ranked, TopN};
