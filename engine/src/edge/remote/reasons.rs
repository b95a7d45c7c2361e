//! Failures of a connection, in the words of an edge, and the other way.

use ringway_netio::frame::{Reason, ReasonCode};
use ringway_netio::session::SessionError;

use crate::edge::{Ending, Failure, FailureKind, RejectReason};

/// How an edge that goes without an end says so to its peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goodbye {
    /// With a reason, where the wire has room for one.
    Reason(Reason),
    /// By being gone: nobody was there to say anything.
    Silent,
}

/// How the ending of a stream is told, if it is none in order.
pub(super) fn goodbye_of_ending(ending: &Ending) -> Option<Goodbye> {
    match ending {
        Ending::End | Ending::Stopped => None,
        Ending::Cancelled => Some(reason(ReasonCode::Cancelled, "the stream was cancelled")),
        Ending::Failed(failure) => Some(goodbye_of_failure(failure)),
    }
}

/// How a receiver that takes no more is told.
pub(super) fn goodbye_of_rejection(rejection: &RejectReason) -> Goodbye {
    match rejection {
        RejectReason::Closed => reason(ReasonCode::Unwanted, "the receiver wants no more"),
        RejectReason::Failed(failure) => goodbye_of_failure(failure),
        RejectReason::Full => Goodbye::Silent,
    }
}

fn goodbye_of_failure(failure: &Failure) -> Goodbye {
    match &failure.kind {
        FailureKind::PeerLost => Goodbye::Silent,
        FailureKind::PeerFailed(text) => reason(ReasonCode::Failed, text),
        other => reason(ReasonCode::Failed, &other.to_string()),
    }
}

fn reason(code: ReasonCode, text: &str) -> Goodbye {
    Goodbye::Reason(Reason::new(code, text))
}

/// Who an edge is, for the failures of it.
#[derive(Debug, Clone)]
pub(in crate::edge) struct Names {
    pub(in crate::edge) edge: String,
    pub(in crate::edge) peer: String,
}

impl Names {
    pub(in crate::edge) fn failure(&self, kind: FailureKind) -> Failure {
        Failure::new(self.edge.clone(), kind).of_peer(self.peer.clone())
    }

    /// What the receiver of a stream is told of a session that failed.
    pub(super) fn ending(&self, error: &SessionError, broken: Option<&str>) -> Ending {
        match error {
            SessionError::PeerAborted(reason) if reason.code == ReasonCode::Cancelled => {
                Ending::Cancelled
            }
            _ => Ending::Failed(self.failure(kind_of(error, broken))),
        }
    }

    /// What the sender of a stream is told of a session that failed.
    pub(super) fn rejection(&self, error: &SessionError, broken: Option<&str>) -> RejectReason {
        match error {
            SessionError::PeerAborted(reason) if reason.code == ReasonCode::Unwanted => {
                RejectReason::Closed
            }
            _ => RejectReason::Failed(self.failure(kind_of(error, broken))),
        }
    }
}

/// What happened. `broken` is what the system said of the connection, if it broke.
fn kind_of(error: &SessionError, broken: Option<&str>) -> FailureKind {
    let text = error.to_string();
    match error {
        SessionError::PeerLost { .. } => match broken {
            Some(broken) => FailureKind::ConnectionLost(broken.to_owned()),
            None => FailureKind::PeerLost,
        },
        SessionError::PeerStalled { what, silence } => {
            FailureKind::PeerStalled(format!("{what} for {} ms", silence.as_millis()))
        }
        SessionError::Frame(_)
        | SessionError::Credit(_)
        | SessionError::Unexpected { .. }
        | SessionError::OutOfSequence { .. } => FailureKind::Protocol(text),
        SessionError::NotNegotiated { .. } | SessionError::WrongPeer { .. } => {
            FailureKind::WrongPeer(text)
        }
        SessionError::PeerAborted(reason) => match reason.code {
            ReasonCode::Failed | ReasonCode::Cancelled => {
                FailureKind::PeerFailed(reason.to_string())
            }
            _ => FailureKind::Refused(reason.to_string()),
        },
        SessionError::Aborted(reason) => match reason.code {
            ReasonCode::Undecodable | ReasonCode::SchemaMismatch => {
                FailureKind::Undecodable(reason.to_string())
            }
            ReasonCode::Protocol => FailureKind::Protocol(reason.to_string()),
            ReasonCode::WrongPeer => FailureKind::WrongPeer(reason.to_string()),
            _ => FailureKind::Unsendable(reason.to_string()),
        },
    }
}
