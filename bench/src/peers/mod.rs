//! What people would pick instead, beside us in one run.
//!
//! Ours and the peer move the same elements, and what comes is checked in every run: how many,
//! what they add up to, and their order. A peer that is not built in, or can't run here, is
//! left out with the reason.

mod args;
#[cfg(feature = "timely")]
mod engine;
mod host;
mod process;
mod tcp;

pub use args::PeerArgs;
pub(crate) use args::take_part;

use crate::contest::Harness;
use crate::error::BenchError;

/// Measures all cases of `peers`.
///
/// # Errors
/// When an element is lost, doubled or out of order, or a process or thread cannot be started or
/// pinned.
pub(crate) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    process::measure(harness)?;
    host::measure(harness)?;
    tcp::measure(harness)?;
    #[cfg(feature = "timely")]
    engine::measure(harness)?;
    #[cfg(not(feature = "timely"))]
    for case in ["", "/rows", "/2processes"] {
        let name = format!("peers/engine/exchange{case}");
        harness.leave_out_unbuilt(&name, "timely", "timely");
    }
    Ok(())
}
