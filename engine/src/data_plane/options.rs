//! What an endpoint is opened with, on either side.

use crate::edge::EdgeOptions;
use crate::limits::RECEIVE_CAPACITY_ELEMENTS;

use super::names;

/// What an endpoint listens with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// The address to listen at, such as `127.0.0.1`. A wildcard, `0.0.0.0` or `::`, is also
    /// found as `127.0.0.1`, `::1` and `localhost`.
    pub bind_host: String,
    /// Other names that peers know this host by, such as its host name or its address in the
    /// network. Default: none.
    pub advertised_hosts: Vec<String>,
    /// The port; 0 takes a free one, see [`Listener::port`](super::Listener::port). As long as
    /// every edge is local it is a number in the registry, and nothing is bound in the kernel.
    pub port: u16,
    /// Name and bounds of the edge. Default: named `host:port`, 256 elements, 64 MiB.
    pub edge: Option<EdgeOptions>,
}

impl ListenOptions {
    /// The defaults, at this address.
    pub fn new(bind_host: impl Into<String>, port: u16) -> Self {
        Self {
            bind_host: bind_host.into(),
            advertised_hosts: Vec::new(),
            port,
            edge: None,
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

    /// The edge of an endpoint that got this port.
    pub(super) fn edge_at(&self, port: u16) -> EdgeOptions {
        self.edge.clone().unwrap_or_else(|| {
            EdgeOptions::named(names::display(&self.bind_host, port))
                .capacity(RECEIVE_CAPACITY_ELEMENTS)
        })
    }
}

/// What a sender connects with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Which transport to use. Default: the best that both ends allow.
    pub transport: TransportChoice,
}

/// Which transport a sender wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransportChoice {
    /// The best that both ends allow. The edge says which it got.
    #[default]
    Auto,
    /// A ring in this process, or nothing.
    Local,
}
