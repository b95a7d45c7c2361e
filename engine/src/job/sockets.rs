//! Edges between processes over sockets.

use ringway_netio::net::{Bound, HostPort, bind, data_bind_host};

use super::cluster::ClusterOptions;
use super::payload::Erased;
use super::plan::Plan;
use super::remote::{RemoteEdges, RemoteError, RunIdentity, WantedHalf};

/// Edges between processes over sockets: one port a process, and a connection an edge.
pub struct SocketEdges {
    bound: Option<Bound>,
}

impl SocketEdges {
    /// Listens for the edges that come into this process, if any do.
    ///
    /// # Errors
    /// Why nobody can listen there.
    pub fn listen(plan: &Plan, options: &ClusterOptions) -> Result<Self, String> {
        if !receives(plan, options.process) {
            return Ok(Self { bound: None });
        }
        let own = options.hosts.of(options.process);
        let host = options.bind_host.clone().unwrap_or_else(|| match own.port {
            0 => data_bind_host(),
            _ => own.host.clone(),
        });
        // At its own port process 0 is waited for by the others.
        let port = match (options.process, own.port) {
            (0, port) if port != 0 && options.listener.is_none() => port.saturating_add(1),
            (0, _) => 0,
            (_, port) => port,
        };
        let bound = bind(&HostPort::new(host, port)).map_err(|error| error.to_string())?;
        Ok(Self { bound: Some(bound) })
    }
}

impl RemoteEdges for SocketEdges {
    fn port(&self) -> u16 {
        self.bound.as_ref().map_or(0, |bound| bound.address.port())
    }

    fn open(
        &mut self,
        _run: &RunIdentity,
        _wanted: Vec<WantedHalf>,
    ) -> Result<Vec<Erased>, RemoteError> {
        Err(RemoteError("sockets carry no edges".to_owned()))
    }
}

/// Whether an edge comes into a process from another one.
fn receives(plan: &Plan, process: usize) -> bool {
    let mut links = plan.links.iter();
    links.any(|link| {
        let (from, to) = (&plan.chains[link.from], &plan.chains[link.to]);
        let mut sending = from.processes.iter().enumerate();
        sending.any(|(index, of)| {
            let mut receiving = link.receivers(index, to.processes.len());
            *of != process && receiving.any(|index| to.processes[index] == process)
        })
    })
}
