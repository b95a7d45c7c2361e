//! Names to addresses, beside the thread that wants to know.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread::{self, JoinHandle};

use super::HostPort;

/// A name that is being resolved.
///
/// An address is its own answer. A name is asked for on a thread of its own
/// (`ringway-resolve`), because that may take as long as the configured name servers; a thread
/// that nobody waits for any more ends by itself.
#[derive(Debug)]
pub struct Resolving {
    state: State,
}

#[derive(Debug)]
enum State {
    Known(SocketAddr),
    Asked(JoinHandle<io::Result<Vec<SocketAddr>>>),
    Failed(io::Error),
    Told,
}

impl Resolving {
    /// Begins. Never blocks.
    pub fn start(host_port: &HostPort) -> Self {
        let state = match host_port.literal() {
            Some(address) => State::Known(address),
            None => {
                let host_port = host_port.clone();
                thread::Builder::new()
                    .name("ringway-resolve".to_owned())
                    .spawn(move || addresses(&host_port))
                    .map_or_else(State::Failed, State::Asked)
            }
        };
        Self { state }
    }

    /// The addresses, at least one, in the order to try them; `None` while they are not known.
    /// Never blocks. Once it has answered, it has nothing more to say.
    ///
    /// # Errors
    /// The name is not known, or nobody could be asked.
    pub fn poll(&mut self) -> Option<io::Result<Vec<SocketAddr>>> {
        if matches!(&self.state, State::Asked(thread) if !thread.is_finished()) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Told) {
            State::Known(address) => Some(Ok(vec![address])),
            State::Failed(error) => Some(Err(error)),
            State::Asked(thread) => Some(
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("resolving the name panicked"))),
            ),
            State::Told => None,
        }
    }
}

/// Resolves on the calling thread, which blocks.
pub(super) fn addresses(host_port: &HostPort) -> io::Result<Vec<SocketAddr>> {
    let mut found: Vec<SocketAddr> = Vec::new();
    for address in (host_port.host.as_str(), host_port.port).to_socket_addrs()? {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    if found.is_empty() {
        return Err(io::Error::other("the name has no address"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn resolve(host: &str) -> io::Result<Vec<SocketAddr>> {
        let mut resolving = Resolving::start(&HostPort::new(host, 7));
        let begin = Instant::now();
        loop {
            if let Some(answer) = resolving.poll() {
                assert!(resolving.poll().is_none(), "it answers once");
                return answer;
            }
            assert!(begin.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_address_is_known_at_once_and_a_name_beside_the_caller() {
        let mut literal = Resolving::start(&HostPort::new("::1", 7));
        let known = literal.poll().unwrap().unwrap();
        assert_eq!(known, ["[::1]:7".parse().unwrap()]);
        let local = resolve("localhost").unwrap();
        assert!(local.iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn a_name_that_cannot_be_is_an_error() {
        assert!(resolve("no-such-host.invalid").is_err());
        assert!(resolve("a name with spaces").is_err());
    }
}
