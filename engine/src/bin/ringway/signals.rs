//! Ctrl-C and SIGTERM, as the loop that watches a job sees them.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// The signals that came.
pub(crate) struct Signals {
    interrupts: UnixStream,
    terminations: UnixStream,
}

/// A signal that asks the job to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Interrupt,
    Terminate,
}

impl Signals {
    /// From now on the signals no longer end the process.
    ///
    /// # Errors
    /// When the system refuses it.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupts: caught(SIGINT)?,
            terminations: caught(SIGTERM)?,
        })
    }

    /// The next signal that has come, if any.
    pub(crate) fn next(&mut self) -> Option<StopSignal> {
        if has_come(&mut self.interrupts) {
            return Some(StopSignal::Interrupt);
        }
        has_come(&mut self.terminations).then_some(StopSignal::Terminate)
    }
}

fn caught(signal: i32) -> io::Result<UnixStream> {
    let (receive, send) = UnixStream::pair()?;
    receive.set_nonblocking(true)?;
    pipe::register(signal, send)?;
    Ok(receive)
}

/// Each signal is a byte in the pipe.
fn has_come(pipe: &mut UnixStream) -> bool {
    let mut byte = [0];
    matches!(pipe.read(&mut byte), Ok(1))
}
