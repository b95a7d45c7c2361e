//! Edges between processes over sockets.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ringway_netio::driver::{DriverChoice, Why, open};
use ringway_netio::frame::Identity;
use ringway_netio::net::{Bound, ConnectOptions, HostPort, bind, connect, data_bind_host};

use crate::clock::Clock;
use crate::edge::remote::{
    EdgePort, EdgePortOptions, LinksHandle, RemoteOptions, listen_for_edges,
};

use super::cluster::ClusterOptions;
use super::payload::Erased;
use super::plan::Plan;
use super::remote::{MakeDriver, RemoteEdges, RemoteError, RemoteSide, RunIdentity, WantedHalf};

/// How many edges an error names.
const NAMED_MAX: usize = 3;

/// Edges between processes over sockets: one port a process, and a connection an edge, which
/// says which edge it is. The workers drive them.
pub struct SocketEdges {
    bound: Option<Bound>,
    driver: DriverChoice,
    time_limit: Duration,
    /// Those that are to come, until all have.
    coming: Option<Coming>,
}

/// Edges that are to come to the port of this process.
struct Coming {
    port: EdgePort,
    clock: Clock,
    time_limit: Duration,
    /// Number, peer and name of each.
    edges: Vec<(u64, usize, String)>,
}

impl SocketEdges {
    /// Listens for the edges that come into this process, if any do. Where io_uring is wanted
    /// and denied a warning says why.
    ///
    /// # Errors
    /// Why nobody can listen there, or why there can be no such driver.
    pub fn listen(
        plan: &Plan,
        options: &ClusterOptions,
        driver: DriverChoice,
    ) -> Result<Self, String> {
        let opened = open(driver).map_err(|error| error.to_string())?;
        if let Why::FellBack(denial) = &opened.why {
            let cause = denial.to_string();
            tracing::warn!(cause, "connections are driven by epoll, without io_uring");
        }
        drop(opened);
        let bound = match receives(plan, options.process) {
            false => None,
            true => Some(bind(&address(options)).map_err(|error| error.to_string())?),
        };
        Ok(Self {
            bound,
            driver,
            time_limit: options.connect_timeout,
            coming: None,
        })
    }
}

impl RemoteEdges for SocketEdges {
    fn port(&self) -> u16 {
        self.bound.as_ref().map_or(0, |bound| bound.address.port())
    }

    fn open(
        &mut self,
        run: &RunIdentity,
        wanted: Vec<WantedHalf>,
        is_given_up: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<Erased>, RemoteError> {
        let opening = Opening {
            run,
            clock: Clock::start(),
            time_limit: self.time_limit,
        };
        if let Some(bound) = self.bound.take() {
            self.coming = opening.listen(bound, &wanted)?;
        }
        // All are expected before the first connects anywhere, so that no two processes wait
        // for each other.
        let mut opened: Vec<Option<Erased>> = Vec::with_capacity(wanted.len());
        for half in &wanted {
            opened.push(match (half.side, &self.coming) {
                (RemoteSide::Receiver, Some(coming)) => {
                    let links = links_of(half)?;
                    Some(half.payload.receive_at(half, &coming.port, links)?)
                }
                _ => None,
            });
        }
        for (half, opened) in wanted.iter().zip(&mut opened) {
            if half.side == RemoteSide::Sender {
                *opened = Some(opening.connect(half, is_given_up)?);
            }
        }
        let halves = opened.into_iter().collect::<Option<Vec<_>>>();
        halves.ok_or_else(|| RemoteError("this process does not listen".to_owned()))
    }

    fn poll_opened(&mut self) -> Result<bool, RemoteError> {
        let Some(coming) = &self.coming else {
            return Ok(true);
        };
        let missing = coming.port.missing();
        if missing.is_empty() {
            // From here on nobody is let in.
            self.coming = None;
            return Ok(true);
        }
        match coming.clock.now().0 > coming.time_limit {
            true => Err(coming.not_come(&missing)),
            false => Ok(false),
        }
    }

    fn drivers(&self) -> Option<MakeDriver> {
        let choice = self.driver;
        Some(Arc::new(move || {
            let opened = open(choice).map_err(io::Error::other)?;
            Ok(opened.driver)
        }))
    }
}

/// Edges while they are opened.
struct Opening<'a> {
    run: &'a RunIdentity,
    clock: Clock,
    time_limit: Duration,
}

impl Opening<'_> {
    /// Lets the worker of the first edge that comes do the greeting.
    fn listen(&self, bound: Bound, wanted: &[WantedHalf]) -> Result<Option<Coming>, RemoteError> {
        let come = wanted
            .iter()
            .filter(|half| half.side == RemoteSide::Receiver);
        let Some(first) = come.clone().next() else {
            return Ok(None);
        };
        let bytes = come.clone().map(|half| half.options.bytes_max);
        let options = EdgePortOptions {
            job: self.run.job,
            attempt: self.run.attempt,
            bytes_max: bytes.max().unwrap_or_default(),
            remote: RemoteOptions::default(),
        };
        let port = listen_for_edges(links_of(first)?, bound.listener.into(), options);
        let edges = come.map(|half| (half.edge, half.peer, half.options.name.clone()));
        Ok(Some(Coming {
            port: port.map_err(|error| RemoteError(error.to_string()))?,
            clock: self.clock,
            time_limit: self.time_limit,
            edges: edges.collect(),
        }))
    }

    fn connect(
        &self,
        half: &WantedHalf,
        is_given_up: &mut dyn FnMut() -> bool,
    ) -> Result<Erased, RemoteError> {
        if is_given_up() {
            return Err(given_up());
        }
        let failed = |what: &str| {
            let (edge, peer) = (&half.options.name, half.peer);
            RemoteError(format!("{edge}: process {peer}: {what}"))
        };
        let address = self.run.addresses.get(half.peer);
        let address: HostPort = address
            .ok_or_else(|| failed("it is none of the job"))?
            .parse()
            .map_err(|_| failed("it has no address for data"))?;
        let options = ConnectOptions {
            time_limit: self.time_limit,
            ..ConnectOptions::default()
        };
        let stream = connect(&address, &options, || self.clock.now().0)
            .map_err(|error| failed(&error.to_string()))?;
        let identity = Identity {
            job: self.run.job,
            edge: half.edge,
            attempt: self.run.attempt,
        };
        let remote = RemoteOptions::default().identity(identity);
        let peer = format!("process {} ({address})", half.peer);
        half.payload
            .send_over(half, stream.into(), peer, remote, links_of(half)?)
    }
}

impl Coming {
    fn not_come(&self, missing: &[u64]) -> RemoteError {
        let mut by_peer: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        let edges = self.edges.iter();
        for (_, peer, name) in edges.filter(|(edge, ..)| missing.contains(edge)) {
            by_peer.entry(*peer).or_default().push(name);
        }
        let seconds = self.time_limit.as_secs();
        let mut what = format!("{} did not come within {seconds} s", missing.len());
        for (peer, names) in by_peer {
            let named = names[..names.len().min(NAMED_MAX)].join(", ");
            what.push_str(&format!("; from process {peer}: {named}"));
        }
        if let Some(refused) = self.port.stats().last_refused {
            what.push_str(&format!("; one that came was refused: {refused}"));
        }
        RemoteError(what)
    }
}

fn links_of(half: &WantedHalf) -> Result<&LinksHandle, RemoteError> {
    let links = half.links.as_ref();
    links.ok_or_else(|| RemoteError("its worker drives no connections".to_owned()))
}

fn given_up() -> RemoteError {
    RemoteError("the job is over before all were open".to_owned())
}

/// Where this process listens for data.
fn address(options: &ClusterOptions) -> HostPort {
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
    HostPort::new(host, port)
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
