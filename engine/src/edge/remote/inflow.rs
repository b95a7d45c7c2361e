//! What comes in on a connection, until the session of its receiver has taken it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use ringway_netio::buffer::Body;
use ringway_netio::driver::Chunk;
use ringway_netio::session::{Intake, ReceiverSession};

use super::links::Io;

/// Bodies with at least so many bytes missing are read straight from the connection into
/// their buffer; for less, a read of whatever comes takes them along with what follows.
const DIRECT_BYTES_MIN: usize = 32 << 10;

/// Bytes that wait here at most before reading stops, and from which on it goes on again: what
/// is read with one look. Less would stop and begin reading all the time where the user is the
/// slower one.
const WAITING_BYTES_MAX: usize = 256 << 10;
const WAITING_BYTES_MIN: usize = WAITING_BYTES_MAX / 2;

/// Bytes that were read, and the body that is being filled.
#[derive(Default)]
pub(super) struct Inflow {
    rest: VecDeque<Rest>,
    body: Option<Body>,
    /// The driver fills the body.
    is_direct: bool,
    /// A body that is due, and has no room.
    wanted: Option<usize>,
    /// Bytes that were copied to wait here.
    copied_bytes: u64,
    read_bytes: u64,
}

/// What a connection brought that its session has not taken.
#[derive(Debug, Default)]
pub(super) struct Unread {
    bytes: Vec<u8>,
    /// The length of a body that the session waits for.
    wanted: Option<usize>,
}

enum Rest {
    /// As the driver gave it, and how much of it is used up.
    Chunk(Chunk, usize),
    /// Copied, because the driver's chunks are for all its connections.
    Kept(Vec<u8>, usize),
}

impl Rest {
    fn unused(&self) -> &[u8] {
        match self {
            Self::Chunk(chunk, at) => &chunk[*at..],
            Self::Kept(bytes, at) => &bytes[*at..],
        }
    }

    fn use_up(&mut self, bytes: usize) {
        match self {
            Self::Chunk(_, at) | Self::Kept(_, at) => *at += bytes,
        }
    }
}

impl Inflow {
    /// What was read before the connection came here.
    pub(super) fn begin_with(unread: Unread) -> Self {
        let mut inflow = Self {
            wanted: unread.wanted,
            ..Self::default()
        };
        if !unread.bytes.is_empty() {
            inflow.rest.push_back(Rest::Kept(unread.bytes, 0));
        }
        inflow
    }

    /// Takes out what was read and not used, for another to go on with. No body was begun.
    pub(super) fn take_unread(&mut self) -> Unread {
        let mut bytes = Vec::new();
        for rest in self.rest.drain(..) {
            bytes.extend_from_slice(rest.unused());
        }
        Unread {
            bytes,
            wanted: self.wanted.take(),
        }
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        self.read_bytes += chunk.len() as u64;
        self.rest.push_back(Rest::Chunk(chunk, 0));
    }

    /// Whether something waits here, so that reading should stop.
    pub(super) fn is_blocked(&self) -> bool {
        self.wanted.is_some() || !self.rest.is_empty()
    }

    /// Whether more may be read. A connection that does not read begins late, so that it does
    /// not have to stop soon again.
    pub(super) fn has_room(&self, is_reading: bool) -> bool {
        let max = match is_reading {
            true => WAITING_BYTES_MAX,
            false => WAITING_BYTES_MIN,
        };
        let waiting: usize = self.rest.iter().map(|rest| rest.unused().len()).sum();
        self.wanted.is_none() && waiting < max
    }

    pub(super) fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.rest.clear();
        self.wanted = None;
        self.body = None;
    }

    /// The driver has put bytes into the body.
    pub(super) fn handle_progress(
        &mut self,
        session: &mut ReceiverSession<Bytes>,
        now: Duration,
        bytes: usize,
    ) {
        self.read_bytes += bytes as u64;
        if session.end().is_none() {
            session.handle_body_bytes(now, bytes);
        }
    }

    /// The driver gives the body back.
    pub(super) fn handle_body(
        &mut self,
        session: &mut ReceiverSession<Bytes>,
        now: Duration,
        bytes: usize,
        body: Body,
    ) {
        self.is_direct = false;
        self.handle_progress(session, now, bytes);
        if body.remaining() == 0 {
            session.handle_body(body.freeze(), None);
        }
    }

    /// Lets the session take what it has room for. `has_room` says whether a body of so many
    /// bytes may be begun. Returns how many bytes were taken.
    pub(super) fn feed(
        &mut self,
        session: &mut ReceiverSession<Bytes>,
        io: &mut Io<'_>,
        mut has_room: impl FnMut(usize) -> bool,
    ) -> usize {
        let mut taken = 0;
        while !self.is_direct {
            if let Some(bytes) = self.wanted {
                if !has_room(bytes) {
                    break;
                }
                self.wanted = None;
                self.body = Some(io.bodies.body(bytes));
            }
            if self.body.is_some() {
                let (filled, is_full) = self.fill(session, io.now);
                taken += filled;
                if is_full {
                    continue;
                }
                self.read_directly(io);
                break;
            }
            let Some(front) = self.rest.front_mut() else {
                break;
            };
            let mut input = front.unused();
            let before = input.len();
            let intake = session.handle_input(io.now, &mut input);
            let used = before - input.len();
            front.use_up(used);
            taken += used;
            match intake {
                Intake::More => drop(self.rest.pop_front()),
                Intake::Body(wanted) => self.wanted = Some(wanted.bytes),
                Intake::Full => break,
                Intake::Ended => {
                    self.clear();
                    break;
                }
            }
        }
        self.keep_rest();
        taken
    }

    /// Fills the body from what was read. Returns how many bytes that were, and whether it is
    /// full and gone to the session.
    fn fill(&mut self, session: &mut ReceiverSession<Bytes>, now: Duration) -> (usize, bool) {
        let Some(body) = &mut self.body else {
            return (0, false);
        };
        let mut filled = 0;
        while body.remaining() > 0
            && let Some(front) = self.rest.front_mut()
        {
            let mut input = front.unused();
            let part = session.take_body(now, &mut input);
            body.extend_from_slice(part);
            let (bytes, is_used_up) = (part.len(), input.is_empty());
            filled += bytes;
            self.copied_bytes += bytes as u64;
            front.use_up(bytes);
            if is_used_up {
                self.rest.pop_front();
            }
        }
        if body.remaining() > 0 {
            return (filled, false);
        }
        if let Some(body) = self.body.take() {
            session.handle_body(body.freeze(), None);
        }
        (filled, true)
    }

    /// Lets the driver read the rest of a large body.
    fn read_directly(&mut self, io: &mut Io<'_>) {
        let is_large = |body: &mut Body| body.remaining() >= DIRECT_BYTES_MIN;
        if let Some(body) = self.body.take_if(is_large) {
            self.is_direct = true;
            io.driver.read_body(io.connection, body);
        }
    }

    /// Gives the driver's chunks back, unless it has many: a connection that waits must not keep
    /// others from being read.
    fn keep_rest(&mut self) {
        for rest in &mut self.rest {
            if let Rest::Chunk(chunk, _) = rest
                && !chunk.is_spare()
            {
                let bytes = rest.unused().to_vec();
                self.copied_bytes += bytes.len() as u64;
                *rest = Rest::Kept(bytes, 0);
            }
        }
    }
}
