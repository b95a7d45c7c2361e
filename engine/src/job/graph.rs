//! The graph of a job: nodes and the streams between them, before any subtask exists.

use std::fmt;
use std::sync::Arc;

use crate::batch::{Either, Payload};
use crate::connect::ConnectorStats;
use crate::data_plane::TransportChoice;
use crate::output::{Broadcast, Forward, InTurn, OfLeft, OfRight, Partitioner};
use crate::partition::{Fnv1a, Parallelism};
use crate::wire::PayloadCodec;

use super::blocking::BlockingEdge;
use super::node::NodeFactory;
use super::payload::{Codec, Erased, PayloadType};

/// A node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) usize);

/// An output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// The main output.
    Main,
    /// A side output, from 0.
    Side(usize),
}

/// A node: an operator, source or sink, in all its subtasks.
#[derive(Clone)]
pub struct Node {
    /// For people; need not be unique.
    pub name: String,
    /// By which state is found again. Derived from the name where it is not given.
    pub uid: Option<String>,
    /// Subtasks, or as many as the job has by default.
    pub parallelism: Option<Parallelism>,
    /// Never chained to the node before it.
    pub starts_chain: bool,
    /// What its side outputs are called, for people; one without a name goes by its number.
    pub side_names: Vec<String>,
    /// The process that all its subtasks run in, where the job has several, such as the one
    /// whose standard output it writes.
    pub process: Option<usize>,
    /// Whether it never ends by itself: a source without an end.
    pub is_unbounded: bool,
    /// Whether it gives nothing before its input has ended, so that a source without an end
    /// before it would make the job wait for ever.
    pub needs_end: bool,
    pub(super) factory: Arc<dyn NodeFactory>,
    /// What it has read or written as a source or sink of a connector that counts it.
    pub(super) stats: Option<ConnectorStats>,
    /// How batches of its outputs go from process to process, where that was said.
    codecs: Vec<(Port, Codec)>,
}

/// A stream from an output of one node to another node.
#[derive(Clone)]
pub struct StreamEdge {
    /// Where it comes from.
    pub from: NodeId,
    /// From which output.
    pub port: Port,
    /// Where it goes.
    pub to: NodeId,
    /// How batches are spread over the subtasks of `to`.
    pub exchange: Exchange,
    /// Data elements in flight at most on each edge, if not the default.
    pub capacity_elements: Option<usize>,
    /// Bytes in flight at most on each edge, if not the default.
    pub bytes_max: Option<usize>,
    /// What carries the edges between processes, if not what the job says.
    pub transport: Option<TransportChoice>,
}

/// How batches are spread over the subtasks of a consumer.
#[derive(Clone)]
pub struct Exchange {
    kind: ExchangeKind,
    payload: PayloadType,
    make: Arc<dyn Fn() -> Erased + Send + Sync>,
}

/// The kinds of exchange, as a plan shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// Subtask to subtask where both sides have as many, in turn where not.
    Auto,
    /// Subtask to subtask. Both sides have as many.
    Forward,
    /// Whole batches in turn.
    Rebalance,
    /// Every batch to every subtask.
    Broadcast,
    /// By key: a key always goes to the same subtask.
    Key,
    /// Some other way.
    Custom,
}

/// The graph of a job.
#[derive(Clone, Default)]
pub struct Graph {
    /// The job's name.
    pub name: String,
    pub(super) nodes: Vec<Node>,
    pub(super) streams: Vec<StreamEdge>,
    /// The blocking exchanges, in the order they were added.
    pub(super) blocking: Vec<BlockingEdge>,
    /// What was noted, see [`Graph::note`].
    pub(super) notes: Fnv1a,
}

impl Exchange {
    /// Subtask to subtask where both sides have as many subtasks, in turn where not.
    pub fn auto<B: Payload>() -> Self {
        Self::of::<B>(ExchangeKind::Auto, || Box::new(InTurn::default()))
    }

    /// Subtask to subtask.
    pub fn forward<B: Payload>() -> Self {
        Self::of::<B>(ExchangeKind::Forward, || Box::new(Forward))
    }

    /// Whole batches in turn.
    pub fn rebalance<B: Payload>() -> Self {
        Self::of::<B>(ExchangeKind::Rebalance, || Box::new(InTurn::default()))
    }

    /// Every batch to every subtask.
    pub fn broadcast<B: Payload>() -> Self {
        Self::of::<B>(ExchangeKind::Broadcast, || Box::new(Broadcast))
    }

    /// By key, with a partitioner that `make` makes for each sending subtask.
    pub fn key<B: Payload>(
        make: impl Fn() -> Box<dyn Partitioner<B>> + Send + Sync + 'static,
    ) -> Self {
        Self::of::<B>(ExchangeKind::Key, make)
    }

    /// By a partitioner that `make` makes for each sending subtask.
    pub fn custom<B: Payload>(
        make: impl Fn() -> Box<dyn Partitioner<B>> + Send + Sync + 'static,
    ) -> Self {
        Self::of::<B>(ExchangeKind::Custom, make)
    }

    /// The same exchange, of what has become the left input of an operator with two.
    ///
    /// # Panics
    /// When it is of a payload type other than `A`.
    pub fn of_left<A: Payload, B: Payload>(self) -> Self {
        self.of_side::<A, Either<A, B>>(|partitioner| Box::new(OfLeft::new(partitioner)))
    }

    /// The same exchange, of what has become the right input of an operator with two.
    ///
    /// # Panics
    /// When it is of a payload type other than `B`.
    pub fn of_right<A: Payload, B: Payload>(self) -> Self {
        self.of_side::<B, Either<A, B>>(|partitioner| Box::new(OfRight::new(partitioner)))
    }

    /// Its kind.
    pub fn kind(&self) -> ExchangeKind {
        self.kind
    }

    /// A `Box<dyn Partitioner<B>>` for one sending subtask.
    pub(super) fn partitioner(&self) -> Erased {
        (self.make)()
    }

    fn of_side<S: Payload, E: Payload>(
        self,
        wrap: impl Fn(Box<dyn Partitioner<S>>) -> Box<dyn Partitioner<E>> + Send + Sync + 'static,
    ) -> Self {
        let (of, to) = (self.payload, PayloadType::of::<S>());
        assert_eq!(of, to, "the exchange is of another type");
        let kind = self.kind;
        Self::of::<E>(kind, move || wrap(self.partitioner().take()))
    }

    fn of<B: Payload>(
        kind: ExchangeKind,
        make: impl Fn() -> Box<dyn Partitioner<B>> + Send + Sync + 'static,
    ) -> Self {
        let make = Arc::new(move || Erased::new(make()));
        Self {
            kind,
            payload: PayloadType::of::<B>(),
            make,
        }
    }
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            nodes: Vec::new(),
            streams: Vec::new(),
            blocking: Vec::new(),
            notes: Fnv1a::new(),
        }
    }

    /// Adds a node.
    pub fn add(&mut self, name: impl Into<String>, factory: impl NodeFactory + 'static) -> NodeId {
        self.nodes.push(Node {
            name: name.into(),
            uid: None,
            parallelism: None,
            starts_chain: false,
            side_names: Vec::new(),
            process: None,
            is_unbounded: false,
            needs_end: false,
            stats: None,
            factory: Arc::new(factory),
            codecs: Vec::new(),
        });
        NodeId(self.nodes.len() - 1)
    }

    /// The name of an output of a node: that of the node, and for a side output its own behind.
    pub fn output_name(&self, node: NodeId, port: Port) -> String {
        let name = &self[node].name;
        match port {
            Port::Main => name.clone(),
            Port::Side(side) => match self[node].side_names.get(side) {
                Some(side) => format!("{name}.{side}"),
                None => format!("{name}.side{side}"),
            },
        }
    }

    /// Says how batches of an output of a node go to other processes. Record batches need no
    /// codec; for other payloads the last one said counts.
    ///
    /// # Panics
    /// When the node has no such output, or it is of another payload type.
    pub fn set_codec<B: Payload>(
        &mut self,
        node: NodeId,
        port: Port,
        codec: Arc<dyn PayloadCodec<B>>,
    ) {
        let output = self.output_type(node, port);
        assert_eq!(output, Some(PayloadType::of::<B>()), "another payload type");
        let codecs = &mut self[node].codecs;
        codecs.retain(|(of, _)| *of != port);
        codecs.push((port, Codec::new(codec)));
    }

    /// Notes something that must be the same in all processes that run the job, such as the
    /// text of its file or the sizes of its inputs. It becomes part of the plan's hash.
    pub fn note(&mut self, text: &[u8]) {
        self.notes.write_part(text);
    }

    /// How batches of an output go to other processes, if they can.
    pub(super) fn codec(&self, node: NodeId, port: Port) -> Option<Codec> {
        let said = self[node].codecs.iter().find(|(of, _)| *of == port);
        match said {
            Some((_, codec)) => Some(codec.clone()),
            None => Codec::of_record_batches(self.output_type(node, port)?),
        }
    }

    /// Connects an output of `from` to `to`.
    ///
    /// # Panics
    /// When the payload types of the output, of `to` and of the exchange differ, or an end has
    /// no such port: whoever builds graphs from user input checks that first
    /// ([`Graph::output_type`], [`Graph::input_type`]).
    pub fn connect(
        &mut self,
        from: NodeId,
        port: Port,
        to: NodeId,
        exchange: Exchange,
    ) -> &mut StreamEdge {
        // Invariant: whoever builds a graph from user input asks for the types first.
        let output = self
            .output_type(from, port)
            .expect("the node has this output");
        let input = self.input_type(to).expect("the node takes input");
        assert_eq!(
            output, input,
            "{} and {} differ",
            self[from].name, self[to].name
        );
        assert_eq!(output, exchange.payload, "the exchange is of another type");
        self.streams.push(StreamEdge {
            from,
            port,
            to,
            exchange,
            capacity_elements: None,
            bytes_max: None,
            transport: None,
        });
        // Invariant: it was pushed just above.
        self.streams.last_mut().expect("one was pushed")
    }

    /// The payload type of an output, if the node has it.
    pub fn output_type(&self, node: NodeId, port: Port) -> Option<PayloadType> {
        let factory = &self[node].factory;
        match port {
            Port::Main => factory.output(),
            Port::Side(index) => factory.sides().get(index).copied(),
        }
    }

    /// The payload type that a node takes, unless it is a source.
    pub fn input_type(&self, node: NodeId) -> Option<PayloadType> {
        self[node].factory.input()
    }

    /// All nodes, in the order they were added.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (NodeId(index), node))
    }

    /// All streams, in the order they were connected.
    pub fn streams(&self) -> &[StreamEdge] {
        &self.streams
    }
}

impl std::ops::Index<NodeId> for Graph {
    type Output = Node;

    fn index(&self, node: NodeId) -> &Node {
        &self.nodes[node.0]
    }
}

impl std::ops::IndexMut<NodeId> for Graph {
    fn index_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.0]
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Forward => "forward",
            Self::Rebalance => "rebalance",
            Self::Broadcast => "broadcast",
            Self::Key => "key",
            Self::Custom => "custom",
        })
    }
}
