//! From a plan to tasks: opens the edges and puts the stages of each subtask together.

use std::collections::HashMap;
use std::io;

use ringway_shm::Bell;

use crate::edge::EdgeOptions;
use crate::error::OperatorError;
use crate::operator::Subtask;
use crate::task::{SideOutlet, Task};
use crate::worker::Host;

use super::graph::{ExchangeKind, Graph, NodeId, Port};
use super::node::StagePlace;
use super::payload::{Erased, ErasedGroup};
use super::plan::{ChainPlan, LinkPlan, Plan};

/// The tasks of each worker, with the bell that wakes it.
pub(super) struct Built {
    pub(super) workers: Vec<(Bell, Vec<Box<dyn Task>>)>,
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
}

/// Builds every task of `plan`, to be run by `host`.
pub(super) fn build(plan: &Plan, host: &Host) -> Result<Built, BuildError> {
    let bells: Vec<Bell> = plan
        .workers
        .iter()
        .map(|_| host.bell())
        .collect::<Result<_, _>>()?;
    let mut workers: Vec<_> = bells
        .iter()
        .map(|bell| (bell.clone(), Vec::new()))
        .collect();
    let mut edges = Edges::open(plan, &bells);
    for (index, chain) in plan.chains.iter().enumerate() {
        for (subtask, &worker) in chain.workers.iter().enumerate() {
            let mut builder = TaskBuilder {
                plan,
                edges: &mut edges,
                chain,
                index,
                subtask,
            };
            workers[worker].1.push(builder.build()?);
        }
    }
    Ok(Built { workers })
}

/// Every edge of the job, until its halves are taken.
struct Edges {
    /// By link and sending subtask, in the order of the receiving subtasks.
    senders: HashMap<(usize, usize), Vec<Erased>>,
    /// By receiving chain and subtask, in the order of links and sending subtasks.
    receivers: HashMap<(usize, usize), Vec<Erased>>,
}

impl Edges {
    fn open(plan: &Plan, bells: &[Bell]) -> Self {
        let mut edges = Self {
            senders: HashMap::new(),
            receivers: HashMap::new(),
        };
        for (index, link) in plan.links.iter().enumerate() {
            let (from, to) = (&plan.chains[link.from], &plan.chains[link.to]);
            for sending in 0..from.workers.len() {
                for receiving in receivers_of(link, sending, to.workers.len()) {
                    edges.open_one(plan, index, sending, receiving, bells);
                }
            }
        }
        edges
    }

    fn open_one(
        &mut self,
        plan: &Plan,
        link: usize,
        sending: usize,
        receiving: usize,
        bells: &[Bell],
    ) {
        let planned = &plan.links[link];
        let (from, to) = (&plan.chains[planned.from], &plan.chains[planned.to]);
        // Invariant: the graph looked the output up when it connected the stream.
        let payload = plan
            .graph
            .output_type(planned.node, planned.port)
            .expect("checked when connected");
        let options = EdgeOptions::named(edge_name(&plan.graph, planned, sending, to, receiving))
            .capacity(planned.capacity_elements)
            .bytes(planned.bytes_max);
        let (sender_bell, receiver_bell) = (
            bells[from.workers[sending]].clone(),
            bells[to.workers[receiving]].clone(),
        );
        let (sender, receiver) = payload.open_edge(options, sender_bell, receiver_bell);
        self.senders
            .entry((link, sending))
            .or_default()
            .push(sender);
        self.receivers
            .entry((planned.to, receiving))
            .or_default()
            .push(receiver);
    }
}

fn receivers_of(link: &LinkPlan, sending: usize, receiving: usize) -> std::ops::Range<usize> {
    match link.exchange {
        ExchangeKind::Forward => sending..sending + 1,
        _ => 0..receiving,
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
                Ok(payload.gate_task(receivers.unwrap_or_default(), stage, subtasks, sides))
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
            .map(|(index, link)| ErasedGroup {
                partitioner: self.plan.graph.streams[link.stream].exchange.partitioner(),
                senders: edges
                    .senders
                    .remove(&(index, self.subtask))
                    .unwrap_or_default(),
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
