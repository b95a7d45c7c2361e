//! What is particular to edges over shared memory: batches that stay where they are, batches and
//! rows that are too large, how the two ends meet, who is not let in, and what is left when one of
//! them is killed.
//!
//! That they are edges is in the conformance suite.

mod by_hand;
mod keeping;
mod kills;
mod large;
mod meanwhile;
mod meeting;
mod memory;
mod rig;
mod rows;
mod scenarios;
mod scribbles;
#[path = "../placement/seccomp.rs"]
#[expect(dead_code, reason = "nothing here is about io_uring")]
mod seccomp;
mod strangers;
mod users;
mod vanishing;
