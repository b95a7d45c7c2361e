//! Why nobody could be connected to.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::HostPort;

/// What came of the tries at one address.
#[derive(Debug)]
pub struct Attempt {
    /// The address.
    pub address: SocketAddr,
    /// How often it was tried.
    pub tries: u32,
    /// Why the last try failed.
    pub error: io::Error,
}

/// Nobody could be connected to in time.
#[derive(Debug, thiserror::Error)]
pub struct ConnectError {
    /// Who.
    pub to: HostPort,
    /// For how long it was tried.
    pub waited: Duration,
    /// Each address that was tried. None where the name could not be resolved.
    pub attempts: Vec<Attempt>,
    /// Why the name could not be resolved, the last time that was tried.
    pub resolving: Option<io::Error>,
}

impl ConnectError {
    /// Remembers a failed try.
    pub(super) fn note(attempts: &mut Vec<Attempt>, address: SocketAddr, error: io::Error) {
        match attempts.iter_mut().find(|known| known.address == address) {
            Some(known) => {
                known.tries += 1;
                known.error = error;
            }
            None => attempts.push(Attempt {
                address,
                tries: 1,
                error,
            }),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot connect to {} within {:.1?}",
            self.to, self.waited
        )?;
        let mut separator = ": ";
        for Attempt {
            address,
            tries,
            error,
        } in &self.attempts
        {
            let plural = if *tries == 1 { "try" } else { "tries" };
            write!(f, "{separator}{address}: {error} ({tries} {plural})")?;
            separator = ", ";
        }
        if let Some(error) = &self.resolving {
            write!(f, "{separator}the name cannot be resolved: {error}")?;
        } else if self.attempts.is_empty() {
            write!(f, "{separator}the name was not resolved in time")?;
        }
        write!(f, "; is the peer running, and is the port right and open?")
    }
}
