//! Edges between processes, over sockets and over the memory that processes of one host share.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ringway_netio::driver::{DriverChoice, Why, open};
use ringway_netio::frame::Identity;
use ringway_netio::net::{Bound, ConnectOptions, HostPort, bind, connect, data_bind_host};
use ringway_shm::{Bell, Consumer, PopError, Producer, ring};

use crate::clock::Clock;
use crate::edge::remote::{
    EdgePort, EdgePortOptions, Greeting, LinksHandle, RemoteOptions, listen_for_edges,
};
use crate::edge::shared::Sharing;
use crate::placement::spawn_side_thread;

use super::cluster::ClusterOptions;
use super::payload::{ConnectLater, Erased};
use super::plan::Plan;
use super::remote::{MakeDriver, RemoteEdges, RemoteError, RemoteSide, RunIdentity, WantedHalf};

/// How often is looked whether a connection has greeted.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Connections whose peer has not greeted yet: fewer than fit the queue of a listening socket.
const GREETINGS_MAX: usize = 64;

/// How many edges an error names.
const NAMED_MAX: usize = 3;

/// Edges between processes over sockets: one port a process, and a connection an edge, which
/// says which edge it is. The port of process 0 is that at which it has waited for the others.
/// The workers drive them.
pub struct SocketEdges {
    /// Whether an edge comes into this process, which is process 0: its socket comes later.
    comes_to_leader: bool,
    bound: Option<Bound>,
    driver: DriverChoice,
    time_limit: Duration,
    /// Runs from when the tasks here are open.
    waiting: Option<Clock>,
    /// Those that are to come, until all have.
    coming: Option<Coming>,
    /// Those that are to be connected, until the workers run.
    going: Vec<Going>,
    /// Connects them.
    connector: Option<Connector>,
}

/// Edges that are to come to the port of this process.
struct Coming {
    port: EdgePort,
    /// Number, peer and name of each.
    edges: Vec<(u64, usize, String)>,
}

impl SocketEdges {
    /// Listens for the edges that come into this process, if any do; process 0 has its socket
    /// from [`Cluster::gather`](super::Cluster::gather). Where io_uring is wanted and denied a
    /// warning says why.
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
        let receives = receives(plan, options.process);
        let leads = options.process == 0;
        let bound = match receives && !leads {
            false => None,
            true => Some(bind(&address(options)).map_err(|error| error.to_string())?),
        };
        Ok(Self {
            comes_to_leader: receives && leads,
            bound,
            driver,
            time_limit: options.connect_timeout,
            waiting: None,
            coming: None,
            going: Vec::new(),
            connector: None,
        })
    }
}

impl RemoteEdges for SocketEdges {
    fn port(&self) -> Option<u16> {
        let bound = self.bound.as_ref();
        (!self.comes_to_leader).then(|| bound.map_or(0, |bound| bound.address.port()))
    }

    fn take_listener(&mut self, listener: TcpListener) {
        if let Ok(address) = listener.local_addr()
            && self.comes_to_leader
        {
            self.bound = Some(Bound { listener, address });
        }
    }

    fn open(
        &mut self,
        run: &RunIdentity,
        wanted: Vec<WantedHalf>,
    ) -> Result<Vec<Erased>, RemoteError> {
        let opening = Opening { run };
        if let Some(bound) = self.bound.take() {
            self.coming = opening.listen(bound, &wanted)?;
        }
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
                let (sender, going) = opening.sender(half)?;
                *opened = Some(sender);
                self.going.push(going);
            }
        }
        let halves = opened.into_iter().collect::<Option<Vec<_>>>();
        halves.ok_or_else(|| RemoteError("this process does not listen".to_owned()))
    }

    fn poll_opened(&mut self) -> Result<bool, RemoteError> {
        if !self.going.is_empty() {
            let going = std::mem::take(&mut self.going);
            self.connector = Some(Connector::start(going, self.time_limit)?);
        }
        let are_connected = Connector::poll(&mut self.connector)?;
        let Some(coming) = &self.coming else {
            return Ok(are_connected);
        };
        if let Some(why) = coming.port.failure() {
            return Err(RemoteError(format!("no edge can come: {why}")));
        }
        let missing = coming.port.missing();
        if missing.is_empty() {
            // From here on nobody is let in.
            self.coming = None;
            return Ok(are_connected);
        }
        let waited = self.waiting.get_or_insert_with(Clock::start).now().0;
        match waited > self.time_limit {
            true => Err(coming.not_come(&missing, self.time_limit)),
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
        // Each edge says itself whether it goes over shared memory; here it is whether any may.
        let mut sharing = Sharing::Off;
        for half in come.clone() {
            if sharing_of(half)? != Sharing::Off {
                sharing = Sharing::Prefer;
            }
        }
        let options = EdgePortOptions {
            job: self.run.job,
            attempt: self.run.attempt,
            bytes_max: bytes.max().unwrap_or_default(),
            remote: RemoteOptions::default().overtaking().sharing(sharing),
        };
        let port = listen_for_edges(links_of(first)?, bound.listener.into(), options);
        let edges = come.map(|half| (half.edge, half.peer, half.options.name.clone()));
        Ok(Some(Coming {
            port: port.map_err(|error| RemoteError(error.to_string()))?,
            edges: edges.collect(),
        }))
    }

    /// A sender, and what connects it once the workers run.
    fn sender(&self, half: &WantedHalf) -> Result<(Erased, Going), RemoteError> {
        let (name, peer) = (&half.options.name, half.peer);
        let address = self.run.addresses.get(peer).map(String::as_str);
        let address: HostPort = address
            .unwrap_or_default()
            .parse()
            .map_err(|_| RemoteError(format!("{name}: process {peer} has no address for data")))?;
        let identity = Identity {
            job: self.run.job,
            edge: half.edge,
            attempt: self.run.attempt,
        };
        let remote = RemoteOptions::default()
            .identity(identity)
            .sharing(sharing_of(half)?);
        let named = format!("process {peer} ({address})");
        let links = links_of(half)?;
        let (sender, connect) = half.payload.send_later(half, named, remote, links);
        let going = Going {
            name: name.clone(),
            peer,
            address,
            connect,
        };
        Ok((sender, going))
    }
}

/// A sender that is to be connected.
struct Going {
    name: String,
    peer: usize,
    address: HostPort,
    connect: ConnectLater,
}

/// Connects senders, on a thread of its own: a few at a time, so that the ports of the others
/// keep up with them.
struct Connector {
    thread: JoinHandle<Result<(), RemoteError>>,
    /// Dropped with this, which ends the thread.
    _lives: Producer<()>,
}

impl Connector {
    fn start(going: Vec<Going>, time_limit: Duration) -> Result<Self, RemoteError> {
        let (lives, mut given_up) = ring::<()>(1, Bell::thread(), Bell::thread());
        let thread = spawn_side_thread("ringway-open", move || {
            connect_all(going, time_limit, &mut given_up)
        });
        Ok(Self {
            thread: thread.map_err(|error| RemoteError(error.to_string()))?,
            _lives: lives,
        })
    }

    /// Whether all are connected.
    fn poll(this: &mut Option<Self>) -> Result<bool, RemoteError> {
        match this.take_if(|connector| connector.thread.is_finished()) {
            Some(over) => {
                let panicked = |_| RemoteError("whoever opens them has panicked".to_owned());
                over.thread.join().map_err(panicked)?.map(|()| true)
            }
            None => Ok(this.is_none()),
        }
    }
}

fn connect_all(
    going: Vec<Going>,
    time_limit: Duration,
    given_up: &mut Consumer<()>,
) -> Result<(), RemoteError> {
    let clock = Clock::start();
    let mut greetings: VecDeque<Greeting> = VecDeque::new();
    for going in going {
        while greetings.len() >= GREETINGS_MAX {
            wait_for_greeting(&mut greetings, &clock, time_limit, given_up)?;
        }
        let failed = |what: &dyn Display| {
            RemoteError(format!("{}: process {}: {what}", going.name, going.peer))
        };
        let options = ConnectOptions {
            time_limit,
            ..ConnectOptions::default()
        };
        let stream = connect(&going.address, &options, || clock.now().0);
        let stream = stream.map_err(|error| failed(&error))?;
        let greeting = (going.connect)(stream.into()).map_err(|error| failed(&error))?;
        greetings.push_back(greeting);
    }
    while !greetings.is_empty() {
        wait_for_greeting(&mut greetings, &clock, time_limit, given_up)?;
    }
    Ok(())
}

/// Waits until the oldest connection has greeted. One whose peer does not is a failure of its
/// edge, which says why.
fn wait_for_greeting(
    greetings: &mut VecDeque<Greeting>,
    clock: &Clock,
    time_limit: Duration,
    given_up: &mut Consumer<()>,
) -> Result<(), RemoteError> {
    let bell = Bell::thread();
    while greetings
        .front()
        .is_some_and(|greeting| !greeting.is_over())
    {
        if !matches!(given_up.try_pop(), Err(PopError::Empty)) {
            return Err(RemoteError(
                "the job is over before all were open".to_owned(),
            ));
        }
        if clock.now().0 > time_limit {
            let seconds = time_limit.as_secs();
            let what = format!("{} were not greeted within {seconds} s", greetings.len());
            return Err(RemoteError(what));
        }
        bell.arm();
        bell.park(Some(LOOK_EVERY));
    }
    greetings.pop_front();
    Ok(())
}

impl Coming {
    fn not_come(&self, missing: &[u64], time_limit: Duration) -> RemoteError {
        let mut by_peer: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        let edges = self.edges.iter();
        for (_, peer, name) in edges.filter(|(edge, ..)| missing.contains(edge)) {
            by_peer.entry(*peer).or_default().push(name);
        }
        let seconds = time_limit.as_secs();
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

fn sharing_of(half: &WantedHalf) -> Result<Sharing, RemoteError> {
    let sharing = half.transport.sharing();
    sharing.map_err(|error| RemoteError(error.to_string()))
}

fn links_of(half: &WantedHalf) -> Result<&LinksHandle, RemoteError> {
    let links = half.links.as_ref();
    links.ok_or_else(|| RemoteError("its worker drives no connections".to_owned()))
}

/// Where this process listens for data.
fn address(options: &ClusterOptions) -> HostPort {
    let own = options.hosts.of(options.process);
    let host = options.bind_host.clone().unwrap_or_else(|| match own.port {
        0 => data_bind_host(),
        _ => own.host.clone(),
    });
    HostPort::new(host, own.port)
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
