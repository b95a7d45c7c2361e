//! The pure half of the wire: frames, credit and sessions.
//!
//! Goal: whatever a peer sends and however it is cut, an edge delivers what was pushed, in
//! order, or fails with a reason, within its bounds. Method: two endpoints in virtual time
//! over links that split and delay; operation sequences against naive models; every split of
//! small sessions; hostile frames of a committed corpus, mutations of them, and garbage.

// A new seed comes from the clock.
#![allow(clippy::disallowed_methods)]

mod compat;
mod corpus;
mod credit_model;
mod endings;
mod ends;
mod feed;
mod filler;
mod flow;
mod frames;
mod garbage;
mod handshake;
mod link;
mod pair;
mod queue_model;
mod random_sessions;
mod seed;
mod silence;
mod splits;
