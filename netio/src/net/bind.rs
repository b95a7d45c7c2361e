//! Listening sockets.

use std::env;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};

use super::HostPort;
use super::resolve::addresses;

/// The environment variable that says at which address of this host data is listened for.
pub const DATA_BIND_HOST_VARIABLE: &str = "RINGWAY_DATA_BIND_HOST";

/// Nobody but this host, unless told otherwise: the wire has no passwords.
const DEFAULT_HOST: &str = "127.0.0.1";

/// A listening socket, and where it is.
#[derive(Debug)]
pub struct Bound {
    /// The socket, for a driver.
    pub listener: TcpListener,
    /// Its address, with the port that it got where 0 was asked for.
    pub address: SocketAddr,
}

/// Why there is no listening socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else listens there.
    #[error(
        "{0} is in use: stop whoever listens there, or choose another port (0 takes a free one)"
    )]
    InUse(HostPort),
    /// The address belongs to another host.
    #[error("{0} is no address of this host: choose one that is, or 0.0.0.0 for all")]
    NotLocal(HostPort),
    /// The process may not.
    #[error("listening at {0} is denied: ports below 1024 need a privilege, choose a higher one")]
    Denied(HostPort),
    /// The name has no address.
    #[error("cannot listen at {0}: the name cannot be resolved: {1}")]
    Unresolved(HostPort, io::Error),
    /// Something else.
    #[error("cannot listen at {0}: {1}")]
    Other(HostPort, io::Error),
}

/// The host at which data is listened for: that of the variable, or the loopback address.
pub fn data_bind_host() -> String {
    env::var(DATA_BIND_HOST_VARIABLE)
        .ok()
        .filter(|host| !host.is_empty())
        .unwrap_or_else(|| DEFAULT_HOST.to_owned())
}

/// Listens. Of the addresses of a name, the first that can be had is taken. Blocks where a name
/// has to be resolved: not for a worker.
///
/// # Errors
/// See [`BindError`]. The port is never silently another one.
pub fn bind(at: &HostPort) -> Result<Bound, BindError> {
    let candidates = addresses(at).map_err(|error| BindError::Unresolved(at.clone(), error))?;
    let bound = TcpListener::bind(&*candidates).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok(Bound { listener, address })
    });
    bound.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => BindError::InUse(at.clone()),
        ErrorKind::AddrNotAvailable => BindError::NotLocal(at.clone()),
        ErrorKind::PermissionDenied => BindError::Denied(at.clone()),
        _ => BindError::Other(at.clone(), error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(host: &str, port: u16) -> BindError {
        bind(&HostPort::new(host, port)).unwrap_err()
    }

    #[test]
    fn port_0_gets_a_port_and_a_port_in_use_is_an_error() {
        let first = bind(&HostPort::new(DEFAULT_HOST, 0)).unwrap();
        assert_ne!(first.address.port(), 0);
        let error = refusal(DEFAULT_HOST, first.address.port());
        assert!(matches!(error, BindError::InUse(_)), "{error}");
        let said = error.to_string();
        assert!(said.starts_with(&first.address.to_string()), "{said}");
    }

    #[test]
    fn an_address_of_another_host_and_an_unknown_name_are_told_apart() {
        // From a range that is for documentation.
        let error = refusal("192.0.2.7", 0);
        assert!(matches!(error, BindError::NotLocal(_)), "{error}");
        let error = refusal("no-such-host.invalid", 0);
        assert!(matches!(error, BindError::Unresolved(..)), "{error}");
    }

    #[test]
    fn data_is_listened_for_at_the_loopback_address_by_default() {
        let expected = env::var(DATA_BIND_HOST_VARIABLE).unwrap_or("127.0.0.1".to_owned());
        assert_eq!(data_bind_host(), expected);
    }
}
