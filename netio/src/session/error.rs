//! How a session fails, and why it refuses an element.

use std::time::Duration;

use crate::credit::{CreditError, Shortage};
use crate::frame::{FrameError, Identity, Kind, Reason, ReasonCode};

/// The stream is over without its end. What was delivered before stands; nothing more comes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The connection ended before the stream did. Find out what became of the peer.
    #[error("peer lost: {why}")]
    PeerLost {
        /// How that was noticed.
        why: String,
    },
    /// The peer stopped inside of a frame, or never began. Look at the peer and the network.
    #[error("peer stalled: {what} for {} ms", silence.as_millis())]
    PeerStalled {
        /// What did not come.
        what: &'static str,
        /// For how long.
        silence: Duration,
    },
    /// The peer broke the framing.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer broke the rules of credit.
    #[error(transparent)]
    Credit(#[from] CreditError),
    /// A frame that has no place where it came.
    #[error("unexpected frame: {kind} {state}")]
    Unexpected {
        /// Its kind.
        kind: Kind,
        /// Why it has no place there.
        state: &'static str,
    },
    /// An element is missing, or came twice.
    #[error("element {found} where {expected} was due: the stream has lost or repeated something")]
    OutOfSequence {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// This side requires the negotiated form, or a part of it, and the peer does not speak it.
    #[error("the peer does not speak the negotiated wire: {what}")]
    NotNegotiated {
        /// What is missing.
        what: &'static str,
    },
    /// The peer is another edge, job or attempt.
    #[error("wrong peer: this is {ours}, and it is {theirs}")]
    WrongPeer {
        /// Who this side is.
        ours: Box<Identity>,
        /// Who the peer says it is.
        theirs: Box<Identity>,
    },
    /// The peer ended the stream, and says why.
    #[error("the peer ended the stream: {0}")]
    PeerAborted(Reason),
    /// This side ended the stream.
    #[error("ended here: {0}")]
    Aborted(Reason),
}

impl SessionError {
    /// What the peer is told of it, if it can still listen and does not know.
    pub(super) fn reason(&self) -> Option<Reason> {
        let code = match self {
            Self::PeerLost { .. } | Self::PeerAborted(_) => return None,
            Self::Aborted(reason) => return Some(reason.clone()),
            Self::PeerStalled { .. } => ReasonCode::Stalled,
            Self::Frame(_) | Self::Unexpected { .. } | Self::OutOfSequence { .. } => {
                ReasonCode::Protocol
            }
            Self::Credit(CreditError::Overflow { .. } | CreditError::RowsDiffer { .. }) => {
                ReasonCode::Protocol
            }
            Self::Credit(_) => ReasonCode::WindowExceeded,
            Self::NotNegotiated { .. } => ReasonCode::NotNegotiated,
            Self::WrongPeer { .. } => ReasonCode::WrongPeer,
        };
        Some(Reason::new(code, self.to_string()))
    }

    pub(super) fn lost(why: impl Into<String>) -> Self {
        Self::PeerLost { why: why.into() }
    }
}

/// Why an element was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Back-pressure: the peer has to take something first. Try again after its next grant.
    #[error("no credit")]
    NoCredit,
    /// Back-pressure: the connection has to take something first. Try again after a send.
    #[error("the queue is full")]
    Full,
    /// It never fits, see there.
    #[error(transparent)]
    NeverFits(Shortage),
    /// The stream was closed here.
    #[error("the stream is closed")]
    Closed,
    /// The session has failed; its error says how.
    #[error("the session has failed")]
    Failed,
}

/// An element comes back to whoever pushed it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the element was not taken"]
pub struct Rejected<T> {
    /// What was pushed.
    pub element: T,
    /// Why it was not taken.
    pub why: Refusal,
}
