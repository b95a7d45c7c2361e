//! Frames there and back over a bare TCP connection, or over one each way.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::error::BenchError;

use super::Way;
use super::road::Road;

/// Time after which the other process is taken to be stuck, and how often a look is taken at the
/// clock for that, as a power of two: not so often that it would count.
const STUCK_AFTER: Duration = Duration::from_secs(60);
const LOOKS: u32 = 1 << 10;

/// A connection, seen from where frames are sent first.
pub(crate) struct RawTcp {
    out: TcpStream,
    stream: TcpStream,
    polls: bool,
    frame: Vec<u8>,
    /// Bytes of the frame that are written.
    written: usize,
    back: Frames,
    patience: Patience,
}

impl RawTcp {
    /// Connected to whoever listens there, where it polls, or sleeps until something comes.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn open(
        to: SocketAddr,
        polls: bool,
        frame_bytes: usize,
        way: Way,
    ) -> Result<Self, BenchError> {
        Self::of(pair(way, || TcpStream::connect(to))?, polls, frame_bytes)
    }

    /// The other end of the connection that comes.
    ///
    /// # Errors
    /// When none can be accepted.
    pub(crate) fn accept(
        listener: &TcpListener,
        polls: bool,
        frame_bytes: usize,
    ) -> Result<Self, BenchError> {
        let streams = pair(Way::Same, || Ok(listener.accept()?.0))?;
        Self::of(streams, polls, frame_bytes)
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When the peer is gone.
    pub(crate) fn finish(mut self) -> Result<(), BenchError> {
        while !self.is_written()? {
            self.patience.look()?;
        }
        Ok(())
    }

    fn of(
        (out, stream): (TcpStream, TcpStream),
        polls: bool,
        frame_bytes: usize,
    ) -> Result<Self, BenchError> {
        out.set_nonblocking(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            out,
            stream,
            polls,
            frame: vec![0; frame_bytes],
            written: frame_bytes,
            back: Frames::new(frame_bytes),
            patience: Patience::default(),
        })
    }

    /// Writes what is left of the frame, and returns whether that is all of it.
    fn is_written(&mut self) -> Result<bool, BenchError> {
        while self.written < self.frame.len() {
            match self.out.write(&self.frame[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if is_nothing_yet(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

impl Road for RawTcp {
    fn send(&mut self, number: i64) -> Result<bool, BenchError> {
        if !self.is_written()? {
            return Ok(false);
        }
        self.frame[..8].copy_from_slice(&number.to_le_bytes());
        self.written = 0;
        self.is_written()?;
        Ok(true)
    }

    fn take_back(&mut self) -> Result<Option<i64>, BenchError> {
        let number = self.back.next().map(|frame| {
            let number = frame.first_chunk();
            number.map_or(-1, |number| i64::from_le_bytes(*number))
        });
        if number.is_some() {
            self.patience = Patience::default();
        }
        Ok(number)
    }

    fn wait(&mut self, _: bool, limit: &dyn Fn() -> Option<Duration>) -> Result<(), BenchError> {
        if self.is_written()?
            && !self.polls
            && let Some(limit) = limit()
        {
            let mut readable = [PollFd::new(&self.stream, PollFlags::IN)];
            poll(&mut readable, Some(&limit.try_into()?))?;
        }
        if !self.back.read(&mut self.stream)? {
            return Err(BenchError::new("the other process has ended"));
        }
        self.patience.look()
    }
}

/// Sends frames back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone.
pub(crate) fn echo(
    listener: &TcpListener,
    polls: bool,
    frame_bytes: usize,
    way: Way,
) -> Result<u64, BenchError> {
    let (mut stream, mut back) = pair(way, || Ok(listener.accept()?.0))?;
    stream.set_nonblocking(polls)?;
    stream.set_read_timeout(Some(STUCK_AFTER))?;
    let mut frames = Frames::new(frame_bytes);
    let mut patience = Patience::default();
    let mut count = 0;
    while frames.read(&mut stream)? {
        patience.look()?;
        while let Some(frame) = frames.next() {
            patience = Patience::default();
            write_all(&mut back, frame)?;
            count += 1;
        }
    }
    Ok(count)
}

/// The connection by which frames go to who listens, and that by which they come back.
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
    Ok((there, back))
}

/// Writes all of a frame, also where the stream does not wait for room: the other side takes
/// what comes back even where it has no room for more.
fn write_all(stream: &mut TcpStream, mut frame: &[u8]) -> Result<(), BenchError> {
    let mut patience = Patience::default();
    while !frame.is_empty() {
        match stream.write(frame) {
            Ok(written) => frame = &frame[written..],
            Err(error) if is_nothing_yet(&error) => patience.look()?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether to look again. A process that was stopped and goes on finds its wait interrupted.
fn is_nothing_yet(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
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
            Err(error) if is_nothing_yet(&error) => Ok(true),
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
