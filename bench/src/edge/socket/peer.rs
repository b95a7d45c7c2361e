//! The receiver, in a process of its own.
//!
//! It is this program again, with a hidden subcommand. It says on stdout where it listens, and
//! at the end what came and what CPU time it took from the first byte on.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, Stdio};

use ringway::placement::{CpuId, pin_current_thread};
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::named;
use crate::spent::{Spent, monotonic_s};

use super::load::Total;

/// What the receiver says at the end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Received {
    pub(crate) total: Total,
    pub(crate) spent: Spent,
    /// Bytes that it has copied, where it counts them.
    #[serde(default)]
    pub(crate) copied_bytes: Option<u64>,
    /// When it had everything, by the clock that both processes have.
    pub(crate) ended_s: f64,
}

impl Received {
    /// What both processes have copied, where both count it.
    pub(crate) fn copied_with(&self, sender: Meter) -> Option<u64> {
        Some(self.copied_bytes? + sender.copied_bytes?)
    }
}

/// Time and CPU time from when there is a connection, and what was copied since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    pub(crate) began_s: f64,
    spent: Spent,
    /// Bytes that this process has copied, where it counts them.
    pub(crate) copied_bytes: Option<u64>,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self {
            began_s: monotonic_s(),
            spent: Spent::of_process(),
            copied_bytes: None,
        }
    }

    /// The same, of a process that has copied so many bytes.
    pub(crate) fn copying(self, bytes: u64) -> Self {
        Self {
            copied_bytes: Some(bytes),
            ..self
        }
    }

    /// What this process took since.
    pub(crate) fn spent(self) -> Spent {
        Spent::of_process() - self.spent
    }

    /// The receiver has everything.
    pub(crate) fn received(self, total: Total) -> Received {
        Received {
            total,
            spent: self.spent(),
            copied_bytes: self.copied_bytes,
            ended_s: monotonic_s(),
        }
    }
}

/// The process that receives, seen from the one that sends.
pub(crate) struct Peer {
    child: Child,
    says: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Peer {
    /// Starts this program with `words`, and waits until it listens.
    ///
    /// # Errors
    /// When it cannot be started, or ends at once.
    pub(crate) fn start(words: &[String]) -> Result<Self, BenchError> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .args(words)
            .envs([named::variable()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let says = child.stdout.take().expect("it was asked for");
        let mut peer = Self {
            child,
            says: BufReader::new(says),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        };
        let line = peer.line()?;
        peer.address = line.trim().parse()?;
        Ok(peer)
    }

    /// Waits for what it says at the end.
    ///
    /// # Errors
    /// When it failed.
    pub(crate) fn received<T: for<'de> Deserialize<'de>>(&mut self) -> Result<T, BenchError> {
        let line = self.line()?;
        Ok(serde_json::from_str(&line)?)
    }

    fn line(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        if self.says.read_line(&mut line)? == 0 {
            let status = self.child.wait()?;
            return Err(BenchError::new(format!(
                "the receiving process ended: {status}"
            )));
        }
        Ok(line)
    }
}

/// It ends with the one that started it.
impl Drop for Peer {
    fn drop(&mut self) {
        // A process that has ended already can't be killed, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the receiving process: pins it, listens, says where, and at the end what `receive` gives.
///
/// # Errors
/// When it cannot be pinned or cannot listen, or `receive` fails.
pub(crate) fn serve<T: Serialize>(
    cpu: CpuId,
    receive: impl FnOnce(TcpListener) -> Result<T, BenchError>,
) -> Result<String, BenchError> {
    named::take_from_variable();
    pin_current_thread(cpu)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", listener.local_addr()?)?;
    stdout.flush()?;
    let received = receive(listener)?;
    Ok(serde_json::to_string(&received)? + "\n")
}
