//! The halves of an edge, awaited in the executors that people have, and polled by hand.

mod cancelled;
mod executors;
mod parts;
mod polled;
mod streams;
