//! The plan of a job: chains, subtasks, edges and cores, before anything runs.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::edge::Transport;
use crate::limits::{
    EDGE_BYTES_MAX, EDGE_BYTES_MIN, EDGE_CAPACITY_ELEMENTS, GATE_INPUTS_MAX, OUTBOX_BYTES_MAX,
};
use crate::partition::Parallelism;

use super::graph::{ExchangeKind, Graph, NodeId, Port, StreamEdge};

/// What a plan is made with.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Subtasks of a node that does not say. Default: 1.
    pub parallelism: Parallelism,
    /// Workers, each with the CPU it is pinned to, if any. Default: one, not pinned.
    pub workers: Vec<Option<usize>>,
    /// Data elements in flight at most on an edge that does not say. Default: 1024.
    pub capacity_elements: usize,
    /// Bytes of data in flight at most on an edge that does not say. Default: 64 MiB, or less
    /// where the edges together would exceed `memory_max_bytes`.
    pub edge_bytes_max: Option<usize>,
    /// Bytes that all edges together may hold. Default: 4 GiB.
    pub memory_max_bytes: u64,
    /// Whether adjacent operators without a repartition share a chain. Default: yes.
    pub chaining: bool,
}

/// The plan of a job.
pub struct Plan {
    /// The job's name.
    pub name: String,
    /// The chains, sources first.
    pub chains: Vec<ChainPlan>,
    /// The streams between chains.
    pub links: Vec<LinkPlan>,
    /// The CPU that each worker is pinned to, if any.
    pub workers: Vec<Option<usize>>,
    /// Bytes that all edges and outboxes together hold at most.
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
    /// The worker of each subtask.
    pub workers: Vec<usize>,
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
    /// What carries it.
    pub transport: Transport,
    /// How many edges it has.
    pub edges: usize,
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
    /// There is no worker.
    #[error("the job has no worker: give it at least one core")]
    NoWorker,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            parallelism: Parallelism::ONE,
            workers: vec![None],
            capacity_elements: EDGE_CAPACITY_ELEMENTS,
            edge_bytes_max: None,
            memory_max_bytes: 4 << 30,
            chaining: true,
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
        let order = topological(&graph)?;
        check_inputs(&graph)?;
        let mut warnings = Vec::new();
        let parallelism = parallelisms(&graph, options, &mut warnings);
        let mut hints = Vec::new();
        let uids = uids(&graph, &mut hints)?;
        let exchanges = exchanges(&graph, &parallelism)?;
        let mut chains = chains(&graph, &order, &exchanges, &parallelism, &uids, options);
        place(&mut chains, options.workers.len());
        let mut links = links(&graph, &chains, &exchanges, options);
        let tasks = chains.iter().map(|chain| chain.workers.len()).sum();
        let memory_bytes = bound_memory(&graph, &mut links, tasks, options, &mut warnings)?;
        check_gates(&graph, &chains, &links)?;
        let name = graph.name.clone();
        let workers = options.workers.clone();
        Ok(Self {
            name,
            chains,
            links,
            workers,
            memory_bytes,
            warnings,
            hints,
            graph,
        })
    }

    /// How many subtasks run, a chain counting as one.
    pub fn task_count(&self) -> usize {
        self.chains.iter().map(|chain| chain.workers.len()).sum()
    }

    /// The graph that was planned.
    pub fn graph(&self) -> &Graph {
        &self.graph
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
            .map(|before| chain_of[&before]);
        let chain = joins.unwrap_or_else(|| {
            chains.push(ChainPlan {
                nodes: Vec::new(),
                names: Vec::new(),
                uids: Vec::new(),
                parallelism: parallelism[node.0],
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

/// Spreads subtasks over workers: equal numbers of adjacent chains meet on the same worker,
/// chains with one subtask go round.
fn place(chains: &mut [ChainPlan], workers: usize) {
    let mut placed = 0;
    for chain in chains {
        let subtasks = chain.parallelism.subtasks() as usize;
        chain.workers = (0..subtasks)
            .map(|index| (placed + index) % workers)
            .collect();
        placed += subtasks;
    }
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
    for (index, stream) in graph.streams.iter().enumerate() {
        let (from, to) = (chain_of(stream.from), chain_of(stream.to));
        if inside(stream, from, to) {
            continue;
        }
        let exchange = exchanges[index];
        let subtasks = |chain: usize| chains[chain].parallelism.subtasks() as usize;
        let edges = match exchange {
            ExchangeKind::Forward => subtasks(from),
            _ => subtasks(from) * subtasks(to),
        };
        links.push(LinkPlan {
            from,
            node: stream.from,
            port: stream.port,
            to,
            exchange,
            transport: Transport::Local,
            edges,
            capacity_elements: stream
                .capacity_elements
                .unwrap_or(options.capacity_elements)
                .max(1),
            bytes_max: stream.bytes_max.or(options.edge_bytes_max).unwrap_or(0),
            stream: index,
        });
    }
    links
}

/// Gives edges that do not say a bound their share of the job's memory, and refuses what does
/// not fit.
fn bound_memory(
    graph: &Graph,
    links: &mut [LinkPlan],
    tasks: usize,
    options: &PlanOptions,
    warnings: &mut Vec<String>,
) -> Result<u64, PlanError> {
    let open: usize = links
        .iter()
        .filter(|l| l.bytes_max == 0)
        .map(|l| l.edges)
        .sum();
    let need = |link: &LinkPlan| link.edges as u64 * link.bytes_max as u64;
    let outboxes = tasks as u64 * OUTBOX_BYTES_MAX as u64;
    let fixed = outboxes + links.iter().map(need).sum::<u64>();
    if open > 0 {
        let share = options.memory_max_bytes.saturating_sub(fixed) / open as u64;
        let share = usize::try_from(share).unwrap_or(EDGE_BYTES_MAX);
        let bytes_max = share.clamp(EDGE_BYTES_MIN, EDGE_BYTES_MAX);
        if bytes_max < EDGE_BYTES_MAX {
            warnings.push(format!(
                "{open} edges share the memory of the job: each holds at most {bytes_max} bytes"
            ));
        }
        links
            .iter_mut()
            .filter(|l| l.bytes_max == 0)
            .for_each(|l| l.bytes_max = bytes_max);
    }
    let need_bytes = outboxes + links.iter().map(need).sum::<u64>();
    let largest = links.iter().max_by_key(|link| need(link));
    match largest {
        Some(link) if need_bytes > options.memory_max_bytes => Err(PlanError::Memory {
            need_bytes,
            have_bytes: options.memory_max_bytes,
            from: graph[link.node].name.clone(),
            to: graph[graph.streams[link.stream].to].name.clone(),
            edges: link.edges,
            bytes_max: link.bytes_max,
        }),
        _ => Ok(need_bytes),
    }
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
