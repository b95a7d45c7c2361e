//! The process of this program that has started this one.

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::error::BenchError;
use crate::progress::LINES;

/// Whether it is a report, of which this is a part.
pub(crate) fn is_report() -> bool {
    std::env::var_os(LINES).is_some()
}

/// From now on this ends when the thread that has started it does, however that ends.
///
/// # Errors
/// When the system has no such means.
pub(crate) fn end_with_it() -> Result<(), BenchError> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}
