//! How and why a stream is over.

use std::fmt;

use crate::frame::fields::u16_at;
use crate::frame::{FrameError, KEPT_BYTES_MAX, Kind};

/// How a stream that was closed came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// There is no more input.
    End,
    /// It was stopped, and goes on from a savepoint some day.
    Stopped,
    /// The peer does not say (version 1): the elements before the Close tell.
    Unsaid,
}

impl Ending {
    pub(in crate::frame) fn byte(self) -> u8 {
        match self {
            Self::End => 0,
            Self::Stopped => 1,
            Self::Unsaid => 255,
        }
    }

    pub(in crate::frame) fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::End,
            1 => Self::Stopped,
            _ => Self::Unsaid,
        }
    }
}

/// Why a stream ends without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasonCode {
    /// The job or a subtask of it failed.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// The peer broke the protocol.
    Protocol,
    /// A batch could not be decoded.
    Undecodable,
    /// The schema is not the expected one.
    SchemaMismatch,
    /// More was sent than was granted.
    WindowExceeded,
    /// The peer is another edge, job or attempt than the expected one.
    WrongPeer,
    /// The peer stopped in the middle of a frame.
    Stalled,
    /// The receiver wants no more.
    Unwanted,
    /// The peer does not speak what this side requires.
    NotNegotiated,
    /// A code that a newer peer knows.
    Other(u16),
}

/// Those with a code of their own.
const CODES: [(ReasonCode, u16); 10] = [
    (ReasonCode::Failed, 1),
    (ReasonCode::Cancelled, 2),
    (ReasonCode::Protocol, 3),
    (ReasonCode::Undecodable, 4),
    (ReasonCode::SchemaMismatch, 5),
    (ReasonCode::WindowExceeded, 6),
    (ReasonCode::WrongPeer, 7),
    (ReasonCode::Stalled, 8),
    (ReasonCode::Unwanted, 9),
    (ReasonCode::NotNegotiated, 10),
];

impl ReasonCode {
    fn number(self) -> u16 {
        match self {
            Self::Other(number) => number,
            named => CODES
                .iter()
                .find(|(code, _)| *code == named)
                .map_or(0, |(_, number)| *number),
        }
    }

    fn from_number(number: u16) -> Self {
        CODES
            .iter()
            .find(|(_, known)| *known == number)
            .map_or(Self::Other(number), |(code, _)| *code)
    }
}

/// What an abort tells the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// For programs.
    pub code: ReasonCode,
    /// For people. What is longer than [`Reason::TEXT_BYTES_MAX`] is cut when it is sent.
    pub text: String,
}

impl Reason {
    /// The most text that is sent.
    pub const TEXT_BYTES_MAX: usize = KEPT_BYTES_MAX - Self::TEXT_AT;
    const TEXT_AT: usize = 4;

    /// A reason with its text.
    pub fn new(code: ReasonCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    /// The reason in a body. Text that is no UTF-8 is repaired, since it is only shown.
    ///
    /// # Errors
    /// [`FrameError::Short`] where the body ends before its text begins or does. End the
    /// connection.
    pub fn parse(body: &[u8]) -> Result<Self, FrameError> {
        let short = |needed_bytes| FrameError::Short {
            kind: Kind::ABORT,
            body_bytes: body.len(),
            needed_bytes,
        };
        let (code, length) = u16_at(body, 0)
            .zip(u16_at(body, 2))
            .ok_or(short(Self::TEXT_AT))?;
        // What was kept of a longer body ends earlier.
        let end = (Self::TEXT_AT + usize::from(length)).min(KEPT_BYTES_MAX);
        let text = body.get(Self::TEXT_AT..end).ok_or(short(end))?;
        Ok(Self {
            code: ReasonCode::from_number(code),
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }

    pub(in crate::frame) fn write(&self, out: &mut Vec<u8>) {
        let mut end = self.text.len().min(Self::TEXT_BYTES_MAX);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        out.extend_from_slice(&self.code.number().to_be_bytes());
        out.extend_from_slice(&(end as u16).to_be_bytes());
        out.extend_from_slice(&self.text.as_bytes()[..end]);
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            ReasonCode::Other(number) => write!(f, "{} (code {number})", self.text),
            _ => f.write_str(&self.text),
        }
    }
}
