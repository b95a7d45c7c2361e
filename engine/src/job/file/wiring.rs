//! The graph while it is built from a job file, and the streams that have names so far.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};

use crate::batch::{Either, Payload};
use crate::column::KeyColumns;
use crate::error::OperatorError;
use crate::expr::{BoundExpr, Expr, ExprError};
use crate::job::node::OperatorNode;
use crate::job::payload::PayloadType;
use crate::job::{Graph, NodeId};
use crate::operator::{Operator, Subtask};
use crate::partition::Parallelism;

use super::claims::Claims;
use super::common::{ConsumerCommon, ExchangeName, Names};
use super::document::Document;
use super::error::JobFileError;
use super::inputs::Consumer;
use super::names::did_you_mean;
use super::stream::{Route, Stream};

/// A batch of either input of an operator with two.
type EitherBatch = Either<RecordBatch, RecordBatch>;

/// The graph so far.
pub(super) struct Wiring<'a> {
    pub(super) document: &'a Document,
    pub(super) graph: Graph,
    /// Subtasks of whatever does not say itself.
    pub(super) parallelism: Parallelism,
    /// Where what is put aside goes, if that is said.
    pub(super) spill_dir: Option<PathBuf>,
    /// The files of the sources and sinks so far.
    pub(super) claims: Claims,
    streams: BTreeMap<String, Stream>,
    /// The names of the streams in the order in which they were given.
    order: Vec<String>,
    /// The names that are inputs of something.
    taken: HashSet<String>,
}

impl<'a> Wiring<'a> {
    /// Nothing yet, for what `consumers` will add.
    pub(super) fn new(
        document: &'a Document,
        graph: Graph,
        parallelism: Parallelism,
        consumers: &[Consumer<'_>],
    ) -> Self {
        let inputs = consumers.iter().flat_map(|consumer| consumer.input_names());
        Self {
            document,
            graph,
            parallelism,
            spill_dir: None,
            claims: Claims::default(),
            streams: BTreeMap::new(),
            order: Vec::new(),
            taken: inputs.cloned().collect(),
        }
    }

    /// Gives a stream its name.
    pub(super) fn name(&mut self, name: impl Into<String>, stream: Stream) {
        let name = name.into();
        self.order.push(name.clone());
        self.streams.insert(name, stream);
    }

    /// The streams and their columns, each behind those that it is made of.
    pub(super) fn schemas(&self) -> Vec<(String, SchemaRef)> {
        let named = self.order.iter().map(|name| (name, &self.streams[name]));
        named
            .map(|(name, stream)| (name.clone(), stream.schema.clone()))
            .collect()
    }

    /// Whether something takes the stream `name`.
    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// The names of the streams that nothing takes and that are not side outputs.
    pub(super) fn untaken(&self) -> Vec<&str> {
        let names = self.streams.keys().map(String::as_str);
        names
            .filter(|name| !name.contains('.') && !self.is_taken(name))
            .collect()
    }

    /// What a consumer takes: its inputs in one stream, spread as it or they say.
    ///
    /// # Errors
    /// When an input has no such output, the columns of the inputs differ, or the key is none.
    pub(super) fn input(&self, consumer: &Consumer<'_>) -> Result<Stream, JobFileError> {
        let (key, names) = &consumer.inputs[0];
        let stream = self.union(consumer, key, names)?;
        Ok(match self.route(consumer, &stream)? {
            Some(route) => stream.routed(&route),
            None => stream,
        })
    }

    /// What a consumer with two inputs takes: the left one and the right one.
    ///
    /// # Errors
    /// When an input has no such output, or the columns of those of one side differ.
    pub(super) fn two_inputs(&self, consumer: &Consumer<'_>) -> Result<[Stream; 2], JobFileError> {
        let [(left_key, left), (right_key, right)] = &consumer.inputs[..] else {
            unreachable!("the operator takes two inputs");
        };
        Ok([
            self.union(consumer, left_key, left)?,
            self.union(consumer, right_key, right)?,
        ])
    }

    /// The streams that stand under `key` of a consumer, in one.
    fn union(
        &self,
        consumer: &Consumer<'_>,
        key: &str,
        names: &Names,
    ) -> Result<Stream, JobFileError> {
        let mut all: Option<Stream> = None;
        for (index, name) in names.as_slice().iter().enumerate() {
            let mut path = consumer.declared.path(&[key]);
            path.extend(names.key_of(index));
            let Some(stream) = self.streams.get(name).cloned() else {
                let known: Vec<&str> = self.streams.keys().map(String::as_str).collect();
                let message = format!("there is no stream `{name}`{}", did_you_mean(name, &known));
                return Err(self.document.error(&path, message));
            };
            let joined = match all {
                None => stream,
                Some(before) => before
                    .union(stream)
                    .map_err(|message| self.document.error(&path, message))?,
            };
            all = Some(joined);
        }
        // Invariant: `in_order` refuses a consumer whose list of inputs is empty.
        Ok(all.expect("a consumer without an input is refused before"))
    }

    /// The positions of the columns `names`, which stand under `key` of a consumer and are to
    /// be a key.
    ///
    /// # Errors
    /// When there is no such column, or it cannot be a key.
    pub(super) fn key_columns(
        &self,
        consumer: &Consumer<'_>,
        key: &str,
        names: &Names,
        schema: &SchemaRef,
    ) -> Result<Vec<usize>, JobFileError> {
        let mut columns = Vec::new();
        for (index, name) in names.as_slice().iter().enumerate() {
            let mut path = consumer.declared.path(&[key]);
            path.extend(names.key_of(index));
            let column = self.column(&path, name, schema)?;
            if let Err(error) = KeyColumns::bind(schema, &[column]) {
                return Err(self.document.error(&path, no_key(schema, column, &error)));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            let path = consumer.declared.path(&[key]);
            return Err(self
                .document
                .error(&path, "the list is empty: name a column"));
        }
        Ok(columns)
    }

    /// The position of the column `name`, which is named at `path`.
    ///
    /// # Errors
    /// When there is no such column.
    pub(super) fn column(
        &self,
        path: &[String],
        name: &str,
        schema: &SchemaRef,
    ) -> Result<usize, JobFileError> {
        schema.index_of(name).map_err(|_| {
            let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let message = format!("there is no column `{name}`{}", did_you_mean(name, &known));
            self.document.error(path, message)
        })
    }

    /// Adds an operator that takes `input` and has side outputs of these names;
    /// `make` makes it for a subtask.
    pub(super) fn operator<F>(
        &mut self,
        consumer: &Consumer<'_>,
        input: &Stream,
        sides: &[&str],
        make: F,
    ) -> NodeId
    where
        F: Fn(&Subtask) -> Result<Box<dyn Operator<RecordBatch, RecordBatch>>, OperatorError>
            + Send
            + Sync
            + 'static,
    {
        let node = self.add_operator(consumer, sides, make);
        self.connect(node, input, &consumer.common);
        node
    }

    /// Adds an operator that takes two inputs, each spread as it says, and has side outputs of
    /// these names; `make` makes it for a subtask.
    pub(super) fn operator_of_two<F>(
        &mut self,
        consumer: &Consumer<'_>,
        [left, right]: [&Stream; 2],
        sides: &[&str],
        make: F,
    ) -> NodeId
    where
        F: Fn(&Subtask) -> Result<Box<dyn Operator<EitherBatch, RecordBatch>>, OperatorError>
            + Send
            + Sync
            + 'static,
    {
        let node = self.add_operator(consumer, sides, make);
        for (side, stream) in [("left", left), ("right", right)] {
            for (index, outlet) in stream.outlets.iter().enumerate() {
                let exchange = outlet.route.exchange(&stream.schema);
                let (from, port) = (outlet.node, outlet.port);
                let connect = match side {
                    "left" => Graph::connect_left::<RecordBatch, RecordBatch>,
                    _ => Graph::connect_right::<RecordBatch, RecordBatch>,
                };
                let edge = connect(&mut self.graph, from, port, node, exchange);
                consumer.common.limit(edge);
                let side_node = edge.from;
                self.graph[side_node].uid = consumer.common.uid.as_ref().map(|uid| match index {
                    0 => format!("{uid}.{side}"),
                    _ => format!("{uid}.{side}-{}", index + 1),
                });
            }
        }
        node
    }

    fn add_operator<In: Payload, F>(
        &mut self,
        consumer: &Consumer<'_>,
        sides: &[&str],
        make: F,
    ) -> NodeId
    where
        F: Fn(&Subtask) -> Result<Box<dyn Operator<In, RecordBatch>>, OperatorError>
            + Send
            + Sync
            + 'static,
    {
        let payloads = vec![PayloadType::of::<RecordBatch>(); sides.len()];
        let factory = OperatorNode::new(payloads, make);
        let node = self.graph.add(consumer.declared.name, factory);
        self.graph[node].side_names = sides.iter().map(|&side| side.to_owned()).collect();
        self.set_up(node, &consumer.common);
        node
    }

    /// Gives a node what all consumers may say.
    pub(super) fn set_up(&mut self, node: NodeId, common: &ConsumerCommon) {
        let node = &mut self.graph[node];
        node.uid = common.uid.clone();
        node.parallelism = common.parallelism.map(|subtasks| subtasks.0);
        node.process = common.process.map(usize::from);
        node.starts_chain = common.starts_chain.unwrap_or(false);
    }

    /// Connects the outlets of a stream to a node.
    pub(super) fn connect(&mut self, node: NodeId, input: &Stream, common: &ConsumerCommon) {
        for outlet in &input.outlets {
            let exchange = outlet.route.exchange(&input.schema);
            let edge = self.graph.connect(outlet.node, outlet.port, node, exchange);
            common.limit(edge);
        }
    }

    /// Refuses an input, which stands under `key`, whose rows have no event time.
    pub(super) fn require_event_time(
        &self,
        consumer: &Consumer<'_>,
        key: &str,
        input: &Stream,
    ) -> Result<(), JobFileError> {
        if input.has_event_time {
            return Ok(());
        }
        let message = "its rows have no event time: say in `event_time` of the source which \
                       column it is";
        Err(self
            .document
            .error(&consumer.declared.path(&[key]), message))
    }

    /// The condition that stands under `keys` of a consumer, bound to `schema`.
    ///
    /// # Errors
    /// When it cannot be parsed or bound, or is no condition.
    pub(super) fn condition(
        &self,
        consumer: &Consumer<'_>,
        keys: &[&str],
        text: &str,
        schema: &SchemaRef,
    ) -> Result<BoundExpr, JobFileError> {
        let bound = Expr::parse(text).and_then(|expr| {
            let bound = expr.bind(schema)?;
            bound.require_predicate()?;
            Ok(bound)
        });
        bound.map_err(|error| self.refused(consumer, keys, &error))
    }

    /// An expression that stands under `keys` of a consumer cannot be used.
    pub(super) fn refused(
        &self,
        consumer: &Consumer<'_>,
        keys: &[&str],
        error: &ExprError,
    ) -> JobFileError {
        let at = error.position();
        let line = match at.line {
            1 => String::new(),
            line => format!("line {line}, "),
        };
        let message = format!("at {line}column {} of it: {}", at.column, error.message());
        self.document.error(&consumer.declared.path(keys), message)
    }

    /// How a consumer says that its input is to be spread, if it does.
    fn route(
        &self,
        consumer: &Consumer<'_>,
        input: &Stream,
    ) -> Result<Option<Route>, JobFileError> {
        let common = &consumer.common;
        let route = match (common.exchange, &common.key) {
            (None | Some(ExchangeName::Key), Some(names)) => {
                Route::Key(self.key_columns(consumer, "key", names, &input.schema)?)
            }
            (Some(ExchangeName::Key), None) => match input.key() {
                Some(columns) => Route::Key(columns.to_vec()),
                None => {
                    let path = consumer.declared.path(&["exchange"]);
                    let message = "\"key\" needs the columns: name them in `key`";
                    return Err(self.document.error(&path, message));
                }
            },
            (Some(_), Some(_)) => {
                let path = consumer.declared.path(&["exchange"]);
                let message = "`key` says that rows go by key: leave `exchange` out, or `key`";
                return Err(self.document.error(&path, message));
            }
            (None, None) => return Ok(None),
            (Some(ExchangeName::Auto), None) => Route::Auto,
            (Some(ExchangeName::Forward), None) => Route::Forward,
            (Some(ExchangeName::Rebalance), None) => Route::Rebalance,
            (Some(ExchangeName::Broadcast), None) => Route::Broadcast,
        };
        Ok(Some(route))
    }
}

/// Why `column` cannot be a key, and what to do.
fn no_key(schema: &SchemaRef, column: usize, error: &impl Display) -> String {
    let field = schema.field(column);
    match field.data_type() {
        DataType::Dictionary(..) => {
            let name = field.name();
            format!(
                "`{name}` is a dictionary, which cannot be a key: make it text in a `map` before, \
                 with CAST({name} AS TEXT) AS {name}"
            )
        }
        _ => error.to_string(),
    }
}
