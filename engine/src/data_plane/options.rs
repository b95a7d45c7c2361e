//! What an endpoint is opened with, on either side.

use std::fmt;
use std::str::FromStr;

use ringway_netio::driver::DriverChoice;
use ringway_netio::net;

use crate::edge::EdgeOptions;
use crate::edge::remote::{LinksHandle, RemoteOptions};
use crate::edge::shared::{DISABLE_SHARED_VARIABLE, Sharing, is_disabled};
use crate::limits::RECEIVE_CAPACITY_ELEMENTS;

use super::names;

/// What holds for all edges of a [`DataPlane`](super::DataPlane) that are not told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneOptions {
    /// What moves the bytes of its side thread. Default: what the environment says, else
    /// io_uring where it can be used.
    pub driver: Option<DriverChoice>,
    /// What holds for connections: the form of the wire, windows, compression.
    pub remote: RemoteOptions,
}

/// What an endpoint listens with.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// The address to listen at, such as `127.0.0.1`. A wildcard, `0.0.0.0` or `::`, is also
    /// found as `127.0.0.1`, `::1` and `localhost`.
    pub bind_host: String,
    /// Other names that peers know this host by, such as its host name or its address in the
    /// network. Default: none.
    pub advertised_hosts: Vec<String>,
    /// The port; 0 takes a free one, see [`Listener::port`](super::Listener::port).
    pub port: u16,
    /// Name and bounds of the edge. Default: named `host:port`, 256 elements, 64 MiB.
    pub edge: Option<EdgeOptions>,
    /// Which senders are taken. Default: those of this process over a ring, and others over a
    /// socket.
    pub transport: TransportChoice,
    /// What holds for its connection. Default: what the data plane says.
    pub remote: Option<RemoteOptions>,
    /// Who drives its connection. Default: the side thread of the data plane.
    pub links: Option<LinksHandle>,
}

impl ListenOptions {
    /// The defaults, at this address.
    pub fn new(bind_host: impl Into<String>, port: u16) -> Self {
        Self {
            bind_host: bind_host.into(),
            advertised_hosts: Vec::new(),
            port,
            edge: None,
            transport: TransportChoice::default(),
            remote: None,
            links: None,
        }
    }

    /// Adds a name that peers know this host by.
    pub fn advertised(mut self, host: impl Into<String>) -> Self {
        self.advertised_hosts.push(host.into());
        self
    }

    /// Sets name and bounds of the edge.
    pub fn edge(mut self, edge: EdgeOptions) -> Self {
        self.edge = Some(edge);
        self
    }

    /// Sets which senders are taken.
    pub fn transport(mut self, transport: TransportChoice) -> Self {
        self.transport = transport;
        self
    }

    /// Sets what holds for its connection.
    pub fn remote(mut self, remote: RemoteOptions) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Sets who drives its connection.
    pub fn links(mut self, links: LinksHandle) -> Self {
        self.links = Some(links);
        self
    }

    /// The edge of an endpoint that got this port.
    pub(super) fn edge_at(&self, port: u16) -> EdgeOptions {
        self.edge.clone().unwrap_or_else(|| {
            EdgeOptions::named(names::display(&self.bind_host, port))
                .capacity(RECEIVE_CAPACITY_ELEMENTS)
        })
    }
}

/// What a sender connects with.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// Which transport to use. Default: the best that both ends allow.
    pub transport: TransportChoice,
    /// Name and bounds of the edge on this side of a connection. Default: named `host:port`,
    /// 1024 elements, 64 MiB. Over a ring, the listener's hold.
    pub edge: Option<EdgeOptions>,
    /// What holds for its connection. Default: what the data plane says.
    pub remote: Option<RemoteOptions>,
    /// Who drives its connection. Default: the side thread of the data plane.
    pub links: Option<LinksHandle>,
    /// How patient connecting is. Default: it is tried again and again for 30 s.
    pub patience: net::ConnectOptions,
}

impl ConnectOptions {
    /// Sets which transport to use.
    pub fn transport(mut self, transport: TransportChoice) -> Self {
        self.transport = transport;
        self
    }

    /// Sets name and bounds of the edge.
    pub fn edge(mut self, edge: EdgeOptions) -> Self {
        self.edge = Some(edge);
        self
    }

    /// Sets what holds for its connection.
    pub fn remote(mut self, remote: RemoteOptions) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Sets who drives its connection.
    pub fn links(mut self, links: LinksHandle) -> Self {
        self.links = Some(links);
        self
    }

    /// Sets for how long connecting is tried.
    pub fn within(mut self, time_limit: std::time::Duration) -> Self {
        self.patience.time_limit = time_limit;
        self
    }

    pub(super) fn edge_to(&self, host: &str, port: u16) -> EdgeOptions {
        let named = || EdgeOptions::named(names::display(host, port));
        self.edge.clone().unwrap_or_else(named)
    }
}

/// Which transport an edge may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransportChoice {
    /// The best that both ends allow. The edge says which it got.
    #[default]
    Auto,
    /// A ring in this process, or nothing.
    Local,
    /// Memory that is shared with another process of this host, or nothing; also within this
    /// process.
    Shared,
    /// A socket, even within this process.
    Socket,
}

/// Shared memory is wanted, and switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "shared memory is wanted, and switched off by the environment variable \
     {DISABLE_SHARED_VARIABLE}: unset it, or allow another transport"
)]
pub struct SharedDisabled;

impl TransportChoice {
    pub(super) fn allows_local(self) -> bool {
        matches!(self, Self::Auto | Self::Local)
    }

    /// Whether others than those in this process may be at the other end. Shared memory begins
    /// with a connection too.
    pub(super) fn allows_connection(self) -> bool {
        matches!(self, Self::Auto | Self::Shared | Self::Socket)
    }

    /// Whether edges between processes may go over shared memory.
    ///
    /// # Errors
    /// It is wanted and switched off.
    pub(crate) fn sharing(self) -> Result<Sharing, SharedDisabled> {
        match (self, is_disabled()) {
            // Where it is switched off the edge finds that out, and says so.
            (Self::Auto, _) => Ok(Sharing::Prefer),
            (Self::Shared, false) => Ok(Sharing::Require),
            (Self::Shared, true) => Err(SharedDisabled),
            (Self::Local | Self::Socket, _) => Ok(Sharing::Off),
        }
    }
}

impl FromStr for TransportChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::Auto, Self::Local, Self::Shared, Self::Socket];
        let found = all.into_iter().find(|choice| choice.to_string() == name);
        found.ok_or_else(|| {
            format!(
                "there is no transport `{name}`: use \"auto\", \"local\", \"shared\" or \"socket\""
            )
        })
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Shared => "shared",
            Self::Socket => "socket",
        })
    }
}
