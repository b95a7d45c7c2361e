//! What comes back to a sender.

use super::SessionError;
use crate::frame::{Deframed, Deframer, Frame, Grant, Kind, Offer, Reason};

/// A frame of the receiver, in the sender's terms.
#[derive(Debug)]
pub(super) enum Reverse {
    /// A grant of version 1, with an offer if one was made.
    Rows { rows: u32, offer: Option<Offer> },
    /// A grant of the negotiated form.
    Limits(Grant),
    /// The receiver gives up.
    Abort(Reason),
    /// The receiver has everything.
    Closed,
    /// Nothing that means anything.
    Nothing,
}

/// The next frame of the receiver in `input`, if there is one.
pub(super) fn next(
    deframer: &mut Deframer,
    input: &mut &[u8],
) -> Result<Option<Reverse>, SessionError> {
    let Some(deframed) = deframer.poll(input)? else {
        return Ok(None);
    };
    let Deframed::Small { kind, body } = deframed else {
        // No kind of this direction has a body of its own.
        return Ok(Some(Reverse::Nothing));
    };
    // Version 1 ignores a grant that is cut short, and so do its peers' recordings.
    if kind == Kind::CREDIT_UPDATE && body.len() < 4 {
        return Ok(Some(Reverse::Nothing));
    }
    Ok(Some(match Frame::parse(kind, body)? {
        Frame::CreditUpdate { records, trailing } => Reverse::Rows {
            rows: records,
            offer: Offer::parse(trailing),
        },
        Frame::Grant(grant) => Reverse::Limits(grant),
        Frame::Abort(reason) => Reverse::Abort(reason),
        Frame::Closed => Reverse::Closed,
        _ => Reverse::Nothing,
    }))
}
