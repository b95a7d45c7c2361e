//! Taking what the sender sends.

use std::time::Duration;

use super::{Mode, PendingBody, ReceiverSession};
use crate::frame::{Codec, Control, Deframed, Frame, Head, Kind, Tag};
use crate::session::{Batch, CONTROL_ELEMENTS_MAX, Received, SessionError, Taken};

/// What became of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intake {
    /// All of it is taken; more is wanted.
    More,
    /// The body of a batch or schema begins. The caller finds a buffer, fills it by
    /// [`take_body`](ReceiverSession::take_body) or straight from the connection (told by
    /// [`handle_body_bytes`](ReceiverSession::handle_body_bytes)), and hands it over by
    /// [`handle_body`](ReceiverSession::handle_body).
    Body(BodyWanted),
    /// There is no room. The rest is the caller's to keep until the consumer has taken
    /// something; reading should stop.
    Full,
    /// The stream is over. The rest means nothing.
    Ended,
}

/// A body that is to be received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyWanted {
    /// The kind of its frame.
    pub kind: Kind,
    /// Its whole length.
    pub bytes: usize,
}

impl<B> ReceiverSession<B> {
    /// Bytes have come from the sender; they are taken off the front of `input`.
    pub fn handle_input(&mut self, now: Duration, input: &mut &[u8]) -> Intake {
        self.liveness.handle_bytes(now);
        loop {
            if self.end.is_some() {
                return Intake::Ended;
            }
            if let Some(wanted) = self.poll_body() {
                return wanted;
            }
            if input.is_empty() {
                return Intake::More;
            }
            if !self.has_room() {
                return Intake::Full;
            }
            if let Err(error) = self.handle_next(input) {
                self.fail(error);
            }
        }
    }

    /// The part of the body that stands at the front of `input`, taken off it.
    pub fn take_body<'i>(&mut self, now: Duration, input: &mut &'i [u8]) -> &'i [u8] {
        self.liveness.handle_bytes(now);
        self.deframer.take_body(input)
    }

    /// This many bytes of the body went straight into the caller's buffer.
    ///
    /// # Panics
    /// If that is more than the body has.
    pub fn handle_body_bytes(&mut self, now: Duration, bytes: usize) {
        self.liveness.handle_bytes(now);
        self.deframer.handle_body_bytes(bytes);
    }

    /// How much of the body is still to come.
    pub fn body_remaining(&self) -> usize {
        self.deframer.body_remaining()
    }

    /// The body is complete. In version 1 its frame does not say how many rows it has: a
    /// caller that can see that without decoding it tells, so that a sender beyond its window
    /// is found at once and not when the batch is taken. Where the frame does say, `rows` is
    /// ignored. If the session has failed meanwhile, so is the body.
    ///
    /// # Panics
    /// If bytes are missing, or no body was wanted.
    pub fn handle_body(&mut self, body: B, rows: Option<u32>) {
        if self.end.is_some() {
            return;
        }
        assert_eq!(self.body_remaining(), 0, "an incomplete body");
        let pending = self.body.take();
        // Invariant: the caller has been asked for it, and hands it over once.
        let pending = pending.expect("no body was wanted");
        let bytes = pending.bytes as u64;
        if pending.kind == Kind::SCHEMA {
            self.has_schema = true;
            return self.inbox.push(Received::Schema(body), bytes);
        }
        let declared = match pending.kind {
            Kind::BATCH => pending.rows,
            _ => rows,
        };
        if pending.kind == Kind::ARROW_BATCH
            && let Err(error) = self.credit.handle_received(declared, bytes)
        {
            return self.fail(error.into());
        }
        let batch = Batch {
            body,
            codec: pending.codec,
            taken: Taken { declared, bytes },
        };
        self.inbox.push(Received::Batch(batch), bytes);
    }

    /// Asks for the buffer of the body that is due.
    fn poll_body(&mut self) -> Option<Intake> {
        let body = self.body.as_mut()?;
        if !body.is_begun && !self.inbox.has_room_for(body.bytes as u64) {
            return Some(Intake::Full);
        }
        body.is_begun = true;
        Some(Intake::Body(BodyWanted {
            kind: body.kind,
            bytes: body.bytes,
        }))
    }

    fn handle_next(&mut self, input: &mut &[u8]) -> Result<(), SessionError> {
        match self.deframer.poll(input)? {
            None => Ok(()),
            Some(Deframed::Data {
                kind,
                head,
                body_bytes,
            }) => {
                let head = match kind {
                    Kind::ARROW_BATCH => None,
                    kind => Some(Head::parse(kind, head)?),
                };
                self.begin_body(kind, head, body_bytes)
            }
            Some(Deframed::Small { kind, body }) => match Frame::parse(kind, body)? {
                Frame::Control { control, body } => {
                    let tag = Tag::parse(kind, body, control.body_bytes());
                    self.handle_control(control, tag)
                }
                Frame::Close { ending, body } => {
                    let tag = Tag::parse(kind, body, 1);
                    self.handle_close(ending, tag)
                }
                Frame::Accept(accept) => self.handle_accept(&accept),
                Frame::Abort(reason) => Err(SessionError::PeerAborted(reason)),
                _ => Ok(()),
            },
        }
    }

    fn begin_body(
        &mut self,
        kind: Kind,
        head: Option<Head>,
        bytes: usize,
    ) -> Result<(), SessionError> {
        let unexpected = |state| Err(SessionError::Unexpected { kind, state });
        let Some(head) = head else {
            if self.mode == Mode::Undecided {
                self.settle_for_v1()?;
            }
            if self.mode != Mode::V1 {
                return unexpected("after the answer to the offer");
            }
            self.body = Some(PendingBody {
                kind,
                rows: None,
                codec: Codec::None,
                bytes,
                is_begun: false,
            });
            return Ok(());
        };
        let Some(extensions) = self.extensions() else {
            return unexpected("before the answer to the offer");
        };
        self.check_tag(kind, head.tag)?;
        if kind == Kind::BATCH && !self.has_schema {
            return unexpected("before a schema");
        }
        if kind == Kind::SCHEMA && head.rows != 0 {
            return unexpected("with rows");
        }
        if !extensions.allow(head.codec) {
            return unexpected("compressed as nobody agreed to");
        }
        // Before a byte of it is received, so that memory is never beyond the window.
        self.credit.handle_received(Some(head.rows), bytes as u64)?;
        self.body = Some(PendingBody {
            kind,
            rows: Some(head.rows),
            codec: head.codec,
            bytes,
            is_begun: false,
        });
        Ok(())
    }

    fn handle_control(
        &mut self,
        control: Control,
        tag: Result<Tag, crate::frame::FrameError>,
    ) -> Result<(), SessionError> {
        match self.mode {
            Mode::Negotiated(_) => self.check_tag(control.kind(), tag?)?,
            // An answer may still come: control elements need no grant. Where one is required,
            // they wait for it in the inbox, whatever its size: the answer is behind them.
            Mode::Undecided if self.owes_answer() && self.inbox.len() >= CONTROL_ELEMENTS_MAX => {
                let what = "it sends on and on without an answer to the offer";
                return Err(SessionError::NotNegotiated { what });
            }
            Mode::Undecided | Mode::V1 => {}
        }
        self.inbox.push_control(control);
        Ok(())
    }

    pub(super) fn check_tag(&mut self, kind: Kind, tag: Tag) -> Result<(), SessionError> {
        if tag.channel != 0 {
            let state = "for a channel that this connection does not have";
            return Err(SessionError::Unexpected { kind, state });
        }
        let expected = self.sequence;
        if tag.sequence != expected {
            return Err(SessionError::OutOfSequence {
                expected,
                found: tag.sequence,
            });
        }
        self.sequence += 1;
        Ok(())
    }
}
