//! Edges between processes over sockets.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use ringway_netio::driver::{DriverChoice, Why, open};
use ringway_netio::frame::Identity;
use ringway_netio::net::{Bound, ConnectOptions, HostPort, bind, connect, data_bind_host};
use ringway_shm::Bell;

use crate::clock::Clock;
use crate::edge::remote::{
    EdgePort, EdgePortOptions, LinksHandle, RemoteOptions, listen_for_edges, spawn_links,
};

use super::cluster::ClusterOptions;
use super::payload::Erased;
use super::plan::Plan;
use super::remote::{RemoteEdges, RemoteError, RemoteSide, RunIdentity, WantedHalf};

/// How often is looked whether all edges have come.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How many edges an error names.
const NAMED_MAX: usize = 3;

/// Edges between processes over sockets: one port a process, and a connection an edge, which
/// says which edge it is. A thread of its own drives them.
pub struct SocketEdges {
    bound: Option<Bound>,
    driver: DriverChoice,
    time_limit: Duration,
    links: Option<LinksHandle>,
}

impl SocketEdges {
    /// Listens for the edges that come into this process, if any do.
    ///
    /// # Errors
    /// Why nobody can listen there.
    pub fn listen(
        plan: &Plan,
        options: &ClusterOptions,
        driver: DriverChoice,
    ) -> Result<Self, String> {
        let bound = match receives(plan, options.process) {
            false => None,
            true => Some(bind(&address(options)).map_err(|error| error.to_string())?),
        };
        Ok(Self {
            bound,
            driver,
            time_limit: options.connect_timeout,
            links: None,
        })
    }

    /// The thread that drives the connections.
    fn links(&mut self) -> Result<LinksHandle, RemoteError> {
        if let Some(links) = &self.links {
            return Ok(links.clone());
        }
        let choice = self.driver;
        let started = spawn_links(move || {
            let opened = open(choice).map_err(io::Error::other)?;
            if let Why::FellBack(denial) = &opened.why {
                let cause = denial.to_string();
                tracing::warn!(cause, "connections are driven by epoll, without io_uring");
            }
            Ok(opened.driver)
        });
        let started = started.map_err(|error| RemoteError(error.to_string()))?;
        self.links = Some(started.clone());
        Ok(started)
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
        let links = self.links()?;
        let opening = Opening {
            run,
            links: &links,
            clock: Clock::start(),
            time_limit: self.time_limit,
        };
        let port = match self.bound.take() {
            Some(bound) => Some(opening.listen(bound, &wanted)?),
            None => None,
        };
        // All are expected before the first connects anywhere, so that no two processes wait
        // for each other.
        let mut opened: Vec<Option<Erased>> = Vec::with_capacity(wanted.len());
        for half in &wanted {
            opened.push(match (half.side, &port) {
                (RemoteSide::Receiver, Some(port)) => {
                    Some(half.payload.receive_at(half, port, &links)?)
                }
                _ => None,
            });
        }
        for (half, opened) in wanted.iter().zip(&mut opened) {
            if half.side == RemoteSide::Sender {
                *opened = Some(opening.connect(half, is_given_up)?);
            }
        }
        if let Some(port) = &port {
            opening.wait_for_all(port, &wanted, is_given_up)?;
        }
        let halves = opened.into_iter().collect::<Option<Vec<_>>>();
        halves.ok_or_else(|| RemoteError("this process does not listen".to_owned()))
    }
}

/// Edges while they are opened.
struct Opening<'a> {
    run: &'a RunIdentity,
    links: &'a LinksHandle,
    clock: Clock,
    time_limit: Duration,
}

impl Opening<'_> {
    fn listen(&self, bound: Bound, wanted: &[WantedHalf]) -> Result<EdgePort, RemoteError> {
        let bytes = wanted.iter().map(|half| half.options.bytes_max);
        let options = EdgePortOptions {
            job: self.run.job,
            attempt: self.run.attempt,
            bytes_max: bytes.max().unwrap_or_default(),
            remote: RemoteOptions::default(),
        };
        let port = listen_for_edges(self.links, bound.listener.into(), options);
        port.map_err(|error| RemoteError(error.to_string()))
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
            .send_over(half, stream.into(), peer, remote, self.links)
    }

    /// Waits until everybody has connected.
    fn wait_for_all(
        &self,
        port: &EdgePort,
        wanted: &[WantedHalf],
        is_given_up: &mut dyn FnMut() -> bool,
    ) -> Result<(), RemoteError> {
        let bell = Bell::thread();
        loop {
            let missing = port.missing();
            if missing.is_empty() {
                return Ok(());
            }
            if is_given_up() {
                return Err(given_up());
            }
            if self.clock.now().0 > self.time_limit {
                let refused = port.stats().last_refused;
                return Err(self.not_come(&missing, wanted, refused));
            }
            bell.arm();
            bell.park(Some(LOOK_EVERY));
        }
    }

    fn not_come(
        &self,
        missing: &[u64],
        wanted: &[WantedHalf],
        refused: Option<String>,
    ) -> RemoteError {
        let mut by_peer: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for half in wanted.iter().filter(|half| missing.contains(&half.edge)) {
            by_peer
                .entry(half.peer)
                .or_default()
                .push(&half.options.name);
        }
        let seconds = self.time_limit.as_secs();
        let mut what = format!("{} did not come within {seconds} s", missing.len());
        for (peer, names) in by_peer {
            let named = names[..names.len().min(NAMED_MAX)].join(", ");
            what.push_str(&format!("; from process {peer}: {named}"));
        }
        if let Some(refused) = refused {
            what.push_str(&format!("; one that came was refused: {refused}"));
        }
        RemoteError(what)
    }
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
