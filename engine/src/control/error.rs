//! Why a control session is over.

use std::time::Duration;

/// Why a control session is over. The process at its other end counts as lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// Nothing has come for too long: the process hangs, or its host is gone. Look there.
    #[error("it has said nothing for {} s: it hangs, or its host is gone", silent.as_secs())]
    Silent {
        /// For how long.
        silent: Duration,
    },
    /// It did not say in time who it is. It waits for others first, hangs, or is no process of
    /// a job.
    #[error("it did not say within {} s who it is", within.as_secs_f64())]
    Ungreeted {
        /// The time that it had.
        within: Duration,
    },
    /// The connection has ended before the job was over: the process died or was killed.
    #[error("its control connection has ended: it died or was killed")]
    Closed,
    /// The connection is broken.
    #[error("its control connection is broken: {0}")]
    Lost(String),
    /// What has come is no control session of this version.
    #[error("it does not speak the control protocol: {0}")]
    Broken(String),
    /// The peer does not want this process, for this reason.
    #[error("{0}")]
    Refused(String),
    /// This process does not want the peer, for this reason. The peer is told.
    #[error("{0}")]
    Mismatch(String),
}
