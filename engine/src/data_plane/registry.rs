//! The map from names to endpoints, and what was asked of it.

use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::batch::Payload;
use crate::edge::Transport;

use super::endpoint::Endpoint;
use super::names::{self, Names};
use super::switch::Switch;
use super::{ConnectError, ListenError};

/// The numbers that port 0 chooses from: those that the kernel gives to nobody for good.
const FREE_PORTS: RangeInclusive<u16> = 49_152..=65_535;

/// What was asked of a registry so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataPlaneStats {
    /// Endpoints that are registered now.
    pub listening: usize,
    /// Senders that got a local edge.
    pub hits: u64,
    /// Senders that got a connection.
    pub connections: u64,
    /// Senders that were refused, for whatever reason.
    pub refused: u64,
}

/// Endpoints by port, since the names of one endpoint all have the same.
pub(super) struct Registry {
    pub(super) switch: Switch,
    endpoints: BTreeMap<u16, Vec<Registered>>,
    next_free: u16,
    hits: u64,
    connections: u64,
    refused: u64,
}

struct Registered {
    names: Names,
    payload: &'static str,
    /// An `Endpoint<B>` for the payload type of that name.
    endpoint: Arc<dyn Any + Send + Sync>,
}

impl Registry {
    pub(super) fn new(off_by_environment: bool) -> Self {
        Self {
            switch: Switch::new(off_by_environment),
            endpoints: BTreeMap::new(),
            next_free: *FREE_PORTS.start(),
            hits: 0,
            connections: 0,
            refused: 0,
        }
    }

    /// A number at which nobody listens. One that was given up is given out again as late as
    /// possible, so that a sender which comes too late does not reach somebody else.
    pub(super) fn free_port(&mut self) -> Result<u16, ListenError> {
        let ports = FREE_PORTS.len();
        for _ in 0..ports {
            let port = self.next_free;
            self.next_free = match port {
                port if port == *FREE_PORTS.end() => *FREE_PORTS.start(),
                port => port + 1,
            };
            if !self.endpoints.contains_key(&port) {
                return Ok(port);
            }
        }
        Err(ListenError::NoFreePort { ports })
    }

    pub(super) fn register<B: Payload>(
        &mut self,
        names: Names,
        endpoint: Arc<Endpoint<B>>,
    ) -> Result<(), ListenError> {
        if let Some(endpoint) = self.clash(&names) {
            return Err(ListenError::InUse { endpoint });
        }
        let others = self.endpoints.entry(names.port()).or_default();
        others.push(Registered {
            names,
            payload: type_name::<B>(),
            endpoint,
        });
        Ok(())
    }

    /// The name that is taken among these, as errors write it.
    pub(super) fn clash(&self, names: &Names) -> Option<String> {
        let others = self.endpoints.get(&names.port())?;
        let host = others.iter().find_map(|other| names.clash(&other.names))?;
        Some(names::display(&host, names.port()))
    }

    /// Removes the endpoint with these names. They are its own: nobody else could register
    /// one of them meanwhile.
    pub(super) fn unregister(&mut self, names: &Names) {
        if let Some(others) = self.endpoints.get_mut(&names.port()) {
            others.retain(|other| other.names != *names);
            if others.is_empty() {
                self.endpoints.remove(&names.port());
            }
        }
    }

    /// The endpoint under this name, if the local transport is on and the payload is the same.
    pub(super) fn resolve<B: Payload>(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Arc<Endpoint<B>>, ConnectError> {
        let endpoint = names::display(host, port);
        if let Some(by) = self.switch.off_reason() {
            return Err(ConnectError::LocalDisabled { endpoint, by });
        }
        let host = names::normal(host);
        let others = self.endpoints.get(&port).map_or(&[][..], Vec::as_slice);
        let Some(found) = others.iter().find(|other| other.names.contains(&host)) else {
            return Err(ConnectError::NotListening { endpoint });
        };
        Arc::clone(&found.endpoint)
            .downcast()
            .map_err(|_| ConnectError::PayloadMismatch {
                endpoint,
                expected: found.payload,
                sent: type_name::<B>(),
            })
    }

    pub(super) fn count(&mut self, result: Result<Transport, &ConnectError>) {
        match result {
            Ok(Transport::Local) => self.hits += 1,
            Ok(Transport::Socket | Transport::Shared) => self.connections += 1,
            Err(_) => self.refused += 1,
        }
    }

    pub(super) fn stats(&self) -> DataPlaneStats {
        DataPlaneStats {
            listening: self.endpoints.values().map(Vec::len).sum(),
            hits: self.hits,
            connections: self.connections,
            refused: self.refused,
        }
    }
}
