//! Turning what waits into frames.

use std::ops::Range;

use super::{Mode, Phase, SenderSession};
use crate::frame::{Extensions, FILLER_BYTES, Head, Kind, Tag, encode};
use crate::session::{HangUp, Outgoing, SessionError};

/// A frame to send: first these bytes of the buffer that the poll appended to, then the body.
#[derive(Debug, PartialEq, Eq)]
pub struct Transmit<B> {
    /// What the poll appended.
    pub header: Range<usize>,
    /// What follows, to be gathered from where it lies.
    pub body: Option<B>,
}

impl<B> SenderSession<B> {
    /// The next frame to send, if there is one. Its first part is appended to `out`, which
    /// the caller clears when the send is done.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit<B>> {
        let start = out.len();
        let body = self.write_next(out)?;
        Some(Transmit {
            header: start..out.len(),
            body,
        })
    }

    /// Appends a filler behind frames that were polled and are sent together, if the peer takes
    /// some, and returns how many bytes that were. It is no element: it has no number and needs no
    /// credit. None follows the end of a stream, since the peer may close without reading it.
    pub fn fill(&self, out: &mut Vec<u8>) -> usize {
        let Mode::Negotiated(extensions) = self.mode else {
            return 0;
        };
        // Before the answer the peer does not know yet that there are any.
        let is_understood = self.answer.is_none() && extensions.has(Extensions::FILLER);
        if self.phase != Phase::Open || !is_understood {
            return 0;
        }
        encode::filler(out);
        FILLER_BYTES
    }

    /// Whether a poll would give a frame.
    pub fn wants_transmit(&self) -> bool {
        match self.phase {
            Phase::Over | Phase::Lingering => false,
            Phase::Aborting(_) => self.abort.is_some(),
            _ if self.owes_offer() || self.holds_close() => false,
            _ => self.answer.is_some() || !self.queue.is_empty(),
        }
    }

    /// Whether the end is next, and how it is told apart is not known yet: the first grant of
    /// a peer that has just accepted is on its way.
    pub(super) fn holds_close(&self) -> bool {
        self.mode == Mode::Undecided
            && !self.is_reverse_over
            && matches!(self.queue.iter().next(), Some(Outgoing::Close(_)))
    }

    fn write_next(&mut self, out: &mut Vec<u8>) -> Option<Option<B>> {
        if !self.wants_transmit() {
            return None;
        }
        if let Some(reason) = self.abort.take() {
            encode::abort(out, &reason);
            self.hang_up = Some(HangUp::Write);
            return Some(None);
        }
        if let Some(answer) = self.answer.take() {
            encode::accept(out, &answer);
            return Some(None);
        }
        let item = self.queue.pop()?;
        match self.mode {
            Mode::Negotiated(extensions) => self.write_negotiated(out, item, extensions),
            Mode::V1 | Mode::Undecided => self.write_v1(out, item),
        }
    }

    fn write_v1(&mut self, out: &mut Vec<u8>, item: Outgoing<B>) -> Option<Option<B>> {
        match item {
            Outgoing::Control(control) => {
                encode::control(out, &control);
                Some(None)
            }
            Outgoing::Batch(batch) => {
                let header = encode::arrow_batch_header(out, batch.bytes as usize);
                self.check_header(header.is_ok())
                    .then_some(Some(batch.body))
            }
            Outgoing::Close(_) => {
                encode::close(out);
                self.begin_linger();
                Some(None)
            }
            // Invariant: a schema is pushed in the negotiated form only, and that never ends.
            Outgoing::Schema { .. } => None,
        }
    }

    fn write_negotiated(
        &mut self,
        out: &mut Vec<u8>,
        item: Outgoing<B>,
        extensions: Extensions,
    ) -> Option<Option<B>> {
        let aligned = extensions.has(Extensions::ALIGNED);
        let tag = Tag {
            sequence: self.sequence,
            channel: 0,
        };
        self.sequence += 1;
        let mut head = Head {
            tag,
            ..Head::default()
        };
        let (kind, body, bytes) = match item {
            Outgoing::Control(control) => {
                encode::tagged_control(out, &control, tag, aligned);
                return Some(None);
            }
            Outgoing::Close(ending) => {
                encode::tagged_close(out, ending, tag, aligned);
                self.begin_linger();
                return Some(None);
            }
            Outgoing::Schema { body, bytes } => (Kind::SCHEMA, body, bytes),
            Outgoing::Batch(batch) => {
                head.rows = batch.rows;
                head.codec = batch.codec;
                (Kind::BATCH, batch.body, batch.bytes)
            }
        };
        let header = encode::headed(out, kind, &head, bytes as usize);
        self.check_header(header.is_ok()).then_some(Some(body))
    }

    /// Credit admits no body that a frame can't have, so this never fails a session; if it
    /// did, the error would say so rather than a frame be left out.
    fn check_header(&mut self, fits: bool) -> bool {
        if !fits {
            self.error = Some(SessionError::lost("a frame was too long to be sent"));
            self.finish();
        }
        fits
    }
}
