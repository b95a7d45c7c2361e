//! One connection: what is known of its stream, what was asked of it, what it owes.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use rustix::io::Errno;

use super::{Readiness, Stream};
use crate::buffer::Body;
use crate::driver::acknowledging::Acknowledging;
use crate::driver::burst::Burst;
use crate::driver::chunk_pool::ChunkPool;
use crate::driver::outgoing::Outgoing;
use crate::driver::{Completion, ConnectionId};

/// Bytes that are read from one connection before the next has its turn, about.
const SERVE_BYTES_MAX: usize = 256 << 10;

/// What one poll has for its connections.
pub(super) struct Turn<'a> {
    pub(super) pool: &'a ChunkPool,
    pub(super) completions: &'a mut Vec<Completion>,
    pub(super) bytes_left: usize,
}

/// What a connection waits for, once it has been served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The kernel or the caller.
    Wait,
    /// Its turn.
    Again,
    /// A chunk of the pool.
    Starved,
    /// Nothing: its socket goes back to the caller.
    Detach,
}

/// How far the receiving direction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receiving {
    Open,
    Ended,
}

/// How far the sending direction is.
#[derive(Debug)]
enum Sending {
    Open,
    /// It ends after the send in flight.
    Ending,
    Ended,
    /// A call failed, and the caller does not know yet.
    Broken(io::Error),
}

pub(super) struct Connection<S> {
    pub(super) stream: S,
    /// A read may find something.
    readable: bool,
    /// A write may find room.
    writable: bool,
    /// The peer has ended or broken the connection: a read finds out, after the last byte.
    hung_up: bool,
    /// The next poll looks at it.
    queued: bool,
    /// It is among those that want a chunk.
    starved: bool,
    reads: bool,
    body: Option<Body>,
    receiving: Receiving,
    acknowledging: Acknowledging,
    burst: Burst,
    outgoing: Outgoing,
    /// A send was begun, and the caller was not told that it is done.
    in_flight: bool,
    sending: Sending,
    detaching: bool,
}

impl<S: Stream> Connection<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            readable: false,
            writable: true,
            hung_up: false,
            queued: false,
            starved: false,
            reads: false,
            body: None,
            receiving: Receiving::Open,
            acknowledging: Acknowledging::default(),
            burst: Burst::default(),
            outgoing: Outgoing::default(),
            in_flight: false,
            sending: Sending::Open,
            detaching: false,
        }
    }

    /// Whether it was not in the queue, in which it is now.
    pub(super) fn enqueue(&mut self) -> bool {
        !std::mem::replace(&mut self.queued, true)
    }

    pub(super) fn dequeue(&mut self) {
        self.queued = false;
    }

    /// Whether it was not among those that want a chunk, where it is now.
    pub(super) fn starve(&mut self) -> bool {
        !std::mem::replace(&mut self.starved, true)
    }

    pub(super) fn feed(&mut self) {
        self.starved = false;
    }

    pub(super) fn handle_readiness(&mut self, readiness: Readiness) {
        self.hung_up |= readiness.hung_up;
        self.readable |= readiness.readable || readiness.hung_up;
        self.writable |= readiness.writable;
    }

    /// Whether it would do something if the stream were as `readiness` says.
    pub(super) fn would_act(&self, readiness: Readiness) -> bool {
        let read = self.wants_to_read() && (readiness.readable || readiness.hung_up);
        read || readiness.writable && !self.outgoing.is_empty()
    }

    pub(super) fn send(&mut self, queue: &mut VecDeque<Bytes>) -> usize {
        let open = matches!(self.sending, Sending::Open);
        if self.in_flight || self.detaching || !open {
            return 0;
        }
        let bytes = self.outgoing.gather(queue);
        self.in_flight = bytes > 0;
        self.flush();
        bytes
    }

    pub(super) fn set_reading(&mut self, reads: bool) {
        self.reads = reads && !self.detaching;
    }

    pub(super) fn expect_tail(&mut self, bytes: usize) {
        self.burst.expect_tail(bytes);
    }

    pub(super) fn read_body(&mut self, body: Body) {
        assert!(self.body.is_none(), "one body at a time");
        self.body = Some(body);
    }

    pub(super) fn shutdown_write(&mut self) {
        if matches!(self.sending, Sending::Open) {
            self.sending = Sending::Ending;
            self.flush();
        }
    }

    pub(super) fn detach(&mut self) {
        self.reads = false;
        self.detaching = true;
    }

    /// Bytes of the send in flight that the kernel does not have yet.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.outgoing.remaining()
    }

    /// Does what can be done now, and tells of it.
    pub(super) fn serve(&mut self, connection: ConnectionId, turn: &mut Turn<'_>) -> Next {
        self.flush();
        if self.in_flight && self.outgoing.is_empty() && !self.is_broken() {
            self.in_flight = false;
            let bytes = self.outgoing.bytes();
            turn.completions
                .push(Completion::Sent { connection, bytes });
        }
        let next = if self.detaching {
            self.give_body_back(connection, 0, turn);
            Next::Wait
        } else {
            self.receive(connection, turn)
        };
        // What the peer sent before it broke the connection is worth reading first.
        if next == Next::Wait && self.is_broken() && !self.may_read_later() {
            self.tell_broken(connection, turn);
        }
        if self.detaching && !self.in_flight && !self.is_broken() {
            return Next::Detach;
        }
        next
    }

    /// Whether bytes wait until reading is turned on.
    fn may_read_later(&self) -> bool {
        !self.detaching && !self.wants_to_read() && self.stream.has_unread()
    }

    fn wants_to_read(&self) -> bool {
        self.receiving == Receiving::Open && (self.reads || self.body.is_some())
    }

    fn is_broken(&self) -> bool {
        matches!(self.sending, Sending::Broken(_))
    }

    /// Writes what the kernel takes, and ends the direction if that is what is left to do.
    fn flush(&mut self) {
        while self.writable && !self.outgoing.is_empty() {
            let (slices, count) = self.outgoing.slices();
            match self.stream.write(&slices[..count]) {
                Ok(bytes) => self.outgoing.advance(bytes),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.writable = false,
                Err(error) => self.break_sending(error),
            }
        }
        if self.outgoing.is_empty() && matches!(self.sending, Sending::Ending) {
            match self.stream.shutdown_write() {
                Ok(()) => self.sending = Sending::Ended,
                Err(error) => self.break_sending(error),
            }
        }
    }

    fn break_sending(&mut self, error: Errno) {
        self.outgoing.clear();
        self.sending = Sending::Broken(error.into());
        // The error may have been taken from the socket by this call, so that no event tells
        // of what is left to be read.
        self.hung_up = true;
        self.readable = true;
    }

    /// Reads what is wanted, in turn with the others.
    fn receive(&mut self, connection: ConnectionId, turn: &mut Turn<'_>) -> Next {
        if self.receiving == Receiving::Ended {
            self.give_body_back(connection, 0, turn);
            return Next::Wait;
        }
        let mut bytes_left = SERVE_BYTES_MAX.min(turn.bytes_left);
        let mut progress = 0;
        let mut leaves_tail = false;
        let next = loop {
            if self.body.as_ref().is_some_and(|body| body.remaining() == 0) {
                self.give_body_back(connection, std::mem::take(&mut progress), turn);
            }
            if !self.readable || !self.wants_to_read() {
                break Next::Wait;
            }
            if bytes_left == 0 || leaves_tail {
                break Next::Again;
            }
            let received = match &mut self.body {
                Some(body) => self.stream.read_body(body),
                None => match read_chunk(&self.stream, &self.burst, connection, turn) {
                    Some(received) => received,
                    None => break Next::Starved,
                },
            };
            match received {
                Ok((0, _)) => return self.end(connection, progress, turn),
                Ok((bytes, asked)) => {
                    // Fewer than were asked for: the kernel has no more, or the end is next.
                    self.readable = bytes == asked || self.hung_up;
                    self.burst.handle_read(bytes, asked);
                    leaves_tail = self.burst.leaves_tail();
                    match self.body {
                        Some(_) => progress += bytes,
                        None if self.acknowledging.handle_read() => self.stream.acknowledge_late(),
                        None => {}
                    }
                    bytes_left = bytes_left.saturating_sub(bytes);
                    turn.bytes_left = turn.bytes_left.saturating_sub(bytes);
                }
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    self.burst.handle_nothing();
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.break_sending(error);
                    return self.end(connection, progress, turn);
                }
            }
        };
        if progress > 0 {
            turn.completions.push(Completion::BodyProgress {
                connection,
                bytes: progress,
            });
        }
        next
    }

    /// Tells that nothing more comes, because the peer has ended its direction or the
    /// connection is broken.
    fn end(&mut self, connection: ConnectionId, progress: usize, turn: &mut Turn<'_>) -> Next {
        self.receiving = Receiving::Ended;
        self.readable = false;
        self.give_body_back(connection, progress, turn);
        if !self.is_broken() {
            turn.completions.push(Completion::Eof { connection });
        }
        Next::Wait
    }

    fn tell_broken(&mut self, connection: ConnectionId, turn: &mut Turn<'_>) {
        self.receiving = Receiving::Ended;
        self.in_flight = false;
        self.give_body_back(connection, 0, turn);
        if let Sending::Broken(error) = std::mem::replace(&mut self.sending, Sending::Ended) {
            turn.completions
                .push(Completion::Lost { connection, error });
        }
    }

    fn give_body_back(&mut self, connection: ConnectionId, bytes: usize, turn: &mut Turn<'_>) {
        if let Some(body) = self.body.take() {
            turn.completions.push(Completion::Body {
                connection,
                bytes,
                body,
            });
        }
    }
}

/// `None` where no chunk can be had.
fn read_chunk(
    stream: &impl Stream,
    burst: &Burst,
    connection: ConnectionId,
    turn: &mut Turn<'_>,
) -> Option<Result<(usize, usize), Errno>> {
    let mut lent = turn.pool.lend()?;
    let asked = burst.wanted(lent.buffer().len());
    let received = stream.read(&mut lent.buffer()[..asked]);
    if let Ok(bytes) = received
        && bytes > 0
    {
        let chunk = lent.into_chunk(bytes);
        turn.completions
            .push(Completion::Read { connection, chunk });
    }
    Some(received.map(|bytes| (bytes, asked)))
}
