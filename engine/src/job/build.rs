//! From a plan to tasks: opens the edges and puts the stages of each subtask together.

use std::collections::{HashMap, HashSet};
use std::io;

use ringway_shm::Bell;

use crate::edge::EdgeOptions;
use crate::edge::remote::{LinksHandle, LinksSeed, links_with};
use crate::error::OperatorError;
use crate::operator::Subtask;
use crate::task::{SideOutlet, Task};
use crate::worker::Host;

use super::graph::{Graph, NodeId, Port};
use super::node::StagePlace;
use super::payload::{Erased, ErasedGroup, PayloadType};
use super::plan::{ChainPlan, LinkPlan, Plan};
use super::remote::{RemoteError, RemoteSide, WantedHalf};

/// The tasks of each worker.
pub(super) struct Built {
    pub(super) workers: Vec<BuiltWorker>,
}

/// The tasks of a worker, with the bell that wakes it.
pub(super) struct BuiltWorker {
    pub(super) bell: Bell,
    pub(super) tasks: Vec<Box<dyn Task>>,
    /// The connections that it is to drive, if its tasks have edges over any.
    pub(super) links: Option<LinksSeed>,
}

/// Why the parts of a job cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A worker has no descriptor to be woken through.
    #[error("a worker needs an eventfd to be woken through: {0}; raise the limit of open files")]
    Bell(#[from] io::Error),
    /// An operator, source or sink cannot be made.
    #[error("{operator} cannot be made: {message}")]
    Operator {
        /// The operator's name and subtask.
        operator: String,
        /// What it said.
        message: String,
    },
    /// The edges to other processes cannot be opened.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Which part of a plan is built.
pub(super) struct Part<'a> {
    /// The process whose tasks are built.
    pub(super) process: usize,
    /// The chains that are built; all of them where that is not said. No stream leads from one
    /// of them to one that is not.
    pub(super) chains: Option<&'a [usize]>,
    /// Whether edges to other processes are connections, which workers drive.
    pub(super) has_connections: bool,
    /// Opens the edges to other processes.
    pub(super) remote: &'a mut dyn FnMut(Vec<WantedHalf>) -> Result<Vec<Erased>, RemoteError>,
}

/// The edges of a part of a plan, and the workers that will have its tasks.
pub(super) struct OpenPart {
    edges: Edges,
    workers: Vec<BuiltWorker>,
}

/// Builds the tasks of `plan` that run in the process of `part`, to be run by `host`.
pub(super) fn build(plan: &Plan, host: &Host, part: Part<'_>) -> Result<Built, BuildError> {
    let chains = part.chains;
    let opened = OpenPart::new(plan, host, part)?;
    opened.build(plan, chains, &mut |_| {})
}

impl OpenPart {
    /// Opens the edges of `part`, which does not take long.
    pub(super) fn new(plan: &Plan, host: &Host, part: Part<'_>) -> Result<Self, BuildError> {
        let wakers = plan.workers.iter();
        let wakers = wakers.map(|_| Waker::new(host, part.has_connections));
        let mut wakers = wakers.collect::<Result<Vec<Waker>, _>>()?;
        let edges = Edges::open(plan, &wakers, part)?;
        let workers = wakers.iter_mut().enumerate();
        let workers = workers.map(|(worker, waker)| BuiltWorker {
            bell: waker.bell.clone(),
            tasks: Vec::new(),
            links: waker.seed.take_if(|_| edges.connected.contains(&worker)),
        });
        let workers = workers.collect();
        Ok(Self { edges, workers })
    }

    /// Builds the tasks of `chains`, or of all, which takes as long as the operators, sources
    /// and sinks need to be made. Tells the name of each task before that is begun.
    pub(super) fn build(
        self,
        plan: &Plan,
        chains: Option<&[usize]>,
        begins: &mut dyn FnMut(String),
    ) -> Result<Built, BuildError> {
        let (mut edges, mut workers) = (self.edges, self.workers);
        for (index, chain) in plan.chains.iter().enumerate() {
            if chains.is_some_and(|chains| !chains.contains(&index)) {
                continue;
            }
            for (subtask, &worker) in chain.workers.iter().enumerate() {
                if chain.processes[subtask] != edges.process {
                    continue;
                }
                begins(format!("{}[{subtask}]", chain.names.join(" > ")));
                let mut builder = TaskBuilder {
                    plan,
                    edges: &mut edges,
                    chain,
                    index,
                    subtask,
                };
                workers[worker].tasks.push(builder.build()?);
            }
        }
        Ok(Built { workers })
    }
}

/// What wakes a worker, and hands it connections.
struct Waker {
    bell: Bell,
    links: Option<LinksHandle>,
    seed: Option<LinksSeed>,
}

impl Waker {
    fn new(host: &Host, has_connections: bool) -> io::Result<Self> {
        if !has_connections {
            return Ok(Self {
                bell: host.bell()?,
                links: None,
                seed: None,
            });
        }
        // A driver waits for the bell together with its sockets.
        let bell = Bell::descriptor()?;
        let (links, seed) = links_with(bell.clone());
        Ok(Self {
            bell,
            links: Some(links),
            seed: Some(seed),
        })
    }
}

/// Every edge that the process has an end of, until its halves are taken.
struct Edges {
    process: usize,
    /// By link and sending subtask, in the order of the receiving subtasks.
    senders: HashMap<(usize, usize), Vec<Half>>,
    /// By receiving chain and subtask, in the order of links and sending subtasks.
    receivers: HashMap<(usize, usize), Vec<Half>>,
    /// What other processes have the other half of.
    remote: Vec<Option<Erased>>,
    /// The workers that have such.
    connected: HashSet<usize>,
}

/// A half of an edge.
enum Half {
    Here(Erased),
    /// It is in `remote` under this number.
    Remote(usize),
}

impl Edges {
    fn open(plan: &Plan, wakers: &[Waker], part: Part<'_>) -> Result<Self, RemoteError> {
        let mut edges = Self {
            process: part.process,
            senders: HashMap::new(),
            receivers: HashMap::new(),
            remote: Vec::new(),
            connected: HashSet::new(),
        };
        let mut wanted = Vec::new();
        for (index, link) in plan.links.iter().enumerate() {
            if part
                .chains
                .is_some_and(|chains| !chains.contains(&link.from))
            {
                continue;
            }
            let (from, to) = (&plan.chains[link.from], &plan.chains[link.to]);
            for sending in 0..from.workers.len() {
                for receiving in link.receivers(sending, to.workers.len()) {
                    let planned = PlannedEdge::new(plan, index, sending, receiving, wakers);
                    edges.open_one(&planned, &mut wanted);
                }
            }
        }
        edges.connected = wanted.iter().map(|half| half.worker).collect();
        if !wanted.is_empty() {
            let opened = (part.remote)(wanted)?;
            edges.remote = opened.into_iter().map(Some).collect();
        }
        Ok(edges)
    }

    fn open_one(&mut self, edge: &PlannedEdge<'_>, wanted: &mut Vec<WantedHalf>) {
        let own = self.process;
        let (sender, receiver) = match (edge.from_process == own, edge.to_process == own) {
            (true, true) => {
                let (from, to) = (edge.sender_bell(), edge.receiver_bell());
                let (sender, receiver) = edge.payload.open_edge(edge.options(), from, to);
                (Some(Half::Here(sender)), Some(Half::Here(receiver)))
            }
            (true, false) => {
                wanted.push(edge.wanted(RemoteSide::Sender));
                (Some(Half::Remote(wanted.len() - 1)), None)
            }
            (false, true) => {
                wanted.push(edge.wanted(RemoteSide::Receiver));
                (None, Some(Half::Remote(wanted.len() - 1)))
            }
            (false, false) => (None, None),
        };
        let senders = self.senders.entry((edge.link, edge.sending)).or_default();
        senders.extend(sender);
        let to = (edge.planned.to, edge.receiving);
        self.receivers.entry(to).or_default().extend(receiver);
    }

    fn take(&mut self, halves: Option<Vec<Half>>) -> Vec<Erased> {
        let halves = halves.unwrap_or_default().into_iter();
        let taken = halves.filter_map(|half| match half {
            Half::Here(half) => Some(half),
            Half::Remote(number) => self.remote.get_mut(number).and_then(Option::take),
        });
        taken.collect()
    }
}

/// An edge of the plan.
struct PlannedEdge<'a> {
    plan: &'a Plan,
    planned: &'a LinkPlan,
    link: usize,
    sending: usize,
    receiving: usize,
    from_process: usize,
    to_process: usize,
    payload: PayloadType,
    wakers: &'a [Waker],
}

impl<'a> PlannedEdge<'a> {
    fn new(
        plan: &'a Plan,
        link: usize,
        sending: usize,
        receiving: usize,
        wakers: &'a [Waker],
    ) -> Self {
        let planned = &plan.links[link];
        // Invariant: the graph looked the output up when it connected the stream.
        let payload = plan
            .graph
            .output_type(planned.node, planned.port)
            .expect("checked when connected");
        Self {
            plan,
            planned,
            link,
            sending,
            receiving,
            from_process: plan.chains[planned.from].processes[sending],
            to_process: plan.chains[planned.to].processes[receiving],
            payload,
            wakers,
        }
    }

    fn options(&self) -> EdgeOptions {
        let to = &self.plan.chains[self.planned.to];
        let name = edge_name(
            &self.plan.graph,
            self.planned,
            self.sending,
            to,
            self.receiving,
        );
        EdgeOptions::named(name)
            .capacity(self.planned.capacity_elements)
            .bytes(self.planned.bytes_max)
    }

    fn sender_bell(&self) -> Bell {
        let worker = self.plan.chains[self.planned.from].workers[self.sending];
        self.wakers[worker].bell.clone()
    }

    fn receiver_bell(&self) -> Bell {
        let worker = self.plan.chains[self.planned.to].workers[self.receiving];
        self.wakers[worker].bell.clone()
    }

    fn wanted(&self, side: RemoteSide) -> WantedHalf {
        let (chain, subtask, peer) = match side {
            RemoteSide::Sender => (self.planned.from, self.sending, self.to_process),
            RemoteSide::Receiver => (self.planned.to, self.receiving, self.from_process),
        };
        let to = &self.plan.chains[self.planned.to];
        let codec = self.plan.graph.codec(self.planned.node, self.planned.port);
        // Invariant: the plan refuses streams between processes that have no codec.
        let codec = codec.expect("the plan checks codecs");
        let worker = self.plan.chains[chain].workers[subtask];
        WantedHalf {
            edge: self
                .planned
                .edge_number(self.sending, self.receiving, to.workers.len()),
            side,
            peer,
            options: self.options(),
            payload: self.payload,
            codec,
            transport: self.planned.choice,
            worker,
            bell: self.wakers[worker].bell.clone(),
            links: self.wakers[worker].links.clone(),
        }
    }
}

fn edge_name(
    graph: &Graph,
    link: &LinkPlan,
    sending: usize,
    to: &ChainPlan,
    receiving: usize,
) -> String {
    let from = graph.output_name(link.node, link.port);
    format!("{from}[{sending}] -> {}[{receiving}]", to.names[0])
}

/// Builds the task of one subtask of one chain.
struct TaskBuilder<'a> {
    plan: &'a Plan,
    edges: &'a mut Edges,
    chain: &'a ChainPlan,
    index: usize,
    subtask: usize,
}

impl TaskBuilder<'_> {
    fn build(&mut self) -> Result<Box<dyn Task>, BuildError> {
        let subtasks: Vec<Subtask> = (0..self.chain.nodes.len())
            .map(|p| self.subtask_at(p))
            .collect();
        let side_ranges = self.side_ranges();
        let sides = self.side_outlets();
        let mut stage = self.tail();
        for position in (0..self.chain.nodes.len()).rev() {
            let node = &self.plan.graph[self.chain.nodes[position]];
            if node.factory.input().is_none() {
                break;
            }
            let subtask = subtasks[position].clone();
            let place = StagePlace {
                subtask,
                position,
                sides: side_ranges[position].clone(),
            };
            let made = node.factory.stage(place, stage.take());
            stage = Some(made.map_err(|error| not_made(&subtasks[position], &error))?);
        }
        // Invariant: the last node is a sink, which makes a stage, or has an output.
        let stage = stage.expect("a chain ends in a sink or in an output");
        let head = &self.plan.graph[self.chain.nodes[0]];
        match head.factory.input() {
            Some(payload) => {
                let receivers = self.edges.receivers.remove(&(self.index, self.subtask));
                let receivers = self.edges.take(receivers);
                Ok(payload.gate_task(receivers, stage, subtasks, sides))
            }
            None => {
                let subtask = subtasks[0].clone();
                let task = head.factory.source_task(subtasks, stage, sides);
                task.map_err(|error| not_made(&subtask, &error))
            }
        }
    }

    fn subtask_at(&self, position: usize) -> Subtask {
        Subtask {
            uid: self.chain.uids[position].clone(),
            name: self.chain.names[position].clone(),
            index: u32::try_from(self.subtask).unwrap_or(u32::MAX),
            parallelism: self.chain.parallelism,
        }
    }

    /// The side outputs of each node among those of the task.
    fn side_ranges(&self) -> Vec<std::ops::Range<usize>> {
        let sides = |node: &NodeId| self.plan.graph[*node].factory.sides().len();
        let mut base = 0;
        let ranges = self.chain.nodes.iter().map(|node| {
            let first = base;
            base += sides(node);
            first..base
        });
        ranges.collect()
    }

    fn side_outlets(&mut self) -> Vec<Box<dyn SideOutlet>> {
        let mut outlets = Vec::new();
        for &node in &self.chain.nodes {
            for side in 0..self.plan.graph[node].factory.sides().len() {
                let payload = self.plan.graph[node].factory.sides()[side];
                let groups = self.groups(node, Port::Side(side));
                outlets.push(payload.side_outlet(outlets.len(), groups));
            }
        }
        outlets
    }

    /// The output of the last node; none where it is a sink.
    fn tail(&mut self) -> Option<Erased> {
        let position = self.chain.nodes.len() - 1;
        let node = self.chain.nodes[position];
        let payload = self.plan.graph.output_type(node, Port::Main)?;
        let groups = self.groups(node, Port::Main);
        Some(payload.output_stage(groups, position))
    }

    /// The edges to every consumer of an output.
    fn groups(&mut self, node: NodeId, port: Port) -> Vec<ErasedGroup> {
        let links = self.plan.links.iter().enumerate();
        let links = links.filter(|(_, link)| link.node == node && link.port == port);
        let edges = &mut *self.edges;
        links
            .map(|(index, link)| {
                let senders = edges.senders.remove(&(index, self.subtask));
                ErasedGroup {
                    partitioner: self.plan.graph.streams[link.stream].exchange.partitioner(),
                    senders: edges.take(senders),
                }
            })
            .collect()
    }
}

fn not_made(subtask: &Subtask, error: &OperatorError) -> BuildError {
    BuildError::Operator {
        operator: subtask.to_string(),
        message: error.to_string(),
    }
}
