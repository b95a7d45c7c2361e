//! What costs something while nothing happens, held to limits.

mod edges;
mod first_row;
mod parked;

use std::path::Path;

use crate::contest::Harness;
use crate::error::BenchError;

/// What `idle` needs to know beside the common arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program<'a> {
    /// The `ringway` program, if it is to be started.
    pub(crate) path: &'a Path,
    /// The folder that has `flights.parquet`.
    pub(crate) data: &'a Path,
}

/// Measures all cases of `idle`. Without a program the last of them is left out.
///
/// # Errors
/// When a job fails, memory can't be read, or the program fails or prints no row.
pub(crate) fn measure(
    harness: &mut Harness,
    program: Option<Program<'_>>,
) -> Result<(), BenchError> {
    // First, while the heap has no holes that edges could fill.
    if harness.wants(edges::NAME) {
        harness.progress.say("opening edges".to_owned());
        harness.add(edges::measure(harness.settings)?);
    }
    if harness.wants(parked::NAME) {
        harness.progress.say("parking a job".to_owned());
        harness.add(parked::measure(harness.settings)?);
    }
    if let Some(program) = program.filter(|_| harness.wants(first_row::NAME)) {
        harness.progress.say("waiting for a first row".to_owned());
        harness.add(first_row::measure(harness.settings, program)?);
    }
    Ok(())
}
