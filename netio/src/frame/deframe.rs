//! Finding frames in bytes that come in any split.

use super::{FRAME_BYTES_MAX, FrameError, HEAD_BYTES, HEADER_BYTES, KEPT_BYTES_MAX, Kind};

/// Whose bytes are read, which decides what kinds mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the sender of elements.
    FromSender,
    /// From the receiver of elements.
    FromReceiver,
    /// Neither: another protocol in the same framing. Every frame but those of kind 0 is a
    /// data frame without a head.
    Opaque,
}

/// What a deframer has found.
#[derive(Debug, PartialEq, Eq)]
pub enum Deframed<'a> {
    /// A small frame, complete.
    Small {
        /// Its kind.
        kind: Kind,
        /// Its body, or the first [`KEPT_BYTES_MAX`] bytes of it.
        body: &'a [u8],
    },
    /// A data frame begins. Its body is the caller's to take, by [`Deframer::take_body`] or
    /// straight from the connection, before the next poll.
    Data {
        /// Its kind.
        kind: Kind,
        /// What stands before the body in the negotiated form, else empty.
        head: &'a [u8],
        /// How long the body is.
        body_bytes: usize,
    },
}

/// Splits the bytes of one direction of a connection into frames.
///
/// It never allocates: small frames fit its fixed buffer, bodies go to the caller's, and the
/// bodies of kinds that mean nothing here are skipped as they come.
#[derive(Debug)]
pub struct Deframer {
    direction: Direction,
    extended: bool,
    limit: u32,
    state: State,
    held: [u8; HEADER_BYTES + KEPT_BYTES_MAX],
    held_bytes: usize,
    /// How much of the frame has arrived, its header counted.
    received: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Between frames, or inside of a header.
    Header,
    /// Inside of what is kept: up to `end` in `held`, then `rest` bytes of body follow.
    Kept { end: usize, rest: usize },
    /// What a small frame has beyond what is kept, or all of a frame that means nothing.
    Skip { left: usize, small: bool },
    /// Inside of a data body.
    Body { left: usize },
}

/// What is done with a frame of a kind.
enum Treatment {
    Small,
    Data { head_bytes: usize },
    Skip,
}

impl Deframer {
    /// A deframer for one direction. Without `extended` the kinds of the negotiated form mean
    /// nothing. Frames above `limit_bytes` (kind and body counted; at most
    /// [`FRAME_BYTES_MAX`]) are refused.
    pub fn new(direction: Direction, extended: bool, limit_bytes: u32) -> Self {
        Self {
            direction,
            extended,
            limit: limit_bytes.min(FRAME_BYTES_MAX),
            state: State::Header,
            held: [0; HEADER_BYTES + KEPT_BYTES_MAX],
            held_bytes: 0,
            received: 0,
        }
    }

    /// From the next frame on, whether kinds of the negotiated form mean something.
    pub fn set_extended(&mut self, extended: bool) {
        self.extended = extended;
    }

    /// Takes bytes off the front of `input` until a frame is found, or none are left (`None`).
    ///
    /// # Errors
    /// The peer broke the framing; end the connection. Any further poll would find nonsense.
    ///
    /// # Panics
    /// If the body of the last data frame was not taken.
    pub fn poll(&mut self, input: &mut &[u8]) -> Result<Option<Deframed<'_>>, FrameError> {
        assert_eq!(self.body_remaining(), 0, "a body has to be taken first");
        loop {
            match self.state {
                State::Header => {
                    if !self.poll_header(input)? {
                        return Ok(None);
                    }
                }
                State::Kept { end, rest } => {
                    if !self.hold(input, end) {
                        return Ok(None);
                    }
                    if let Treatment::Data { .. } = self.treatment() {
                        return Ok(Some(self.begin_body(rest)));
                    }
                    self.state = State::Skip {
                        left: rest,
                        small: true,
                    };
                }
                State::Skip { left, small } => {
                    let skipped = left.min(input.len());
                    self.advance(input, skipped);
                    let left = left - skipped;
                    self.state = State::Skip { left, small };
                    if left > 0 {
                        return Ok(None);
                    }
                    let held = self.end_frame();
                    if small {
                        let kind = self.kind();
                        let body = &self.held[HEADER_BYTES..held];
                        return Ok(Some(Deframed::Small { kind, body }));
                    }
                }
                State::Body { .. } => {
                    self.end_frame();
                }
            }
        }
    }

    /// How many bytes of the current data body are still to come.
    pub fn body_remaining(&self) -> usize {
        match self.state {
            State::Body { left } => left,
            _ => 0,
        }
    }

    /// The part of the current body that stands at the front of `input`, taken off it.
    pub fn take_body<'i>(&mut self, input: &mut &'i [u8]) -> &'i [u8] {
        let (part, rest) = input.split_at(self.body_remaining().min(input.len()));
        *input = rest;
        self.handle_body_bytes(part.len());
        part
    }

    /// This many bytes of the current body went straight into the caller's buffer.
    ///
    /// # Panics
    /// If that is more than the body has.
    pub fn handle_body_bytes(&mut self, bytes: usize) {
        let left = self.body_remaining();
        assert!(bytes <= left, "more bytes than the body has");
        if let State::Body { left } = &mut self.state {
            *left -= bytes;
            self.received += bytes;
        }
    }

    /// Whether some of a frame has arrived, and some has not.
    pub fn is_inside_frame(&self) -> bool {
        match self.state {
            State::Header => self.held_bytes > 0,
            State::Body { left } => left > 0,
            State::Kept { .. } | State::Skip { .. } => true,
        }
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] inside of a frame, its header counted.
    pub fn handle_eof(&self) -> Result<(), FrameError> {
        if self.is_inside_frame() {
            return Err(FrameError::Truncated {
                received_bytes: self.received,
            });
        }
        Ok(())
    }

    /// Takes a header and decides what follows. False where bytes are missing.
    fn poll_header(&mut self, input: &mut &[u8]) -> Result<bool, FrameError> {
        // The length is judged as soon as it is known, not when the kind has come.
        if !self.hold(input, HEADER_BYTES - 1) {
            return Ok(false);
        }
        let length = self.length();
        if length == 0 {
            return Err(FrameError::Empty);
        }
        if length > self.limit {
            return Err(FrameError::TooLong {
                length_bytes: length,
                limit_bytes: self.limit,
            });
        }
        if !self.hold(input, HEADER_BYTES) {
            return Ok(false);
        }
        let body = length as usize - 1;
        let kept = match self.treatment() {
            Treatment::Skip if self.kind() == Kind::LEGACY_DATA => {
                return Err(FrameError::LegacyKind);
            }
            Treatment::Skip => {
                self.state = State::Skip {
                    left: body,
                    small: false,
                };
                return Ok(true);
            }
            Treatment::Data { head_bytes } if body < head_bytes => {
                return Err(FrameError::Short {
                    kind: self.kind(),
                    body_bytes: body,
                    needed_bytes: head_bytes,
                });
            }
            Treatment::Data { head_bytes } => head_bytes,
            Treatment::Small => body.min(KEPT_BYTES_MAX),
        };
        self.state = State::Kept {
            end: HEADER_BYTES + kept,
            rest: body - kept,
        };
        Ok(true)
    }

    fn begin_body(&mut self, body_bytes: usize) -> Deframed<'_> {
        self.state = State::Body { left: body_bytes };
        Deframed::Data {
            kind: self.kind(),
            head: &self.held[HEADER_BYTES..self.held_bytes],
            body_bytes,
        }
    }

    /// Forgets the frame, and says how much of it is still held.
    fn end_frame(&mut self) -> usize {
        self.state = State::Header;
        self.received = 0;
        std::mem::take(&mut self.held_bytes)
    }

    /// Fills what is held up to `end`. False where bytes are missing.
    fn hold(&mut self, input: &mut &[u8], end: usize) -> bool {
        let taken = end.saturating_sub(self.held_bytes).min(input.len());
        self.held[self.held_bytes..self.held_bytes + taken].copy_from_slice(&input[..taken]);
        self.held_bytes += taken;
        self.advance(input, taken);
        self.held_bytes >= end
    }

    fn advance(&mut self, input: &mut &[u8], bytes: usize) {
        *input = &input[bytes..];
        self.received += bytes;
    }

    fn length(&self) -> u32 {
        let [a, b, c, d, ..] = self.held;
        u32::from_be_bytes([a, b, c, d])
    }

    fn kind(&self) -> Kind {
        Kind(self.held[HEADER_BYTES - 1])
    }

    fn treatment(&self) -> Treatment {
        let from_sender = match self.direction {
            Direction::FromSender => true,
            Direction::FromReceiver => false,
            Direction::Opaque if self.kind() == Kind::LEGACY_DATA => return Treatment::Skip,
            Direction::Opaque => return Treatment::Data { head_bytes: 0 },
        };
        match self.kind() {
            Kind::ARROW_BATCH if from_sender => Treatment::Data { head_bytes: 0 },
            Kind::SCHEMA | Kind::BATCH if from_sender && self.extended => Treatment::Data {
                head_bytes: HEAD_BYTES,
            },
            Kind::WATERMARK | Kind::WATERMARK_IDLE | Kind::BARRIER | Kind::TERMINAL
                if from_sender =>
            {
                Treatment::Small
            }
            Kind::DRAIN | Kind::CLOSE if from_sender => Treatment::Small,
            Kind::ACCEPT if from_sender && self.extended => Treatment::Small,
            Kind::CREDIT_UPDATE if !from_sender => Treatment::Small,
            Kind::GRANT | Kind::CLOSED if !from_sender && self.extended => Treatment::Small,
            Kind::ABORT if self.extended => Treatment::Small,
            _ => Treatment::Skip,
        }
    }
}
