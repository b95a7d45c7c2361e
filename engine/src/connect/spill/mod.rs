//! What is put aside on the disk while a job runs, and read again by the same job.
//!
//! Rows are spilled as Arrow IPC streams into a folder that goes with the job. What is read
//! again is checked to be what was written, and nobody vouches for it: see
//! [`crate::wire::ipc`].

mod exchange;
mod file;
mod folder;

pub use exchange::{BlockingOptions, Spill, SpillReport, SpillSink, SpillSource};
pub use file::{SpillBudget, SpillReader, SpillWriter, SpilledFile};
pub use folder::SpillFolder;

#[cfg(test)]
mod tests;
