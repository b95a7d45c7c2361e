//! What comes back from the receiver.

use std::time::Duration;

use super::{Mode, Phase, SenderSession};
use crate::credit::SenderCredit;
use crate::frame::{Accept, Extensions, Grant, Kind, Offer};
use crate::session::reverse::{self, Reverse};
use crate::session::{HangUp, Negotiation, SessionError};

impl<B> SenderSession<B> {
    /// Bytes have come from the receiver. All are taken.
    pub fn handle_input(&mut self, now: Duration, mut input: &[u8]) {
        self.liveness.handle_bytes(now);
        while self.phase != Phase::Over {
            let handled = match reverse::next(&mut self.deframer, &mut input) {
                Ok(None) => return,
                Ok(Some(frame)) => self.handle_frame(frame),
                Err(error) => Err(error),
            };
            if let Err(error) = handled {
                // What follows a broken frame can't be read, so nothing is waited for.
                let is_aborting = matches!(self.phase, Phase::Aborting(_));
                self.fail(now, error);
                if is_aborting {
                    self.finish();
                }
                return;
            }
        }
    }

    /// The receiver has closed its direction, or the connection.
    pub fn handle_eof(&mut self, now: Duration) {
        let truncated = self.deframer.handle_eof().err();
        match (self.phase, self.mode) {
            (Phase::Over, _) => {}
            (Phase::Aborting(_), _) => self.finish(),
            (_, Mode::Negotiated(_)) => {
                self.is_reverse_over = true;
                self.fail(
                    now,
                    SessionError::lost("it closed before it had everything"),
                );
            }
            _ if self.owes_offer() => {
                self.is_reverse_over = true;
                self.fail(now, SessionError::lost("it closed before its first grant"));
            }
            // Version 1: the receiver may have closed one direction only.
            _ => match truncated {
                Some(error) => self.fail(now, error.into()),
                None => self.is_reverse_over = true,
            },
        }
    }

    /// The peer's host has acknowledged all that was sent, its end included. In version 1
    /// that is all there is to know of the delivery.
    pub fn handle_delivered(&mut self) {
        if self.phase == Phase::Lingering && !matches!(self.mode, Mode::Negotiated(_)) {
            self.finish();
        }
    }

    fn handle_frame(&mut self, frame: Reverse) -> Result<(), SessionError> {
        let is_negotiated = matches!(self.mode, Mode::Negotiated(_));
        if matches!(frame, Reverse::Rows { .. } | Reverse::Limits(_)) {
            self.grants += 1;
        }
        match frame {
            Reverse::Rows { rows, offer } if !is_negotiated => self.handle_rows(rows, offer),
            Reverse::Rows { .. } => Err(SessionError::Unexpected {
                kind: Kind::CREDIT_UPDATE,
                state: "after the answer to the offer",
            }),
            Reverse::Limits(grant) if is_negotiated => self.handle_limits(grant),
            Reverse::Limits(_) => Err(SessionError::Unexpected {
                kind: Kind::GRANT,
                state: "before an offer",
            }),
            Reverse::Abort(reason) => Err(SessionError::PeerAborted(reason)),
            Reverse::Closed if is_negotiated && self.phase == Phase::Lingering => {
                self.finish();
                Ok(())
            }
            // The answer to a Close that this side does not wait for any more.
            Reverse::Closed if matches!(self.phase, Phase::Aborting(_)) => Ok(()),
            Reverse::Closed => Err(SessionError::Unexpected {
                kind: Kind::CLOSED,
                state: "before the Close",
            }),
            Reverse::Nothing => Ok(()),
        }
    }

    fn handle_rows(&mut self, rows: u32, offer: Option<Offer>) -> Result<(), SessionError> {
        if self.mode == Mode::Undecided {
            let can_answer = matches!(self.phase, Phase::Open | Phase::Closing);
            let usable = |offer: &Offer| can_answer && offer.extensions.has(Extensions::CORE);
            if let Some(offer) = offer.filter(usable) {
                return self.handle_offer(offer);
            }
            if self.options.requires_negotiation() {
                let what = "its first grant has no offer";
                return Err(SessionError::NotNegotiated { what });
            }
            self.settle_for_v1();
        }
        self.credit.handle_rows(rows)?;
        Ok(())
    }

    pub(super) fn settle_for_v1(&mut self) {
        self.mode = Mode::V1;
        self.deframer.set_extended(false);
    }

    fn handle_offer(&mut self, offer: Offer) -> Result<(), SessionError> {
        debug_assert!(
            self.options.negotiation != Negotiation::Off,
            "no offer is read"
        );
        self.offer = Some(offer);
        let identity = self.options.identity;
        if let Some(ours) = identity {
            let what = "its offer does not say who it is";
            let theirs = offer.identity.ok_or(SessionError::NotNegotiated { what })?;
            if !ours.fits(&theirs) {
                return Err(SessionError::WrongPeer {
                    ours: Box::new(ours),
                    theirs: Box::new(theirs),
                });
            }
        }
        let known = (self.options.extensions | Extensions::CORE).both(Extensions::ALL);
        let mut extensions = offer.extensions.both(known).without(Extensions::IDENTITY);
        if identity.is_some() {
            extensions = extensions | Extensions::IDENTITY;
        }
        self.answer = Some(Accept {
            token: offer.token,
            extensions,
            identity,
        });
        self.mode = Mode::Negotiated(extensions);
        self.credit = SenderCredit::counting_bytes(
            offer.window_rows,
            offer.window_bytes,
            self.negotiated_body_max(offer.frame_bytes_max),
            self.options.piece_bytes,
        );
        Ok(())
    }

    fn handle_limits(&mut self, grant: Grant) -> Result<(), SessionError> {
        if grant.channel == 0 {
            self.credit
                .handle_limits(grant.rows_limit, grant.bytes_limit)?;
        }
        Ok(())
    }

    /// The end is sent.
    pub(super) fn begin_linger(&mut self) {
        self.phase = Phase::Lingering;
        self.hang_up = Some(HangUp::Write);
    }
}
