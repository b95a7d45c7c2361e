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
#[error("edge {edge}{}: {kind}", Peer(peer.as_deref()))]
pub struct Failure {
    /// The edge's name.
    pub edge: String,
    /// Who is at the other end, where that is another process: its address.
    pub peer: Option<String>,
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
    /// The connection broke: look at the peer, its host and the network.
    #[error("the connection to the peer is lost: {0}")]
    ConnectionLost(String),
    /// The other end stopped in the middle of something. Look at the peer and the network.
    #[error("the peer has stalled: {0}")]
    PeerStalled(String),
    /// The other end broke the protocol: it is something else, or defective.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// What the other end sent cannot be decoded, or is not what this end takes.
    #[error("the peer sent what cannot be taken: {0}")]
    Undecodable(String),
    /// The other end is another edge, job or attempt, or does not speak what this end needs.
    #[error("not the right peer: {0}")]
    WrongPeer(String),
    /// The other end refuses what this end sent or is.
    #[error("refused by the peer: {0}")]
    Refused(String),
    /// An element has no form on the wire, or is too large for this edge.
    #[error("an element cannot be sent: {0}")]
    Unsendable(String),
}

impl Failure {
    /// A failure of `edge` that nobody at its other end is named for.
    pub fn new(edge: impl Into<String>, kind: FailureKind) -> Self {
        Self {
            edge: edge.into(),
            peer: None,
            kind,
        }
    }

    /// The other end of `edge` vanished without a word.
    pub fn peer_lost(edge: impl Into<String>) -> Self {
        Self::new(edge, FailureKind::PeerLost)
    }

    /// The other end of `edge` failed and said why.
    pub fn peer_failed(edge: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(edge, FailureKind::PeerFailed(reason.into()))
    }

    /// The same failure, which names the peer.
    pub fn of_peer(mut self, peer: impl Into<String>) -> Self {
        self.peer = Some(peer.into());
        self
    }
}

/// The peer, behind the name of the edge.
struct Peer<'a>(Option<&'a str>);

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(peer) => write!(f, ", peer {peer}"),
            None => Ok(()),
        }
    }
}
