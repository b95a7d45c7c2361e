//! The typed view of a small frame.

use super::fields::{byte, u32_at};
use super::{Accept, Control, Ending, FrameError, Grant, Kind, Reason};

/// A frame other than a batch or a schema, as its kind and body read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A control element.
    Control {
        /// The element.
        control: Control,
        /// The whole body: its tag is in there where one was negotiated.
        body: &'a [u8],
    },
    /// The end of the stream.
    Close {
        /// How it ended, where the negotiated form is spoken.
        ending: Ending,
        /// The whole body.
        body: &'a [u8],
    },
    /// A grant in version 1.
    CreditUpdate {
        /// How many records more the sender may send.
        records: u32,
        /// An offer, or nothing, or what some other peer appends.
        trailing: &'a [u8],
    },
    /// The answer to an offer.
    Accept(Accept),
    /// A grant in the negotiated form.
    Grant(Grant),
    /// The stream ends without an end.
    Abort(Reason),
    /// The receiver has everything.
    Closed,
    /// A kind without a meaning here, to be skipped.
    Unknown(Kind),
}

impl<'a> Frame<'a> {
    /// The frame of this kind with this body. Bytes after those that the kind needs are
    /// ignored.
    ///
    /// # Errors
    /// As [`FrameError`] says: kind 0, a body that is too short, a field without sense.
    pub fn parse(kind: Kind, body: &'a [u8]) -> Result<Self, FrameError> {
        if let Some(control) = Control::parse(kind, body)? {
            return Ok(Self::Control { control, body });
        }
        Ok(match kind {
            Kind::LEGACY_DATA => return Err(FrameError::LegacyKind),
            Kind::CLOSE => Self::Close {
                ending: byte(body, 0).map_or(Ending::Unsaid, Ending::from_byte),
                body,
            },
            Kind::CREDIT_UPDATE => Self::CreditUpdate {
                records: u32_at(body, 0).ok_or(FrameError::Short {
                    kind,
                    body_bytes: body.len(),
                    needed_bytes: 4,
                })?,
                trailing: &body[4..],
            },
            Kind::ACCEPT => Self::Accept(Accept::parse(body)?),
            Kind::GRANT => Self::Grant(Grant::parse(body)?),
            Kind::ABORT => Self::Abort(Reason::parse(body)?),
            Kind::CLOSED => Self::Closed,
            kind => Self::Unknown(kind),
        })
    }
}
