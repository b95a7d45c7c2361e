//! The sender's side of an edge.

mod push;
mod reading;
mod transmit;

pub use transmit::Transmit;

use std::time::Duration;

use super::liveness::Liveness;
use super::outgoing::Queue;
use super::{ABORT_LINGER, HangUp, Mode, Negotiation, Outgoing, SenderOptions, SessionError};
use crate::credit::{Piece, SenderCredit};
use crate::frame::{Accept, Deframer, Direction, FRAME_BYTES_MAX, HEAD_BYTES, Offer, Reason};

/// One edge, from its sender. `B` is an encoded body, which the session only passes on.
///
/// Elements are pushed, and come out of [`poll_transmit`](Self::poll_transmit) as frames, in
/// the same order. [`close`](Self::close) ends the stream; the session is over when the peer
/// has everything, or with an error that says why not.
#[derive(Debug)]
pub struct SenderSession<B> {
    options: SenderOptions,
    deframer: Deframer,
    credit: SenderCredit,
    mode: Mode,
    offer: Option<Offer>,
    answer: Option<Accept>,
    queue: Queue<B>,
    sequence: u64,
    grants: u64,
    has_schema: bool,
    phase: Phase,
    /// The receiver says no more (version 1: it may still listen).
    is_reverse_over: bool,
    error: Option<SessionError>,
    abort: Option<Reason>,
    hang_up: Option<HangUp>,
    liveness: Liveness,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Elements are taken.
    Open,
    /// The end is queued behind what waits.
    Closing,
    /// The end is sent; the peer has yet to receive it.
    Lingering,
    /// The peer is told why; then it is over, at the latest at this time.
    Aborting(Duration),
    /// Nothing more happens.
    Over,
}

impl<B> SenderSession<B> {
    /// A session over a connection that was just made.
    ///
    /// # Panics
    /// If the options contradict each other.
    pub fn new(options: SenderOptions, now: Duration) -> Self {
        options.check();
        let extended = options.negotiation != Negotiation::Off;
        Self {
            deframer: Deframer::new(Direction::FromReceiver, extended, FRAME_BYTES_MAX),
            credit: SenderCredit::counting_rows(
                options.queue_bytes.min(u64::from(FRAME_BYTES_MAX) - 1),
                options.piece_bytes,
            ),
            mode: match options.negotiation {
                Negotiation::Off => Mode::V1,
                _ => Mode::Undecided,
            },
            offer: None,
            answer: None,
            queue: Queue::new(options.queue_bytes),
            sequence: 0,
            grants: 0,
            has_schema: false,
            phase: Phase::Open,
            is_reverse_over: false,
            error: None,
            abort: None,
            hang_up: None,
            liveness: Liveness::new(now, options.stalled_after),
            options,
        }
    }

    /// Which form is spoken. It is decided before the first batch can be pushed.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the receiver offered: its token, its windows and who it is.
    pub fn offer(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// What may be sent.
    pub fn credit(&self) -> &SenderCredit {
        &self.credit
    }

    /// How many grants have come.
    pub fn grants(&self) -> u64 {
        self.grants
    }

    /// How to split batches for this peer; nothing before it has granted anything.
    pub fn piece(&self) -> Option<Piece> {
        self.credit.piece()
    }

    /// What was pushed and not polled yet, in order.
    pub fn queued(&self) -> impl Iterator<Item = &Outgoing<B>> {
        self.queue.iter()
    }

    /// Why the session failed, if it did.
    pub fn error(&self) -> Option<&SessionError> {
        self.error.as_ref()
    }

    /// Whether nothing more happens: the stream has arrived, or the session has failed.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether the stream was closed and the peer has all of it.
    pub fn is_delivered(&self) -> bool {
        self.is_over() && self.error.is_none()
    }

    /// Ends the stream without its end: it was cancelled, or failed. What waits is dropped. In
    /// the negotiated form the peer is told the reason; in version 1 it sees the connection
    /// end without a Close.
    pub fn abort(&mut self, now: Duration, reason: Reason) {
        self.fail(now, SessionError::Aborted(reason));
    }

    /// The connection is broken, or could not be written to.
    pub fn handle_lost(&mut self, now: Duration, why: &str) {
        self.fail(now, SessionError::lost(why));
        self.finish();
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        match self.phase {
            Phase::Over => None,
            Phase::Aborting(until) => Some(until),
            _ if self.deframer.is_inside_frame() => self.liveness.stalled_at(),
            _ if self.owes_offer() || self.holds_close() => Some(self.liveness.overdue_at()),
            _ => None,
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        if let Phase::Aborting(_) = self.phase {
            return self.finish();
        }
        if self.holds_close() && !self.owes_offer() && !self.deframer.is_inside_frame() {
            // A peer that grants nothing can still be told that nothing comes.
            self.settle_for_v1();
            return;
        }
        let what = match self.deframer.is_inside_frame() {
            true => "nothing came inside of a frame",
            false => "no first grant came",
        };
        let silence = self.liveness.patience();
        self.fail(now, SessionError::PeerStalled { what, silence });
    }

    /// What to shut down, once.
    pub fn poll_hang_up(&mut self) -> Option<HangUp> {
        self.hang_up.take()
    }

    fn owes_offer(&self) -> bool {
        self.mode == Mode::Undecided && self.options.requires_negotiation()
    }

    /// The longest body that this side may hold and the receiver takes.
    fn negotiated_body_max(&self, frame_bytes_max: u32) -> u64 {
        u64::from(frame_bytes_max.min(FRAME_BYTES_MAX))
            .saturating_sub(HEAD_BYTES as u64 + 1)
            .min(self.options.queue_bytes)
    }

    /// The session fails, once; the peer is told if it listens and does not know.
    fn fail(&mut self, now: Duration, error: SessionError) {
        if matches!(self.phase, Phase::Over | Phase::Aborting(_)) {
            return;
        }
        // Who made an offer understands an abort, even before the answer to it.
        let listens = self.offer.is_some() && !self.is_reverse_over;
        self.abort = error.reason().filter(|_| listens && self.mode != Mode::V1);
        self.error = Some(error);
        self.queue.clear();
        self.answer = None;
        match self.abort {
            Some(_) => self.phase = Phase::Aborting(now + ABORT_LINGER),
            None => self.finish(),
        }
    }

    fn finish(&mut self) {
        if self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.abort = None;
            self.queue.clear();
            self.hang_up = Some(HangUp::Both);
        }
    }
}
