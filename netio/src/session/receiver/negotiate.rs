//! Which form of the wire a sender takes, and how it ends the stream.

use super::{Mode, ReceiverSession};
use crate::credit::ReceiverCredit;
use crate::frame::{Accept, Ending, Extensions, FrameError, Kind, Offer, Tag};
use crate::session::SessionError;

impl<B> ReceiverSession<B> {
    /// What stands behind the first grant.
    pub(super) fn offer(&self) -> Offer {
        let identity = self.options.identity;
        let known = (self.options.extensions | Extensions::CORE).both(Extensions::ALL);
        let mut extensions = known.without(Extensions::IDENTITY);
        if identity.is_some() {
            extensions = extensions | Extensions::IDENTITY;
        }
        Offer {
            token: self.options.token,
            extensions,
            window_rows: self.options.window_rows,
            window_bytes: self.options.window_bytes,
            frame_bytes_max: self.options.frame_bytes_max(),
            identity,
        }
    }

    /// The sender goes on without an answer.
    pub(super) fn settle_for_v1(&mut self) -> Result<(), SessionError> {
        if self.options.requires_negotiation() {
            let what = "it goes on without an answer to the offer";
            return Err(SessionError::NotNegotiated { what });
        }
        self.mode = Mode::V1;
        self.deframer.set_extended(false);
        Ok(())
    }

    pub(super) fn handle_accept(&mut self, accept: &Accept) -> Result<(), SessionError> {
        let unexpected = |state| {
            let kind = Kind::ACCEPT;
            Err(SessionError::Unexpected { kind, state })
        };
        let offer = self.offer();
        if self.mode != Mode::Undecided || !self.is_greeted {
            return unexpected("when no offer is open");
        }
        if accept.token != offer.token {
            return unexpected("to another offer");
        }
        if !offer.extensions.has(accept.extensions) || !accept.extensions.has(Extensions::CORE) {
            return unexpected("of other extensions than were offered");
        }
        if let Some(ours) = self.options.identity {
            let what = "its answer does not say who it is";
            let theirs = accept
                .identity
                .ok_or(SessionError::NotNegotiated { what })?;
            if !ours.fits(&theirs) {
                return Err(SessionError::WrongPeer {
                    ours: Box::new(ours),
                    theirs: Box::new(theirs),
                });
            }
        }
        self.identity = accept.identity;
        self.mode = Mode::Negotiated(accept.extensions);
        self.credit =
            ReceiverCredit::counting_bytes(self.options.window_rows, self.options.window_bytes);
        Ok(())
    }

    pub(super) fn handle_close(
        &mut self,
        ending: Ending,
        tag: Result<Tag, FrameError>,
    ) -> Result<(), SessionError> {
        let ending = match self.mode {
            Mode::Negotiated(_) => {
                self.check_tag(Kind::CLOSE, tag?)?;
                self.owes_closed = true;
                ending
            }
            Mode::Undecided => {
                self.settle_for_v1()?;
                Ending::Unsaid
            }
            Mode::V1 => Ending::Unsaid,
        };
        self.end = Some(Ok(ending));
        Ok(())
    }
}
