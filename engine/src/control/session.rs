//! One end of one control connection.

use std::collections::VecDeque;
use std::time::Duration;

use ringway_netio::frame::{BodyBuffer, Deframed, Deframer, Direction, FrameError, Kind};

use super::message::Message;
use super::{ControlError, Hello, MESSAGE_BYTES_MAX, TEXT_BYTES_MAX, decode, encode};

/// The longest message of a peer that has not said who it is.
const GREETING_BYTES_MAX: usize = 3 * TEXT_BYTES_MAX;

/// How a control session is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlOptions {
    /// Time between two signs of life. Default: 1 s.
    pub heartbeat: Duration,
    /// Time without a sign of life after which the peer is lost. Default: 5 s.
    pub lost_after: Duration,
    /// Time in which the peer has to say who it is. Default: 5 s.
    pub greet_within: Duration,
}

/// One end of one control connection: greets, keeps it alive, and turns bytes into messages.
///
/// `now` is the time since any moment, the same one for the whole session. What has come is
/// taken with [`ControlSession::poll_message`]; what is to be sent with
/// [`ControlSession::poll_transmit`]. After an error nothing more comes, and what was to be
/// sent still can be, so that the peer learns why.
#[derive(Debug)]
pub struct ControlSession {
    own: Hello,
    peer: Option<Hello>,
    options: ControlOptions,
    deframer: Deframer,
    body: Option<(Kind, BodyBuffer)>,
    outgoing: Vec<u8>,
    incoming: VecDeque<Message>,
    began_at: Duration,
    heard_at: Duration,
    said_at: Duration,
    error: Option<ControlError>,
}

impl Default for ControlOptions {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(1),
            lost_after: Duration::from_secs(5),
            greet_within: Duration::from_secs(5),
        }
    }
}

impl ControlOptions {
    /// The shortest time after which a peer that says nothing may count as lost: a process
    /// that only waits for its turn on a busy host says nothing for a while.
    pub const LOST_AFTER_MIN: Duration = Duration::from_millis(100);

    /// These times for a peer that is lost after `lost_after`: signs of life are so much more
    /// frequent, and a second apart at most.
    pub fn lost_after(self, lost_after: Duration) -> Self {
        Self {
            lost_after,
            heartbeat: self.heartbeat.min(lost_after / 5),
            ..self
        }
    }

    /// Makes sure that a session can be kept so.
    ///
    /// # Errors
    /// What is wrong, in words: a time is too short, or signs of life would come too late.
    pub fn validate(&self) -> Result<(), String> {
        if self.lost_after < Self::LOST_AFTER_MIN {
            return Err(format!(
                "a process cannot count as lost after {} ms: give it {} ms at least",
                self.lost_after.as_millis(),
                Self::LOST_AFTER_MIN.as_millis()
            ));
        }
        if self.heartbeat.is_zero() || self.heartbeat >= self.lost_after {
            return Err(format!(
                "signs of life every {} ms are none for a peer that is lost after {} ms: send \
                 them more often",
                self.heartbeat.as_millis(),
                self.lost_after.as_millis()
            ));
        }
        match self.greet_within.is_zero() {
            true => Err("a peer needs some time to say who it is".to_owned()),
            false => Ok(()),
        }
    }
}

impl ControlSession {
    /// A session that says first who this process is.
    pub fn new(own: Hello, options: ControlOptions, now: Duration) -> Self {
        let mut session = Self {
            own,
            peer: None,
            options,
            deframer: Deframer::new(Direction::Opaque, true, MESSAGE_BYTES_MAX),
            body: None,
            outgoing: Vec::new(),
            incoming: VecDeque::new(),
            began_at: now,
            heard_at: now,
            said_at: now,
            error: None,
        };
        let hello = Message::Hello(session.own.clone());
        session.push(now, &hello);
        session
    }

    /// Who the peer is, once it has said so and fits.
    pub fn peer(&self) -> Option<&Hello> {
        self.peer.as_ref()
    }

    /// Why the session is over, if it is.
    pub fn error(&self) -> Option<&ControlError> {
        self.error.as_ref()
    }

    /// Bytes have come.
    pub fn handle_input(&mut self, now: Duration, mut input: &[u8]) {
        self.heard_at = now;
        while self.error.is_none() {
            match self.next_message(&mut input) {
                Ok(Some((kind, body))) => self.handle_message(now, kind, &body),
                Ok(None) => return,
                Err(error) => self.fail(ControlError::Broken(error.to_string())),
            }
        }
    }

    /// The peer has ended the connection.
    pub fn handle_eof(&mut self) {
        self.fail(ControlError::Closed);
    }

    /// The connection cannot be read or written.
    pub fn handle_lost(&mut self, cause: impl Into<String>) {
        self.fail(ControlError::Lost(cause.into()));
    }

    /// Time has passed: says a sign of life if it is due, and gives a silent peer up.
    pub fn handle_timeout(&mut self, now: Duration) {
        let silent = now.saturating_sub(self.heard_at);
        if self.peer.is_none() {
            // Whatever else it says does not make it a peer.
            if now >= self.greet_by() {
                let within = self.options.greet_within;
                self.fail(ControlError::Ungreeted { within });
            }
        } else if silent >= self.options.lost_after {
            self.fail(ControlError::Silent { silent });
        }
        if self.error.is_none() && now.saturating_sub(self.said_at) >= self.options.heartbeat {
            self.push(now, &Message::Heartbeat);
        }
    }

    /// When [`ControlSession::handle_timeout`] is to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.error.is_none().then(|| {
            let heartbeat = self.said_at.saturating_add(self.options.heartbeat);
            let lost_at = match &self.peer {
                None => self.greet_by(),
                Some(_) => self.heard_at.saturating_add(self.options.lost_after),
            };
            heartbeat.min(lost_at)
        })
    }

    /// Something is to be told.
    pub fn push(&mut self, now: Duration, message: &Message) {
        if self.error.is_some() {
            return;
        }
        self.said_at = now;
        if let Err(error) = encode::message(&mut self.outgoing, message) {
            self.fail(ControlError::Broken(error.to_string()));
        }
    }

    /// The peer is not wanted, for this reason; it is told.
    pub fn refuse(&mut self, now: Duration, reason: impl Into<String>) {
        let reason = reason.into();
        self.push(now, &Message::Refused(reason.clone()));
        self.fail(ControlError::Mismatch(reason));
    }

    /// The next message, the greeting and the signs of life aside.
    pub fn poll_message(&mut self) -> Option<Message> {
        self.incoming.pop_front()
    }

    /// How many messages wait for [`ControlSession::poll_message`].
    pub fn waiting(&self) -> usize {
        self.incoming.len()
    }

    /// Whether there is something to be sent.
    pub fn has_transmit(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Moves what is to be sent behind what is in `out`.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.outgoing);
    }

    fn greet_by(&self) -> Duration {
        self.began_at.saturating_add(self.options.greet_within)
    }

    /// The next whole frame, its bytes taken off the front of `input`.
    fn next_message(&mut self, input: &mut &[u8]) -> Result<Option<(Kind, Vec<u8>)>, FrameError> {
        loop {
            if let Some((kind, body)) = &mut self.body {
                body.fill(self.deframer.take_body(input));
                if body.missing() > 0 {
                    return Ok(None);
                }
                let kind = *kind;
                let body = self.body.take().map(|(_, body)| body.into_bytes());
                return Ok(body.map(|body| (kind, body)));
            }
            match self.deframer.poll(input)? {
                None => return Ok(None),
                Some(Deframed::Data {
                    kind, body_bytes, ..
                }) => {
                    if self.peer.is_none() && body_bytes > GREETING_BYTES_MAX {
                        return Err(FrameError::TooLong {
                            length_bytes: u32::try_from(body_bytes).unwrap_or(u32::MAX),
                            limit_bytes: GREETING_BYTES_MAX as u32,
                        });
                    }
                    self.body = Some((kind, BodyBuffer::new(body_bytes)));
                }
                // Every frame of another protocol is a data frame.
                Some(Deframed::Small { .. }) => {}
            }
        }
    }

    fn handle_message(&mut self, now: Duration, kind: Kind, body: &[u8]) {
        let message = match decode::message(kind, body) {
            Ok(Some(message)) => message,
            Ok(None) if self.peer.is_some() => return,
            Ok(None) => {
                let problem = format!(
                    "it began with a message {}: the job there runs already, or something else \
                     listens there",
                    kind.0
                );
                return self.fail(ControlError::Broken(problem));
            }
            Err(problem) => return self.fail(ControlError::Broken(problem)),
        };
        match (message, &self.peer) {
            (Message::Refused(reason), _) => self.fail(ControlError::Refused(reason)),
            (Message::Hello(peer), None) => match self.own.mismatch(&peer) {
                Some(reason) => self.refuse(now, reason),
                None => self.peer = Some(peer),
            },
            (Message::Hello(_), Some(_)) => {
                self.fail(ControlError::Broken("it said twice who it is".to_owned()));
            }
            (_, None) => {
                let problem = "it did not say first who it is";
                self.fail(ControlError::Broken(problem.to_owned()));
            }
            (Message::Heartbeat, Some(_)) => {}
            (message, Some(_)) => self.incoming.push_back(message),
        }
    }

    /// The first error counts.
    fn fail(&mut self, error: ControlError) {
        self.error.get_or_insert(error);
    }
}
