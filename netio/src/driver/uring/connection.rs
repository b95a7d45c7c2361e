//! One connection: what is under way on it, and what comes next.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::net::{Shutdown, TcpStream};

use bytes::Bytes;
use rustix::io::Errno;

use super::Io;
use super::direct::Pace;
use super::message::Message;
use super::ring::{self, Done};
use super::token::{Operation, Token};
use crate::buffer::Body;
use crate::driver::acknowledging::{Acknowledging, acknowledge_late};
use crate::driver::burst::Burst;
use crate::driver::outgoing::Outgoing;
use crate::driver::slots::Key;
use crate::driver::{Chunk, Completion, ConnectionId, Socket};

/// A connection. What the kernel reads and writes for it stays in it until the operation has
/// come back for the last time; only then is it let go.
pub(super) struct Connection {
    key: Key,
    pub(super) stream: TcpStream,
    stage: Stage,
    receiving: Receiving,
    /// The receiving operation has been asked to end.
    cancelled: bool,
    reads: bool,
    /// No buffer was left, and too few have come back since.
    starved: bool,
    /// A body has just come, and its caller may want another one: no chunk is asked for until
    /// the next poll, since what follows would go to it.
    held: bool,
    /// Nothing more is received, and the caller knows.
    ended: bool,
    /// The connection is broken, and the caller knows.
    lost: bool,
    body: Option<Body>,
    sending: Sending,
    outgoing: Outgoing,
    message: Option<Box<Message>>,
    acknowledging: Acknowledging,
    pace: Pace,
    burst: Burst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// To be given back, once nothing is under way.
    Detaching,
    /// To be dropped, once nothing is under way.
    Closing,
}

/// How bytes are received at the moment: by which operation, or by calls of this thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receiving {
    Nothing,
    Chunks,
    /// One chunk with all but the tail of what is likely to come.
    First,
    Body,
    Direct,
}

#[derive(Debug)]
enum Sending {
    Idle,
    InFlight {
        /// The direction is to end after it.
        last: bool,
    },
    /// It failed. This is told once everything is read that came before.
    Broken(io::Error),
    /// It failed or was ended, and the caller knows.
    Ended,
}

/// What becomes of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    /// Nothing is under way, and it is to be let go.
    Leave,
}

impl Connection {
    pub(super) fn new(key: Key, stream: TcpStream) -> Self {
        Self {
            key,
            stream,
            stage: Stage::Open,
            receiving: Receiving::Nothing,
            cancelled: false,
            reads: false,
            starved: false,
            held: false,
            ended: false,
            lost: false,
            body: None,
            sending: Sending::Idle,
            outgoing: Outgoing::default(),
            message: None,
            acknowledging: Acknowledging::default(),
            pace: Pace::default(),
            burst: Burst::default(),
        }
    }

    pub(super) fn set_reading(&mut self, reads: bool) {
        self.reads = reads && self.stage == Stage::Open;
    }

    pub(super) fn expect_tail(&mut self, bytes: usize) {
        self.burst.expect_tail(bytes);
    }

    pub(super) fn read_body(&mut self, body: Body, done: &mut Vec<Completion>) {
        if self.stage == Stage::Closing {
            return;
        }
        assert!(self.body.is_none(), "one body at a time");
        let is_over = self.ended || self.stage != Stage::Open || body.remaining() == 0;
        self.body = Some(body);
        if is_over {
            self.give_body_back(0, done);
        }
    }

    /// Buffers have come back.
    pub(super) fn feed(&mut self) {
        self.starved = false;
    }

    /// The caller has seen the body that came.
    pub(super) fn release(&mut self) {
        self.held = false;
    }

    /// Begins a send. With `at_once` the kernel is asked right away for what it takes without
    /// waiting, which is all of it as long as the peer keeps up; the rest goes with the ring.
    pub(super) fn send(
        &mut self,
        queue: &mut VecDeque<Bytes>,
        at_once: bool,
        io: &mut Io,
        done: &mut Vec<Completion>,
    ) -> usize {
        let is_open = self.stage == Stage::Open && !self.lost;
        if !is_open || !matches!(self.sending, Sending::Idle) {
            return 0;
        }
        let bytes = self.outgoing.gather(queue);
        if bytes > 0 {
            self.sending = Sending::InFlight { last: false };
            match at_once {
                true => self.send_at_once(io, done),
                false => self.submit_send(io),
            }
        }
        bytes
    }

    /// What was sent at once is told.
    pub(super) fn tell_sent(&mut self, done: &mut Vec<Completion>) {
        if let Sending::InFlight { last } = self.sending {
            self.finish_send(last, done);
        }
    }

    pub(super) fn shutdown_write(&mut self) {
        match &mut self.sending {
            Sending::Idle => self.end_sending(),
            Sending::InFlight { last } => *last = true,
            Sending::Broken(_) | Sending::Ended => {}
        }
    }

    pub(super) fn detach(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Detaching;
            self.reads = false;
        }
    }

    pub(super) fn close(&mut self, io: &mut Io) {
        if self.stage == Stage::Closing {
            return;
        }
        self.stage = Stage::Closing;
        // Closing the descriptor alone would end nothing: what is under way keeps the socket.
        // A shutdown of both directions would end it, but lets the receive that is under way
        // take what has come without a word to the peer: the kernel opens no window for a
        // direction that was shut, and has no reason to reset a socket that was read to its
        // end. So a peer whose window was closed would wait for as long as the kernel answers
        // for that socket, which is a minute. `proceed` cancels what is received.
        if self.outgoing_is_in_flight() {
            io.ring.cancel(Token::new(Operation::Send, self.key));
        }
    }

    /// Bytes of the send in flight that the kernel does not have yet, as far as is known.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.outgoing.remaining()
    }

    /// A receiving operation has brought something, or has ended.
    pub(super) fn received(&mut self, came: Done, io: &mut Io, done: &mut Vec<Completion>) {
        let receiving = self.receiving;
        if !came.more {
            self.receiving = Receiving::Nothing;
            self.cancelled = false;
        }
        // The kernel may have chosen a buffer also where it had nothing to put into it.
        let chunk = came.buffer.and_then(|id| {
            let chunks = io.chunks.as_mut()?;
            Some(chunks.take(id, came.result.unwrap_or(0)))
        });
        if self.stage == Stage::Closing {
            return;
        }
        match came.result {
            Ok(0) => self.end(done),
            Ok(bytes) if receiving == Receiving::Body => self.fill_body(bytes as usize, io, done),
            Ok(bytes) => {
                let room = io.settings.chunk_bytes as usize;
                let asked = match receiving {
                    Receiving::First => self.burst.wanted(room),
                    _ => room,
                };
                self.handle_read(bytes as usize, asked, io);
                if let Some(chunk) = chunk {
                    self.deliver(chunk, io, done);
                }
            }
            Err(Errno::NOBUFS) if matches!(receiving, Receiving::Chunks | Receiving::First) => {
                self.starved = true;
                io.starved.push(self.key);
            }
            Err(Errno::CANCELED | Errno::INTR | Errno::AGAIN) => {}
            Err(error) => {
                let error = self.take_broken().unwrap_or_else(|| error.into());
                self.lose(error, done);
            }
        }
    }

    /// Asks the kernel for what has come, and takes it.
    pub(super) fn ask(&mut self, io: &mut Io, done: &mut Vec<Completion>) {
        if self.receiving != Receiving::Direct {
            return;
        }
        let Some(mut lent) = io.direct.pool.lend() else {
            return self.end_direct();
        };
        let wanted = self.burst.wanted(lent.buffer().len());
        match ring::receive_at_once(&self.stream, &mut lent.buffer()[..wanted]) {
            Ok(0) => {
                self.receiving = Receiving::Nothing;
                self.end(done);
            }
            Ok(bytes) => {
                self.handle_read(bytes, wanted, io);
                let (connection, chunk) = (self.id(), lent.into_chunk(bytes));
                done.push(Completion::Read { connection, chunk });
            }
            Err(Errno::AGAIN) => {
                self.burst.handle_nothing();
                self.pace.handle_nothing();
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                self.receiving = Receiving::Nothing;
                let error = self.take_broken().unwrap_or_else(|| error.into());
                self.lose(error, done);
            }
        }
    }

    /// Whether it is to be asked.
    pub(super) fn is_asked(&self) -> bool {
        self.receiving == Receiving::Direct
    }

    /// Lets the ring receive.
    pub(super) fn end_direct(&mut self) {
        self.pace.end();
        self.burst.forget_tail();
    }

    /// A send has ended, maybe short of what was asked.
    pub(super) fn sent(&mut self, came: Done, io: &mut Io, done: &mut Vec<Completion>) {
        let Sending::InFlight { last } = self.sending else {
            debug_assert!(false, "a send that nobody began");
            return;
        };
        let error = match came.result {
            Ok(0) => Errno::PIPE,
            Ok(bytes) => {
                self.outgoing.advance(bytes as usize);
                if self.outgoing.is_empty() {
                    return self.finish_send(last, done);
                }
                io.short_sends += 1;
                Errno::INTR
            }
            Err(error) => error,
        };
        let goes_on = matches!(error, Errno::INTR | Errno::AGAIN) && self.stage != Stage::Closing;
        if goes_on {
            return self.submit_send(io);
        }
        self.outgoing.clear();
        self.break_sending(error.into(), done);
    }

    /// Asks for what comes next, and tells whether the connection is to go.
    pub(super) fn proceed(&mut self, io: &mut Io, done: &mut Vec<Completion>) -> Next {
        if self.stage != Stage::Closing
            && self.is_broken_and_drained()
            && let Some(error) = self.take_broken()
        {
            self.lose(error, done);
        }
        let wanted = match self.stage {
            Stage::Open if self.ended => Receiving::Nothing,
            Stage::Open if self.body.is_some() => Receiving::Body,
            Stage::Open if self.reads && self.is_to_be_asked(io) => Receiving::Direct,
            Stage::Open if self.reads && !self.starved && !self.held => self.chunks_wanted(io),
            _ => Receiving::Nothing,
        };
        if self.receiving == Receiving::Direct && wanted != Receiving::Direct {
            // The kernel has nothing of it.
            self.receiving = Receiving::Nothing;
        }
        match (self.receiving, wanted) {
            (Receiving::Nothing, Receiving::Nothing) => {}
            (Receiving::Nothing, Receiving::Chunks) => self.receive_chunks(io),
            (Receiving::Nothing, Receiving::First) => self.receive_first(io),
            // It comes back by itself, and whatever it brings is as good.
            (Receiving::First, Receiving::Chunks) => {}
            (Receiving::Nothing, Receiving::Body) => self.receive_body(io),
            (Receiving::Nothing, Receiving::Direct) => {
                self.receiving = Receiving::Direct;
                io.direct.begin(self.key);
            }
            (current, wanted) if current != wanted && !self.cancelled => {
                self.cancelled = true;
                io.ring.cancel(Token::new(Operation::Receive, self.key));
            }
            _ => {}
        }
        if self.stage != Stage::Open && self.is_idle() {
            Next::Leave
        } else {
            Next::Stay
        }
    }

    /// Ends a connection that [`Connection::proceed`] lets leave.
    pub(super) fn leave(mut self, done: &mut Vec<Completion>) {
        let connection = self.id();
        if self.stage == Stage::Closing {
            // Before this is told: whoever hears it may count descriptors.
            drop(self.stream);
            done.push(Completion::Closed { connection });
            return;
        }
        self.give_body_back(0, done);
        if let Some(error) = self.take_broken() {
            self.lose(error, done);
        }
        done.push(Completion::Detached {
            connection,
            socket: Socket::Tcp(self.stream),
        });
    }

    fn id(&self) -> ConnectionId {
        self.key.into()
    }

    fn is_idle(&self) -> bool {
        self.receiving == Receiving::Nothing && !self.outgoing_is_in_flight()
    }

    fn outgoing_is_in_flight(&self) -> bool {
        matches!(self.sending, Sending::InFlight { .. })
    }

    /// Whether a send has failed, nobody reads, and nothing is there to be read later.
    fn is_broken_and_drained(&self) -> bool {
        let reads = self.reads || self.body.is_some() || self.receiving != Receiving::Nothing;
        matches!(self.sending, Sending::Broken(_))
            && !reads
            && rustix::io::ioctl_fionread(&self.stream).unwrap_or(0) == 0
    }

    fn receive_chunks(&mut self, io: &mut Io) {
        if let Some(chunks) = &io.chunks {
            self.receiving = Receiving::Chunks;
            let token = Token::new(Operation::Receive, self.key);
            io.ring.receive_chunks(&self.stream, chunks, token);
        }
    }

    /// Whether this thread asks the kernel, because frames come one after the other or because
    /// the tail of one was left.
    fn is_to_be_asked(&self, io: &Io) -> bool {
        self.pace.is_direct() || io.is_few && self.burst.leaves_tail()
    }

    fn chunks_wanted(&self, io: &Io) -> Receiving {
        match io.is_few && self.burst.is_steady() {
            true => Receiving::First,
            false => Receiving::Chunks,
        }
    }

    fn receive_first(&mut self, io: &mut Io) {
        if let Some(chunks) = &io.chunks {
            self.receiving = Receiving::First;
            let token = Token::new(Operation::Receive, self.key);
            let bytes = self.burst.wanted(io.settings.chunk_bytes as usize);
            io.ring.receive_chunk(&self.stream, chunks, bytes, token);
        }
    }

    fn receive_body(&mut self, io: &mut Io) {
        let Some(body) = &mut self.body else { return };
        self.receiving = Receiving::Body;
        let token = Token::new(Operation::Receive, self.key);
        // What follows the body is received with its end where the caller reads on.
        let target = match self.reads {
            true => body.spare_and_beyond(),
            false => body.spare(),
        };
        // SAFETY: the body stays in this connection, untouched, until the operation has come
        // back: it is given away only where nothing is received, and the driver lets a
        // connection go only when nothing is under way.
        unsafe { io.ring.receive_into(&self.stream, target, token) };
    }

    fn send_at_once(&mut self, io: &mut Io, done: &mut Vec<Completion>) {
        match ring::send_at_once(&self.stream, &self.outgoing) {
            Ok(bytes) => self.outgoing.advance(bytes),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => {
                self.outgoing.clear();
                return self.break_sending(error.into(), done);
            }
        }
        match self.outgoing.is_empty() {
            true => io.sent.push(self.key),
            false => self.submit_send(io),
        }
    }

    fn submit_send(&mut self, io: &mut Io) {
        let message = self.message.get_or_insert_with(Message::new);
        message.set(&self.outgoing);
        let token = Token::new(Operation::Send, self.key);
        // SAFETY: the message is boxed, and the segments that it refers to are in `outgoing`.
        // Neither is touched until the operation has come back, and the driver lets a
        // connection go only when nothing is under way.
        unsafe { io.ring.send(&self.stream, message, token) };
    }

    /// So many bytes of those that were asked for were read into a chunk.
    fn handle_read(&mut self, bytes: usize, asked: usize, io: &Io) {
        self.burst.handle_read(bytes, asked);
        self.pace.handle_read(bytes, io.direct.sleeps, io.is_few);
        if self.acknowledging.handle_read() {
            acknowledge_late(&self.stream);
        }
    }

    /// Takes what arrived in a chunk: into the body that has been asked for meanwhile, or to
    /// the caller.
    fn deliver(&mut self, mut chunk: super::RingChunk, io: &mut Io, done: &mut Vec<Completion>) {
        if let Some(body) = &mut self.body {
            let bytes = chunk.len().min(body.remaining());
            body.extend_from_slice(&chunk[..bytes]);
            io.copied_bytes += bytes as u64;
            chunk.skip(bytes);
            self.tell_progress(bytes, done);
            if chunk.is_empty() {
                return;
            }
        }
        done.push(Completion::Read {
            connection: self.id(),
            chunk: Chunk::from(chunk),
        });
    }

    /// The kernel has put bytes into the body, and maybe behind it.
    fn fill_body(&mut self, bytes: usize, io: &mut Io, done: &mut Vec<Completion>) {
        let Some(body) = &mut self.body else { return };
        let beyond = body.advance_beyond(bytes).to_vec();
        let is_full = body.remaining() == 0;
        self.tell_progress(bytes - beyond.len(), done);
        if is_full && !self.held {
            self.held = true;
            io.held.push(self.key);
        }
        if !beyond.is_empty() {
            io.copied_bytes += beyond.len() as u64;
            done.push(Completion::Read {
                connection: self.id(),
                chunk: Chunk::new(beyond),
            });
        }
    }

    fn tell_progress(&mut self, bytes: usize, done: &mut Vec<Completion>) {
        if self.body.as_ref().is_some_and(|body| body.remaining() == 0) {
            self.give_body_back(bytes, done);
        } else {
            let connection = self.id();
            done.push(Completion::BodyProgress { connection, bytes });
        }
    }

    fn give_body_back(&mut self, bytes: usize, done: &mut Vec<Completion>) {
        debug_assert!(self.receiving != Receiving::Body, "the kernel has it");
        if let Some(body) = self.body.take() {
            done.push(Completion::Body {
                connection: self.id(),
                bytes,
                body,
            });
        }
    }

    /// Nothing more is received: the peer has ended its direction, or a failed send has ended
    /// both.
    fn end(&mut self, done: &mut Vec<Completion>) {
        if let Some(error) = self.take_broken() {
            return self.lose(error, done);
        }
        self.ended = true;
        self.give_body_back(0, done);
        let connection = self.id();
        done.push(Completion::Eof { connection });
    }

    fn take_broken(&mut self) -> Option<io::Error> {
        match mem::replace(&mut self.sending, Sending::Ended) {
            Sending::Broken(error) => Some(error),
            other => {
                self.sending = other;
                None
            }
        }
    }

    fn lose(&mut self, error: io::Error, done: &mut Vec<Completion>) {
        if mem::replace(&mut self.lost, true) {
            return;
        }
        self.ended = true;
        self.give_body_back(0, done);
        let connection = self.id();
        done.push(Completion::Lost { connection, error });
    }

    fn finish_send(&mut self, last: bool, done: &mut Vec<Completion>) {
        self.sending = Sending::Idle;
        if self.stage != Stage::Closing && !self.lost {
            done.push(Completion::Sent {
                connection: self.id(),
                bytes: self.outgoing.bytes(),
            });
        }
        if last {
            self.end_sending();
        }
    }

    fn end_sending(&mut self) {
        self.sending = Sending::Ended;
        // It fails where the connection is over, and then receiving tells.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// A send has failed. What the peer sent before is read first.
    fn break_sending(&mut self, error: io::Error, done: &mut Vec<Completion>) {
        self.sending = Sending::Ended;
        if self.stage == Stage::Closing {
            return;
        }
        if self.ended {
            return self.lose(error, done);
        }
        self.sending = Sending::Broken(error);
        // It may still stand, and reading would then go on for ever.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
