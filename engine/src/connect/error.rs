//! Why a connector cannot be built, or cannot go on.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// What went wrong in a connector, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// A pattern matches no file. Correct the pattern, or put the files there.
    #[error(
        "no file matches {pattern}: correct the path, or create the file before the job starts"
    )]
    NoMatch {
        /// The pattern, as it was resolved.
        pattern: String,
    },

    /// An option has a value that cannot be used. Correct the option.
    #[error("option `{option}`: {reason}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// What is wrong with its value.
        reason: String,
    },

    /// A file or folder cannot be used. The reason says what to do.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A row of a text file cannot be understood. Correct the row, or set `on_error = "skip"`.
    #[error("{}:{line}: {reason}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },

    /// What a checkpoint says is not what this source saved. Restore it with the job, and the
    /// version of Ringway, that saved it.
    #[error(
        "the state is not that of this source ({reason}): restore it with the job that saved it"
    )]
    State {
        /// What is wrong with it.
        reason: String,
    },

    /// The source cannot go on where it stopped: what it read cannot be had again. Start the job
    /// anew.
    #[error("{what} cannot go on where it stopped: {reason}; start the job anew")]
    NoResume {
        /// What was read.
        what: String,
        /// Why it cannot be read again.
        reason: &'static str,
    },

    /// The system refuses another thread. Raise the limit of processes.
    #[error("thread {name} cannot be started: {reason}; raise the limit of processes (ulimit -u)")]
    Thread {
        /// The name of the thread.
        name: String,
        /// What the system said.
        reason: String,
    },

    /// A side thread ended without saying why: a defect of Ringway or of a library.
    #[error("the side thread of {what} panicked: {reason}")]
    Panicked {
        /// What it was reading or writing.
        what: String,
        /// What the panic said.
        reason: String,
    },
}

impl ConnectError {
    /// An option that cannot be used.
    pub fn option(option: &'static str, reason: impl Into<String>) -> Self {
        Self::Option {
            option,
            reason: reason.into(),
        }
    }

    /// A file that cannot be used: what was tried, and how it failed.
    pub fn file(path: &Path, reason: impl Display) -> Self {
        Self::File {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}
