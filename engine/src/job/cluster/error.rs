//! Why processes do not come together.

use std::time::Duration;

use ringway_netio::net::{BindError, ConnectError};

use crate::control::CancelCause;

/// Why the processes of a job do not come together. Nothing has run.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// This process cannot listen for the others.
    #[error("process 0 cannot wait for the others: {0}")]
    Bind(#[from] BindError),
    /// Processes did not come in time.
    #[error(
        "{} did not come within {} s: start it there with the same job and hosts{}",
        names.join(", "), within.as_secs(), last_refused(refused)
    )]
    Absent {
        /// Those that are missing.
        names: Vec<String>,
        /// How long was waited.
        within: Duration,
        /// Why the last one that came was not wanted, if one did.
        refused: Option<String>,
    },
    /// Process 0 cannot be reached.
    #[error("process 0 does not answer: {0}; start it there with the same job and hosts")]
    Unreachable(#[from] ConnectError),
    /// The job ended before it began, because of this.
    #[error("{0}")]
    Failed(String),
    /// Somebody cancelled the job.
    #[error("the job was cancelled before all processes were there")]
    Cancelled(CancelCause),
}

fn last_refused(reason: &Option<String>) -> String {
    reason.as_ref().map_or_else(String::new, |reason| {
        format!(" (one that came was refused: {reason})")
    })
}
