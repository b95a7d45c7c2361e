//! What is particular to edges over shared memory: batches that stay where they are, batches and
//! rows that are too large, how the two ends meet, who is not let in, and what is left when one of
//! them is killed.
//!
//! That they are edges is in the conformance suite.

mod by_hand;
mod keeping;
mod kills;
mod large;
mod meeting;
mod rig;
mod rows;
mod scenarios;
mod scribbles;
mod strangers;
mod users;
mod vanishing;
