//! The receiver's side of an edge.

mod intake;
mod negotiate;
mod transmit;

pub use intake::{BodyWanted, Intake};

use std::time::Duration;

use super::inbox::Inbox;
use super::liveness::Liveness;
use super::{
    HangUp, LITTLE_GRANT_AFTER, Mode, Negotiation, Received, ReceiverOptions, SessionError, Taken,
};
use crate::credit::{CreditError, ReceiverCredit};
use crate::frame::{
    Codec, Control, Deframer, Direction, Ending, Extensions, Identity, Kind, Reason,
};

/// One edge, from its receiver. `B` is the buffer of an encoded body, which the session only
/// passes on.
///
/// Elements come out of [`poll_element`](Self::poll_element), and after the last one
/// [`poll_end`](Self::poll_end) tells an end from a failure. The sender is granted what the
/// consumer takes, when it takes it.
#[derive(Debug)]
pub struct ReceiverSession<B> {
    options: ReceiverOptions,
    deframer: Deframer,
    credit: ReceiverCredit,
    mode: Mode,
    identity: Option<Identity>,
    inbox: Inbox<B>,
    body: Option<PendingBody>,
    /// Batches that were taken out and whose rows are not told yet.
    untold: usize,
    sequence: u64,
    has_schema: bool,
    end: Option<Result<Ending, SessionError>>,
    is_greeted: bool,
    /// The sender is owed that everything is here.
    owes_closed: bool,
    abort: Option<Reason>,
    hang_up: Option<HangUp>,
    is_hung_up: bool,
    liveness: Liveness,
    /// When what little the consumer has taken is granted, if nothing more comes.
    little_at: Option<Duration>,
    /// That time has come.
    grants_little: bool,
}

/// A data frame whose body is being received.
#[derive(Debug, Clone, Copy)]
struct PendingBody {
    kind: Kind,
    rows: Option<u32>,
    codec: Codec,
    bytes: usize,
    /// The caller has been asked for a buffer.
    is_begun: bool,
}

impl<B> ReceiverSession<B> {
    /// A session over a connection that was just accepted.
    ///
    /// # Panics
    /// If the options contradict each other.
    pub fn new(options: ReceiverOptions, now: Duration) -> Self {
        options.check();
        let extended = options.negotiation != Negotiation::Off;
        let frame_bytes_max = options.frame_bytes_max();
        Self {
            deframer: Deframer::new(Direction::FromSender, extended, frame_bytes_max),
            credit: ReceiverCredit::counting_rows(options.v1_window_rows),
            mode: match options.negotiation {
                Negotiation::Off => Mode::V1,
                _ => Mode::Undecided,
            },
            identity: None,
            inbox: Inbox::new(options.inbox_elements, options.window_bytes),
            body: None,
            untold: 0,
            sequence: 0,
            has_schema: false,
            end: None,
            is_greeted: false,
            owes_closed: false,
            abort: None,
            hang_up: None,
            is_hung_up: false,
            liveness: Liveness::new(now, options.stalled_after),
            little_at: None,
            grants_little: false,
            options,
        }
    }

    /// Which form is spoken.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Who the sender is, once it has said so. A listener for many edges learns here which
    /// one the connection is.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// What has come and was not taken, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &Received<B>> {
        let hidden = self.owes_answer();
        self.inbox.iter().filter(move |_| !hidden)
    }

    /// Takes the next element. The credit of a batch comes with it: see [`grant`](Self::grant).
    pub fn poll_element(&mut self) -> Option<Received<B>> {
        if self.owes_answer() {
            // Nothing is taken from somebody who has not proved to be the right one.
            return None;
        }
        let (received, bytes) = self.inbox.pop()?;
        match &received {
            Received::Batch(_) => self.untold += 1,
            Received::Schema(_) => {
                // No rows were declared and none are told, so that this can't fail.
                let told = self.credit.handle_taken(Some(0), 0, bytes);
                debug_assert!(told.is_ok(), "a schema has no rows");
            }
            Received::Control(_) => {}
        }
        Some(received)
    }

    /// Whether a barrier waits that may overtake.
    pub fn has_unaligned(&self) -> bool {
        self.inbox.has_unaligned() && !self.owes_answer()
    }

    /// Takes the first barrier that may overtake, with how many elements are before it.
    pub fn take_unaligned(&mut self) -> Option<(Control, usize)> {
        match self.owes_answer() {
            true => None,
            false => self.inbox.take_unaligned(),
        }
    }

    /// The consumer has a batch, which has so many rows: the sender may send as much again.
    ///
    /// # Errors
    /// The sender lied about the rows, or ignores its window. The session has failed, and the
    /// batch is not to be used.
    pub fn grant(&mut self, taken: Taken, rows: u32) -> Result<(), CreditError> {
        self.untold = self.untold.saturating_sub(1);
        // The sender is at work: what is little now may soon be enough.
        self.little_at = None;
        let told = self.credit.handle_taken(taken.declared, rows, taken.bytes);
        if let Err(error) = told {
            self.fail(error.into());
        }
        told
    }

    /// How the stream ended, once all that came before is taken.
    pub fn poll_end(&self) -> Option<Result<Ending, &SessionError>> {
        self.end
            .as_ref()
            .filter(|_| self.inbox.is_empty())
            .map(|end| end.as_ref().copied())
    }

    /// How the stream ended, as soon as that is known.
    pub fn end(&self) -> Option<Result<Ending, &SessionError>> {
        self.end.as_ref().map(|end| end.as_ref().copied())
    }

    /// Whether there is room for more. While there is none, reading should stop: the sender
    /// is held back by the connection then.
    pub fn wants_read(&self) -> bool {
        self.end.is_none()
            && match &self.body {
                Some(body) => body.is_begun || self.inbox.has_room_for(body.bytes as u64),
                None => self.has_room(),
            }
    }

    /// Reading has begun again, or stopped. Silence counts while this side reads only.
    pub fn handle_reading(&mut self, now: Duration, is_reading: bool) {
        self.liveness.handle_listening(now, is_reading);
    }

    /// The sender has closed its direction, or the connection.
    pub fn handle_eof(&mut self) {
        if self.end.is_some() {
            // After its Close a sender may well do so, and still listens.
            return;
        }
        match self.deframer.handle_eof() {
            Err(error) => self.fail(error.into()),
            Ok(()) => self.fail(SessionError::lost("it closed without ending the stream")),
        }
        // Nobody is there to be told.
        self.abort = None;
        self.hang_up_all();
    }

    /// The connection is broken.
    pub fn handle_lost(&mut self, why: &str) {
        self.fail(SessionError::lost(why));
        self.abort = None;
        self.owes_closed = false;
        self.hang_up_all();
    }

    /// Ends the stream from here: nothing more is wanted, or something failed. What waits can
    /// still be taken. In the negotiated form the peer is told the reason.
    pub fn abort(&mut self, reason: Reason) {
        self.fail(SessionError::Aborted(reason));
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        match (self.silent_until(), self.little_at) {
            (Some(silent), Some(little)) => Some(silent.min(little)),
            (silent, little) => silent.or(little),
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.look_after_little(now);
        if self.silent_until().is_none_or(|at| now < at) {
            return;
        }
        let what = match self.deframer.is_inside_frame() {
            true => "nothing came inside of a frame",
            false => "no answer to the offer came",
        };
        let silence = self.liveness.patience();
        self.fail(SessionError::PeerStalled { what, silence });
    }

    /// When the sender has been silent for too long.
    fn silent_until(&self) -> Option<Duration> {
        if self.end.is_some() {
            return None;
        }
        let stalled = self.liveness.stalled_at();
        let overdue = self.owes_answer().then(|| self.liveness.overdue_at());
        let stalled = stalled.filter(|_| self.deframer.is_inside_frame());
        match (stalled, overdue) {
            (Some(stalled), Some(overdue)) => Some(stalled.min(overdue)),
            (stalled, overdue) => stalled.or(overdue),
        }
    }

    /// What is less than a share of the window is granted when the consumer has had everything
    /// for a while: a sender may have a batch that needs all of the window.
    fn look_after_little(&mut self, now: Duration) {
        let is_negotiated = matches!(self.mode, Mode::Negotiated(_)) && self.end.is_none();
        if !is_negotiated || !self.is_drained() || !self.credit.owes() {
            self.little_at = None;
        } else if self.little_at.is_some_and(|at| at <= now) {
            self.little_at = None;
            self.grants_little = true;
        } else if !self.grants_little && self.little_at.is_none() {
            self.little_at = Some(now + LITTLE_GRANT_AFTER);
        }
    }

    /// Whether the consumer has everything that came.
    fn is_drained(&self) -> bool {
        self.inbox.is_empty() && self.untold == 0
    }

    fn owes_answer(&self) -> bool {
        self.mode == Mode::Undecided && self.options.requires_negotiation()
    }

    fn has_room(&self) -> bool {
        self.owes_answer() || self.inbox.has_room()
    }

    fn extensions(&self) -> Option<Extensions> {
        match self.mode {
            Mode::Negotiated(extensions) => Some(extensions),
            _ => None,
        }
    }

    /// The session fails, once; the peer is told if it may understand and does not know.
    fn fail(&mut self, error: SessionError) {
        if matches!(self.end, Some(Err(_))) {
            return;
        }
        let was_ended = self.end.is_some();
        if was_ended && matches!(error, SessionError::PeerLost { .. }) {
            return;
        }
        self.abort = error
            .reason()
            .filter(|_| !self.is_hung_up && self.is_greeted && self.mode != Mode::V1);
        self.owes_closed = false;
        self.body = None;
        if self.owes_answer() {
            self.inbox.clear();
        }
        self.end = Some(Err(error));
        if self.abort.is_none() {
            self.hang_up_all();
        }
    }

    fn hang_up_all(&mut self) {
        if !self.is_hung_up {
            self.is_hung_up = true;
            self.hang_up = Some(HangUp::Both);
        }
    }
}
