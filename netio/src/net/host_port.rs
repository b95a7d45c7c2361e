//! Where to connect to, or to listen at, as people write it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// A name or an address of a host, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A text that is no host and port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no HOST:PORT ({why}): write example.org:7000, 127.0.0.1:7000 or [::1]:7000")]
pub struct InvalidHostPort {
    /// The text.
    pub found: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl HostPort {
    /// Of a host and a port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// The address, where the host is one and no name.
    pub fn literal(&self) -> Option<SocketAddr> {
        let host: IpAddr = self.host.parse().ok()?;
        Some(SocketAddr::new(host, self.port))
    }
}

impl From<SocketAddr> for HostPort {
    fn from(address: SocketAddr) -> Self {
        Self::new(address.ip().to_string(), address.port())
    }
}

impl FromStr for HostPort {
    type Err = InvalidHostPort;

    fn from_str(text: &str) -> Result<Self, InvalidHostPort> {
        let invalid = |why| InvalidHostPort {
            found: text.to_owned(),
            why,
        };
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| invalid("it has no port"))?;
        let port = port
            .parse()
            .map_err(|_| invalid("the port is no number up to 65535"))?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let host = match bracketed {
            Some(inner) if inner.parse::<Ipv6Addr>().is_err() => {
                return Err(invalid("no IPv6 address is in the brackets"));
            }
            Some(inner) => inner,
            None if host.contains(':') => {
                return Err(invalid("an IPv6 address stands in brackets"));
            }
            None => host,
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(invalid("the host is missing"));
        }
        Ok(Self::new(host, port))
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_read_as_they_are_written() {
        for text in [
            "example.org:7000",
            "127.0.0.1:0",
            "[::1]:65535",
            "[fe80::2]:1",
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), text);
        }
        let literal = "[::1]:7000".parse::<HostPort>().unwrap().literal();
        assert_eq!(literal, Some("[::1]:7000".parse().unwrap()));
        assert_eq!(HostPort::new("localhost", 1).literal(), None);
    }

    #[test]
    fn what_is_no_host_and_port_is_refused_with_the_reason() {
        for (text, why) in [
            ("example.org", "it has no port"),
            ("example.org:", "the port is no number up to 65535"),
            ("example.org:70000", "the port is no number up to 65535"),
            ("::1:7000", "an IPv6 address stands in brackets"),
            ("[localhost]:7000", "no IPv6 address is in the brackets"),
            (":7000", "the host is missing"),
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap_err().why, why, "{text}");
        }
    }
}
