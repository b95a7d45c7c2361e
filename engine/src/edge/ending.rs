//! How a stream stops: one of four ways, told apart on every transport.

use std::fmt;

/// How a stream stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The sender said that this was all.
    End,
    /// The stream was stopped in order (a drain marker with target parallelism 0, then
    /// close); it may go on later from its last checkpoint. No timers fire, nothing is final.
    Stopped,
    /// The job was cancelled. What came so far is incomplete.
    Cancelled,
    /// The sender failed or vanished. What came so far is incomplete.
    Failed(Failure),
}

impl Ending {
    /// Whether the stream counts as arrived at a gate: it will deliver nothing more, in order.
    pub fn is_orderly(&self) -> bool {
        matches!(self, Self::End | Self::Stopped)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("ended"),
            Self::Stopped => f.write_str("stopped"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
        }
    }
}

/// What failed: the edge, its other end, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("edge {edge}: {kind}")]
pub struct Failure {
    /// The edge's name.
    pub edge: String,
    /// What happened.
    pub kind: FailureKind,
}

/// What happened to an edge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureKind {
    /// The other end vanished without a word: it panicked, or its process died. Restart it.
    #[error("the peer is gone without having closed the edge")]
    PeerLost,
    /// The other end said why it failed.
    #[error("the peer failed: {0}")]
    PeerFailed(String),
}

impl Failure {
    /// The other end of `edge` vanished without a word.
    pub fn peer_lost(edge: impl Into<String>) -> Self {
        Self {
            edge: edge.into(),
            kind: FailureKind::PeerLost,
        }
    }

    /// The other end of `edge` failed and said why.
    pub fn peer_failed(edge: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            edge: edge.into(),
            kind: FailureKind::PeerFailed(reason.into()),
        }
    }
}
