//! Joins of two streams by key and event time, over record batches and over typed rows.
//!
//! Both take their two inputs as [`Either`](crate::batch::Either) batches, of which the gate
//! has merged the watermarks.

mod columnar;
mod columns;
mod held;
mod kind;
mod parts;
mod schema;
mod state;
mod time;
mod typed;
mod waiting;

pub use columnar::Join;
pub use kind::JoinKind;
pub use schema::JoinSpec;
pub use time::{IntervalBounds, JoinTime};
pub use typed::{KeyedJoin, LateTags};

#[cfg(test)]
mod model;
