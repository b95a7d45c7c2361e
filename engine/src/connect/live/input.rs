//! Reads what others write in their own time, and stops waiting when nobody wants it.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::Weak;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long one wait may take, so that a job that is cancelled ends soon.
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A pipe or socket. A read waits until there is something, or the reader's worker is gone.
#[derive(Debug)]
pub(crate) struct LiveInput {
    input: OwnedFd,
    wanted: Weak<()>,
}

impl LiveInput {
    /// Reads from `input` for as long as `wanted` is held by someone.
    pub(crate) const fn new(input: OwnedFd, wanted: Weak<()>) -> Self {
        Self { input, wanted }
    }
}

impl Read for LiveInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            wait_readable(&self.input, &self.wanted)?;
            match rustix::io::read(&self.input, &mut *buffer) {
                // Whoever has the other descriptor of it may have read first.
                Err(Errno::INTR | Errno::AGAIN) => {}
                result => return Ok(result?),
            }
        }
    }
}

/// Waits until `input` can be read without waiting.
///
/// # Errors
/// [`io::ErrorKind::Other`] when nobody wants it any more.
pub(crate) fn wait_readable(input: &OwnedFd, wanted: &Weak<()>) -> io::Result<()> {
    while wanted.strong_count() > 0 {
        let mut polled = [PollFd::new(input, PollFlags::IN)];
        match poll(&mut polled, Some(&WAIT)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("nobody waits for this input any more"))
}
