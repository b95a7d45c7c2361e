//! Scripts of commands get the answers that were written down for them.
//!
//! Our own scripts always run. Where `RINGWAY_VECTORS` names a folder with recorded answers
//! of the reference implementation, those are replayed too: every answer is the recorded one,
//! except where the reference has a defect, and then an exception names it.

#[path = "../alignment_model/align_model.rs"]
mod align_model;
mod answers;
mod key_groups;
mod random_runs;
mod script;
mod union;
mod union_runs;

use ringway_tests::recordings::{read, recordings};

/// A file of recorded answers, if they are at hand.
fn recorded(name: &str) -> Option<String> {
    let path = recordings("alignment")?.join(name);
    Some(String::from_utf8(read(&path)).expect("a text"))
}
