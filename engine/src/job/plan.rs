//! The plan of a job: chains, subtasks, edges and cores, before anything runs.

mod hash;
mod memory;
mod place;
mod stages;
mod transports;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::control::PROCESSES_MAX;
use crate::data_plane::TransportChoice;
use crate::edge::Transport;
use crate::limits::{EDGE_CAPACITY_ELEMENTS, GATE_INPUTS_MAX};
use crate::partition::Parallelism;

use super::graph::{ExchangeKind, Graph, NodeId, Port, StreamEdge};

/// What a plan is made with.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Subtasks of a node that does not say. Default: 1.
    pub parallelism: Parallelism,
    /// Workers of this process, each with the CPU it is pinned to, if any. Default: one, not
    /// pinned.
    pub workers: Vec<Option<usize>>,
    /// Processes that the subtasks are spread over. Default: 1.
    pub processes: usize,
    /// Data elements in flight at most on an edge that does not say. Default: 1024.
    pub capacity_elements: usize,
    /// Bytes of data in flight at most on an edge that does not say. Default: 64 MiB, or less
    /// where the edges together would exceed `memory_max_bytes`.
    pub edge_bytes_max: Option<usize>,
    /// Bytes that all edges together may hold. Default: 4 GiB.
    pub memory_max_bytes: u64,
    /// Whether adjacent operators without a repartition share a chain. Default: yes.
    pub chaining: bool,
    /// What carries the edges between processes of a stream that does not say. Default: shared
    /// memory where both are on one host, else sockets.
    pub transport: TransportChoice,
}

/// The plan of a job: the same in all processes that run it, the workers aside.
#[derive(Clone)]
pub struct Plan {
    /// The job's name.
    pub name: String,
    /// The chains, sources first.
    pub chains: Vec<ChainPlan>,
    /// The streams between chains.
    pub links: Vec<LinkPlan>,
    /// The stages, in the order in which they run; one where there is no blocking exchange.
    pub stages: Vec<StagePlan>,
    /// The CPU that each worker of this process is pinned to, if any.
    pub workers: Vec<Option<usize>>,
    /// How many processes run it.
    pub processes: usize,
    /// What is the same in all processes that may run the job together: its name, graph, uids,
    /// schemas, parallelism and placement, and the version of this program.
    pub hash: u64,
    /// Bytes that all edges and outboxes of a process together hold at most.
    pub memory_bytes: u64,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What the user should know before the job is changed; it runs well as it is.
    pub hints: Vec<String>,
    pub(super) graph: Graph,
}

/// Nodes that run as one task in each subtask.
#[derive(Clone, Debug)]
pub struct ChainPlan {
    /// The nodes, head first.
    pub nodes: Vec<NodeId>,
    /// Their names.
    pub names: Vec<String>,
    /// Their uids.
    pub uids: Vec<String>,
    /// How many subtasks there are.
    pub parallelism: Parallelism,
    /// The process of each subtask.
    pub processes: Vec<usize>,
    /// The worker of each subtask, in its process; of subtasks in other processes if those had
    /// as many workers as this one.
    pub workers: Vec<usize>,
}

/// Chains that run at the same time: what they read from blocking exchanges was spilled by
/// stages before.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// The chains in groups: no stream leads from one group to another.
    pub groups: Vec<Vec<usize>>,
}

/// A stream between two chains, in all its edges.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// The sending chain.
    pub from: usize,
    /// The node of it that sends.
    pub node: NodeId,
    /// The output of the node.
    pub port: Port,
    /// The receiving chain.
    pub to: usize,
    /// How batches are spread; never `Auto`.
    pub exchange: ExchangeKind,
    /// What is to carry its edges between processes.
    pub choice: TransportChoice,
    /// What carries it: of its edges, those between processes. None where that shows when they
    /// are opened: shared memory or a socket.
    pub transport: Option<Transport>,
    /// How many edges it has.
    pub edges: usize,
    /// How many of them are between two processes.
    pub edges_between: usize,
    /// The number of its first edge in the job. The others follow, by sending and then by
    /// receiving subtask.
    pub first_edge: u64,
    /// Data elements in flight at most on each edge.
    pub capacity_elements: usize,
    /// Bytes of data in flight at most on each edge.
    pub bytes_max: usize,
    /// The number of the stream in the graph.
    pub(super) stream: usize,
}

/// Why a job cannot be planned. Nothing has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to run.
    #[error("the job has no source: add one")]
    NoSource,
    /// An operator or sink is connected to nothing before it.
    #[error("{name} has no input: connect it to a stream")]
    NoInput {
        /// The node.
        name: String,
    },
    /// Streams form a cycle.
    #[error("the streams form a cycle through {}: break it", names.join(" -> "))]
    Cycle {
        /// The nodes on the cycle or behind it.
        names: Vec<String>,
    },
    /// A forward stream connects different numbers of subtasks.
    #[error(
        "{from} has {from_subtasks} subtasks and {to} has {to_subtasks}, but the stream between \
         them is forward: give both the same parallelism, or rebalance"
    )]
    ForwardMismatch {
        /// The sending node.
        from: String,
        /// Its parallelism.
        from_subtasks: u32,
        /// The receiving node.
        to: String,
        /// Its parallelism.
        to_subtasks: u32,
    },
    /// Two nodes have the same uid.
    #[error(
        "{first} and {second} have the same uid {uid:?}: state is found by uid, give each its own"
    )]
    DuplicateUid {
        /// The uid.
        uid: String,
        /// One node.
        first: String,
        /// The other.
        second: String,
    },
    /// The edges hold more memory than the job may use.
    #[error(
        "the edges may hold {} MiB, and `memory_max` is {} MiB: the {edges} edges {from} -> {to} \
         need most; lower the parallelism, or set `edge_bytes_max` under `job` to less ({} KiB \
         now), or `memory_max` to more if the machine has it",
        need_bytes.div_ceil(1 << 20), have_bytes >> 20, bytes_max >> 10
    )]
    Memory {
        /// What all edges need.
        need_bytes: u64,
        /// What the job may use.
        have_bytes: u64,
        /// The sending node of the largest stream.
        from: String,
        /// Its receiving node.
        to: String,
        /// How many edges that stream has.
        edges: usize,
        /// The bound of each.
        bytes_max: usize,
    },
    /// A subtask has too many inputs.
    #[error("a subtask of {name} has {inputs} inputs, at most {GATE_INPUTS_MAX} are possible")]
    TooManyInputs {
        /// The node.
        name: String,
        /// Its inputs.
        inputs: usize,
    },
    /// Rows go from one process to another, and have no form outside of a process.
    #[error(
        "the stream {from} -> {to} goes from one process to another, and its rows ({payload}) \
         have no form outside of a process: give it a batcher (`batched()` or `batcher(...)` on \
         the stream), or run the job in one process"
    )]
    NoCodec {
        /// The sending node.
        from: String,
        /// The receiving node.
        to: String,
        /// The payload type.
        payload: &'static str,
    },
    /// Rows go from one process to another, and nothing may carry them there.
    #[error(
        "the stream {from} -> {to} goes from one process to another, and its transport is \
         `local`, which is within one process: use `auto`, `shared` or `socket`, or run the job \
         in one process"
    )]
    LocalBetween {
        /// The sending node.
        from: String,
        /// The receiving node.
        to: String,
    },
    /// A stream within processes is to be carried between them.
    #[error(
        "the transport of the stream {from} -> {to} is `{choice}`, and none of its edges is \
         between processes: leave it out, or run the job in several processes"
    )]
    NothingBetween {
        /// The sending node.
        from: String,
        /// The receiving node.
        to: String,
        /// What was asked for.
        choice: TransportChoice,
    },
    /// Rows wait for an end that never comes.
    #[error(
        "{name} gives nothing before its input has ended, and the source {source_name} never \
         ends: bound the source, such as by `rows`, or do without {name}"
    )]
    NeverEnds {
        /// The node that waits.
        name: String,
        /// The source.
        source_name: String,
    },
    /// What is spilled is read at the same time.
    #[error(
        "what reads the blocking exchange {} also gets rows that have not gone through it: they \
         would wait for each other; put a blocking exchange into the other way too",
        names.join(" or ")
    )]
    BlockingWithin {
        /// The blocking exchanges.
        names: Vec<String>,
    },
    /// A job of several processes has a blocking exchange.
    #[error(
        "the blocking exchange {name} spills to the disk of one process, and the job has several: \
         run it in one process"
    )]
    BlockingBetween {
        /// The blocking exchange.
        name: String,
    },
    /// A node is to run in a process that the job does not have.
    #[error("{name} is to run in process {process}, but the job has {processes}, from 0")]
    NoProcess {
        /// The node.
        name: String,
        /// Where it is to run.
        process: usize,
        /// How many processes there are.
        processes: usize,
    },
    /// There are too many processes, or none.
    #[error("a job runs in 1 to {PROCESSES_MAX} processes, not in {processes}")]
    Processes {
        /// How many were asked for.
        processes: usize,
    },
    /// There is no worker.
    #[error("the job has no worker: give it at least one core")]
    NoWorker,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            parallelism: Parallelism::ONE,
            workers: vec![None],
            processes: 1,
            capacity_elements: EDGE_CAPACITY_ELEMENTS,
            edge_bytes_max: None,
            memory_max_bytes: 4 << 30,
            chaining: true,
            transport: TransportChoice::Auto,
        }
    }
}

impl Plan {
    /// Plans a job.
    ///
    /// # Errors
    /// What makes it impossible to run; each says what to change.
    pub fn new(graph: Graph, options: &PlanOptions) -> Result<Self, PlanError> {
        if options.workers.is_empty() {
            return Err(PlanError::NoWorker);
        }
        if !(1..=PROCESSES_MAX).contains(&options.processes) {
            let processes = options.processes;
            return Err(PlanError::Processes { processes });
        }
        let order = topological(&graph)?;
        check_inputs(&graph)?;
        let mut warnings = Vec::new();
        let parallelism = parallelisms(&graph, options, &mut warnings);
        let mut hints = Vec::new();
        let uids = uids(&graph, &mut hints)?;
        let exchanges = exchanges(&graph, &parallelism)?;
        let mut chains = chains(&graph, &order, &exchanges, &parallelism, &uids, options);
        place::processes(&graph, &mut chains, &exchanges, options.processes)?;
        place::workers(&mut chains, options.workers.len(), options.processes);
        let mut links = links(&graph, &chains, &exchanges, options);
        let memory_bytes = memory::bound(&graph, &chains, &mut links, options, &mut warnings)?;
        check_gates(&graph, &chains, &links)?;
        check_codecs(&graph, &links)?;
        transports::check(&graph, &links, options, &mut warnings)?;
        stages::check_ends(&graph)?;
        let stages = stages::of(&graph, &chains, &links, options.processes)?;
        let mut plan = Self {
            name: graph.name.clone(),
            chains,
            links,
            stages,
            workers: options.workers.clone(),
            processes: options.processes,
            hash: 0,
            memory_bytes,
            warnings,
            hints,
            graph,
        };
        plan.hash = hash::of(&plan);
        plan.warn_of_empty_processes();
        Ok(plan)
    }

    /// How many subtasks run, a chain counting as one.
    pub fn task_count(&self) -> usize {
        self.chains.iter().map(|chain| chain.workers.len()).sum()
    }

    /// How many subtasks run in process `process`, a chain counting as one.
    pub fn tasks_in(&self, process: usize) -> usize {
        let of = self.chains.iter().flat_map(|chain| &chain.processes);
        of.filter(|of| **of == process).count()
    }

    fn warn_of_empty_processes(&mut self) {
        let idle = (0..self.processes).filter(|process| self.tasks_in(*process) == 0);
        let idle: Vec<String> = idle.map(|process| process.to_string()).collect();
        if !idle.is_empty() {
            self.warnings.push(format!(
                "process {} has no subtask to run: use a higher parallelism or fewer processes",
                idle.join(", ")
            ));
        }
    }

    /// The graph that was planned.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl LinkPlan {
    /// The receiving subtasks that the sending subtask `sending` has edges to, out of
    /// `receiving`.
    pub(super) fn receivers(&self, sending: usize, receiving: usize) -> Range<usize> {
        receivers(self.exchange, sending, receiving)
    }

    /// The number in the job of the edge between two subtasks, of `receiving` that receive.
    pub fn edge_number(&self, sending: usize, to: usize, receiving: usize) -> u64 {
        let within = match self.exchange {
            ExchangeKind::Forward => sending,
            _ => sending * receiving + to,
        };
        self.first_edge + within as u64
    }
}

fn receivers(exchange: ExchangeKind, sending: usize, receiving: usize) -> Range<usize> {
    match exchange {
        ExchangeKind::Forward => sending..sending + 1,
        _ => 0..receiving,
    }
}

fn topological(graph: &Graph) -> Result<Vec<NodeId>, PlanError> {
    if graph.nodes.is_empty()
        || graph
            .nodes
            .iter()
            .all(|node| node.factory.input().is_some())
    {
        return Err(PlanError::NoSource);
    }
    let mut missing = vec![0_usize; graph.nodes.len()];
    for stream in &graph.streams {
        missing[stream.to.0] += 1;
    }
    let mut order: Vec<NodeId> = graph
        .nodes()
        .filter(|(id, _)| missing[id.0] == 0)
        .map(|(id, _)| id)
        .collect();
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        next += 1;
        for stream in graph.streams.iter().filter(|stream| stream.from == node) {
            missing[stream.to.0] -= 1;
            if missing[stream.to.0] == 0 {
                order.push(stream.to);
            }
        }
    }
    if order.len() == graph.nodes.len() {
        return Ok(order);
    }
    let left = graph.nodes().filter(|(id, _)| missing[id.0] > 0);
    Err(PlanError::Cycle {
        names: left.map(|(_, node)| node.name.clone()).collect(),
    })
}

fn check_inputs(graph: &Graph) -> Result<(), PlanError> {
    let fed: HashSet<NodeId> = graph.streams.iter().map(|stream| stream.to).collect();
    match graph
        .nodes()
        .find(|(id, node)| node.factory.input().is_some() && !fed.contains(id))
    {
        Some((_, node)) => Err(PlanError::NoInput {
            name: node.name.clone(),
        }),
        None => Ok(()),
    }
}

fn parallelisms(
    graph: &Graph,
    options: &PlanOptions,
    warnings: &mut Vec<String>,
) -> Vec<Parallelism> {
    let of = |node: &super::graph::Node| {
        let wanted = node.parallelism.unwrap_or(options.parallelism);
        let max = node.factory.parallelism_max().map(|max| max.max(1));
        match max.and_then(|max| Parallelism::new(max).ok()) {
            Some(max) if max < wanted => {
                let (max_subtasks, ending) = match max.subtasks() {
                    1 => (1, ""),
                    several => (several, "s"),
                };
                warnings.push(format!(
                    "{} can use {max_subtasks} subtask{ending}, not {}: it runs with {max_subtasks}",
                    node.name,
                    wanted.subtasks(),
                ));
                max
            }
            _ => wanted,
        }
    };
    graph.nodes.iter().map(of).collect()
}

/// The uid of every node: as given, or its name, with a number where several share it.
fn uids(graph: &Graph, hints: &mut Vec<String>) -> Result<Vec<String>, PlanError> {
    let mut owners: HashMap<String, String> = HashMap::new();
    for node in &graph.nodes {
        let Some(uid) = &node.uid else { continue };
        if let Some(first) = owners.insert(uid.clone(), node.name.clone()) {
            return Err(PlanError::DuplicateUid {
                uid: uid.clone(),
                first,
                second: node.name.clone(),
            });
        }
    }
    let mut derived = Vec::new();
    let uids = graph.nodes.iter().map(|node| {
        node.uid.clone().unwrap_or_else(|| {
            derived.push(node.name.clone());
            let mut uid = node.name.clone();
            let mut number = 1;
            while owners.contains_key(&uid) {
                number += 1;
                uid = format!("{}-{number}", node.name);
            }
            owners.insert(uid.clone(), node.name.clone());
            uid
        })
    });
    let uids = uids.collect();
    if !derived.is_empty() {
        hints.push(format!(
            "state of {} is found by a uid derived from the name: give a uid before renaming",
            derived.join(", ")
        ));
    }
    Ok(uids)
}

/// The exchange of every stream, with `Auto` decided.
fn exchanges(graph: &Graph, parallelism: &[Parallelism]) -> Result<Vec<ExchangeKind>, PlanError> {
    let decide = |stream: &StreamEdge| {
        let (from, to) = (parallelism[stream.from.0], parallelism[stream.to.0]);
        match stream.exchange.kind() {
            ExchangeKind::Auto if from == to => Ok(ExchangeKind::Forward),
            ExchangeKind::Auto => Ok(ExchangeKind::Rebalance),
            ExchangeKind::Forward if from != to => Err(PlanError::ForwardMismatch {
                from: graph[stream.from].name.clone(),
                from_subtasks: from.subtasks(),
                to: graph[stream.to].name.clone(),
                to_subtasks: to.subtasks(),
            }),
            kind => Ok(kind),
        }
    };
    graph.streams.iter().map(decide).collect()
}

/// Groups nodes into chains: a node joins the chain of the node before it when the stream
/// between them is forward and neither has another stream there.
fn chains(
    graph: &Graph,
    order: &[NodeId],
    exchanges: &[ExchangeKind],
    parallelism: &[Parallelism],
    uids: &[String],
    options: &PlanOptions,
) -> Vec<ChainPlan> {
    let mut chains: Vec<ChainPlan> = Vec::new();
    let mut chain_of: BTreeMap<NodeId, usize> = BTreeMap::new();
    for &node in order {
        let joins = before_in_chain(graph, exchanges, node)
            .filter(|_| options.chaining && !graph[node].starts_chain)
            .filter(|before| {
                options.processes == 1 || graph[*before].process == graph[node].process
            })
            .map(|before| chain_of[&before]);
        let chain = joins.unwrap_or_else(|| {
            chains.push(ChainPlan {
                nodes: Vec::new(),
                names: Vec::new(),
                uids: Vec::new(),
                parallelism: parallelism[node.0],
                processes: Vec::new(),
                workers: Vec::new(),
            });
            chains.len() - 1
        });
        chains[chain].nodes.push(node);
        chains[chain].names.push(graph[node].name.clone());
        chains[chain].uids.push(uids[node.0].clone());
        chain_of.insert(node, chain);
    }
    chains
}

fn before_in_chain(graph: &Graph, exchanges: &[ExchangeKind], node: NodeId) -> Option<NodeId> {
    let mut inputs = graph
        .streams
        .iter()
        .enumerate()
        .filter(|(_, stream)| stream.to == node);
    let (index, stream) = inputs.next()?;
    let is_only_input = inputs.next().is_none();
    let is_only_output = graph
        .streams
        .iter()
        .filter(|s| s.from == stream.from && s.port == Port::Main)
        .count()
        == 1;
    let chainable = is_only_input
        && is_only_output
        && stream.port == Port::Main
        && exchanges[index] == ExchangeKind::Forward;
    chainable.then_some(stream.from)
}

fn links(
    graph: &Graph,
    chains: &[ChainPlan],
    exchanges: &[ExchangeKind],
    options: &PlanOptions,
) -> Vec<LinkPlan> {
    let chain_of = |node| {
        // Invariant: `chains` put every node of the graph into one.
        chains
            .iter()
            .position(|chain| chain.nodes.contains(&node))
            .expect("every node has a chain")
    };
    let inside = |stream: &StreamEdge, from: usize, to: usize| {
        from == to && stream.port == Port::Main && chains[to].nodes[0] != stream.to
    };
    let mut links = Vec::new();
    let mut first_edge = 0;
    for (index, stream) in graph.streams.iter().enumerate() {
        let (from, to) = (chain_of(stream.from), chain_of(stream.to));
        if inside(stream, from, to) {
            continue;
        }
        let exchange = exchanges[index];
        let (edges, edges_between) = count_edges(&chains[from], &chains[to], exchange);
        let choice = stream.transport.unwrap_or(options.transport);
        links.push(LinkPlan {
            from,
            node: stream.from,
            port: stream.port,
            to,
            exchange,
            choice,
            transport: match (edges_between, choice) {
                (0, _) | (_, TransportChoice::Local) => Some(Transport::Local),
                (_, TransportChoice::Shared) => Some(Transport::Shared),
                (_, TransportChoice::Socket) => Some(Transport::Socket),
                (_, TransportChoice::Auto) => None,
            },
            edges,
            edges_between,
            first_edge,
            capacity_elements: stream
                .capacity_elements
                .unwrap_or(options.capacity_elements)
                .max(1),
            bytes_max: stream.bytes_max.or(options.edge_bytes_max).unwrap_or(0),
            stream: index,
        });
        first_edge += edges as u64;
    }
    links
}

/// How many edges there are between two chains, and how many of them between processes.
fn count_edges(from: &ChainPlan, to: &ChainPlan, exchange: ExchangeKind) -> (usize, usize) {
    let (mut edges, mut between) = (0, 0);
    for (sending, process) in from.processes.iter().enumerate() {
        for receiving in receivers(exchange, sending, to.processes.len()) {
            edges += 1;
            between += usize::from(to.processes[receiving] != *process);
        }
    }
    (edges, between)
}

fn check_gates(graph: &Graph, chains: &[ChainPlan], links: &[LinkPlan]) -> Result<(), PlanError> {
    for (index, chain) in chains.iter().enumerate() {
        let subtasks = chain.parallelism.subtasks() as usize;
        let inputs: usize = links
            .iter()
            .filter(|link| link.to == index)
            .map(|link| link.edges / subtasks)
            .sum();
        if inputs > GATE_INPUTS_MAX {
            return Err(PlanError::TooManyInputs {
                name: graph[chain.nodes[0]].name.clone(),
                inputs,
            });
        }
    }
    Ok(())
}

/// Makes sure that what goes between processes has a form there.
fn check_codecs(graph: &Graph, links: &[LinkPlan]) -> Result<(), PlanError> {
    let between = links.iter().filter(|link| link.edges_between > 0);
    for link in between {
        if graph.codec(link.node, link.port).is_none() {
            let payload = graph.output_type(link.node, link.port);
            return Err(PlanError::NoCodec {
                from: graph.output_name(link.node, link.port),
                to: graph[graph.streams[link.stream].to].name.clone(),
                payload: payload.map_or("rows", |payload| payload.name()),
            });
        }
    }
    Ok(())
}
