//! Frames there and back over a bare TCP connection, or over one each way.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::error::BenchError;

use super::schedule::{OpenLoop, Schedule};
use super::{Raw, Way};
use crate::latencies::Latencies;

/// Time after which the other process is taken to be stuck, and how often a look is taken at the
/// clock for that, as a power of two: not so often that it would count.
const STUCK_AFTER: Duration = Duration::from_secs(60);
const LOOKS: u32 = 1 << 10;

/// Sends frames as they are due, and takes them back.
///
/// # Errors
/// When the peer is gone, or another frame comes back.
pub(super) fn send(
    to: SocketAddr,
    raw: Raw,
    schedule: Schedule,
) -> Result<(Latencies, Duration, usize), BenchError> {
    let Raw {
        polls, frame_bytes, ..
    } = raw;
    let (mut stream, mut out) = pair(raw.way, || TcpStream::connect(to))?;
    // A description has the flag, not a descriptor of it.
    stream.set_nonblocking(true)?;
    out.set_nonblocking(true)?;
    let mut frame = vec![0; frame_bytes];
    let mut back = Frames::new(frame_bytes);
    let mut trips = OpenLoop::begin(schedule);
    let mut patience = Patience::default();
    while !trips.is_done() {
        while let Some(number) = trips.next_due() {
            frame[..8].copy_from_slice(&number.to_le_bytes());
            out.write_all(&frame)?;
        }
        if !polls && let Some(sleep) = trips.may_sleep() {
            let mut readable = [PollFd::new(&stream, PollFlags::IN)];
            poll(&mut readable, Some(&sleep.try_into()?))?;
        }
        if !back.read(&mut stream)? {
            return Err(BenchError::new("the other process has ended"));
        }
        patience.look()?;
        while let Some(frame) = back.next() {
            patience = Patience::default();
            let number = frame
                .first_chunk()
                .map_or(-1, |number| i64::from_le_bytes(*number));
            trips.is_back(number)?;
        }
    }
    let elapsed = trips.elapsed();
    Ok((trips.into_latencies(), elapsed, frame_bytes))
}

/// Sends frames back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone.
pub(super) fn echo(listener: &TcpListener, raw: Raw) -> Result<u64, BenchError> {
    let (mut out, mut stream) = pair(raw.way, || Ok(listener.accept()?.0))?;
    stream.set_nonblocking(raw.polls)?;
    stream.set_read_timeout(Some(STUCK_AFTER))?;
    let mut frames = Frames::new(raw.frame_bytes);
    let mut patience = Patience::default();
    let mut count = 0;
    while frames.read(&mut stream)? {
        patience.look()?;
        while let Some(frame) = frames.next() {
            patience = Patience::default();
            out.write_all(frame)?;
            count += 1;
        }
    }
    Ok(count)
}

/// The connection by which frames come back to who connects, and that by which they go there.
fn pair(
    way: Way,
    mut next: impl FnMut() -> std::io::Result<TcpStream>,
) -> std::io::Result<(TcpStream, TcpStream)> {
    let there = next()?;
    there.set_nodelay(true)?;
    let back = match way {
        Way::Same => there.try_clone()?,
        Way::Other => next()?,
    };
    back.set_nodelay(true)?;
    Ok((back, there))
}

/// How long nothing has come.
#[derive(Default)]
struct Patience {
    looks: u32,
    since: Option<Instant>,
}

impl Patience {
    /// # Errors
    /// When nothing has come for a minute.
    fn look(&mut self) -> Result<(), BenchError> {
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS) {
            let since = *self.since.get_or_insert_with(Instant::now);
            if since.elapsed() > STUCK_AFTER {
                return Err(BenchError::new(
                    "nothing came for a minute: the other process is stuck",
                ));
            }
        }
        Ok(())
    }
}

/// Frames of one length out of a stream.
struct Frames {
    frame_bytes: usize,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Frames {
    fn new(frame_bytes: usize) -> Self {
        Self {
            frame_bytes,
            buffer: vec![0; frame_bytes * 256],
            begin: 0,
            end: 0,
        }
    }

    /// Reads what is there; returns whether more may come.
    fn read(&mut self, stream: &mut TcpStream) -> Result<bool, BenchError> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        match stream.read(&mut self.buffer[self.end..]) {
            Ok(0) => Ok(false),
            Ok(read) => {
                self.end += read;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn next(&mut self) -> Option<&[u8]> {
        let whole = self.end - self.begin >= self.frame_bytes;
        whole.then(|| {
            let frame = self.begin..self.begin + self.frame_bytes;
            self.begin = frame.end;
            &self.buffer[frame]
        })
    }
}
