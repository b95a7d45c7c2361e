//! Operators over typed rows. None of them touches Arrow.

mod filter;
mod flat_map;
mod inspect;
mod map;
mod reduce;
mod split;

pub use filter::Filter;
pub use flat_map::FlatMap;
pub use inspect::Inspect;
pub use map::Map;
pub use reduce::KeyedReduce;
pub use split::Split;
