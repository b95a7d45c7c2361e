//! Why an Arrow IPC message is refused.

use std::fmt::Display;

/// Why an Arrow IPC message, or the stream it is in, cannot be read. Nothing after it can be
/// read either; batches before it are good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IpcError {
    /// It breaks the format, or uses a part of the format that is not supported. Whoever wrote
    /// it has to write it otherwise.
    #[error("malformed Arrow IPC: {0}")]
    Malformed(String),

    /// It asks for more than is ever given. Write smaller batches.
    #[error("Arrow IPC: {what}: {claimed}, above the limit of {max}")]
    TooLarge {
        /// What is too large, with its unit.
        what: &'static str,
        /// How large it says it is.
        claimed: u64,
        /// How large it may be.
        max: u64,
    },

    /// The input ends within a message: its writer died, or the rest was lost.
    #[error("Arrow IPC: the input ends within {within}")]
    Truncated {
        /// Where it ends.
        within: &'static str,
    },

    /// The Arrow library refuses the values.
    #[error("malformed Arrow IPC: {0}")]
    Values(String),

    /// The Arrow library panicked: a defect, of it or of the checks before it. The message is
    /// to be kept and reported.
    #[error("the Arrow library panicked on a message that was checked: {0}")]
    Panicked(String),

    /// The input cannot be read.
    #[error("cannot be read: {0}")]
    Input(String),
}

impl IpcError {
    pub(in crate::wire) fn malformed(what: impl Display) -> Self {
        Self::Malformed(what.to_string())
    }
}

/// `claimed` as a length in memory.
///
/// # Errors
/// When it is negative or above `max`.
pub(super) fn bounded(what: &'static str, claimed: i64, max: usize) -> Result<usize, IpcError> {
    let Ok(claimed) = u64::try_from(claimed) else {
        return Err(IpcError::malformed(format_args!("{what}: {claimed}")));
    };
    match usize::try_from(claimed) {
        Ok(length) if length <= max => Ok(length),
        _ => Err(IpcError::TooLarge {
            what,
            claimed,
            max: max as u64,
        }),
    }
}
