//! Saying a job in Rust: typed streams, one call an operator.
//!
//! ```
//! use ringway::connect::Collected;
//! use ringway::job::{Job, JobOutcome};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let job = Job::new("squares");
//! let collected = Collected::new();
//! job.rows("numbers", 1..=4_i64).map(|n| n * n).filter(|n| n % 2 == 0).sink("collect", collected.sink());
//!
//! let report = job.run()?;
//! assert!(matches!(report.outcome, JobOutcome::Ended));
//! assert_eq!(collected.values::<i64>(), [4, 16]);
//! # Ok(())
//! # }
//! ```

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::batch::{Payload, Row, Rows};
use crate::batcher::{Batchable, Batcher};
use crate::connect::MemorySource;
use crate::element::{EventTime, StreamElement};
use crate::error::OperatorError;
use crate::operator::{Operator, SideTag, Sink, Source, Subtask};
use crate::operators::async_map::{AsyncMap, AsyncMapOptions};
use crate::operators::rows;
use crate::output::ByKeyHash;
use crate::partition::{Key, Parallelism};
use crate::watermark::WatermarkStrategy;
use crate::wire::Typed;

use super::graph::{Exchange, Graph, NodeId, Port};
use super::node::{OperatorNode, SinkNode, SourceNode};
use super::payload::PayloadType;
use super::plan::{Plan, PlanError, PlanOptions};
use super::run::{JobError, JobReport, RunOptions, start};
use super::{ConnectedStreams, KeyedStream};

/// A job that is being said.
#[derive(Clone)]
pub struct Job {
    pub(super) graph: Rc<RefCell<Graph>>,
}

/// A stream of batches of type `B`. A clone is the same stream: use it twice to fork it.
pub struct Stream<B: Payload> {
    pub(super) job: Job,
    pub(super) ends: Vec<End>,
    payload: PhantomData<fn() -> B>,
}

/// A stream of typed rows.
pub type DataStream<T> = Stream<Rows<T>>;

/// A stream of Arrow record batches.
pub type BatchStream = Stream<RecordBatch>;

/// Where a stream comes from, and how it is spread over the subtasks of its next operator.
#[derive(Clone)]
pub(super) struct End {
    pub(super) node: NodeId,
    pub(super) port: Port,
    pub(super) exchange: Exchange,
}

/// Why a job did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It cannot be started.
    #[error(transparent)]
    Start(#[from] JobError),
}

impl Job {
    /// A job without operators.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            graph: Rc::new(RefCell::new(Graph::new(name))),
        }
    }

    /// Adds a source: `make` makes one for each subtask.
    pub fn source<B, S>(
        &self,
        name: &str,
        make: impl Fn(&Subtask) -> Result<S, OperatorError> + Send + Sync + 'static,
    ) -> Stream<B>
    where
        B: Payload,
        S: Source<B> + 'static,
    {
        let node = SourceNode::new(None, move |subtask: &Subtask| {
            Ok(Box::new(make(subtask)?) as Box<dyn Source<B>>)
        });
        let node = self.graph.borrow_mut().add(name, node);
        self.stream(node, Port::Main)
    }

    /// Adds a source that emits these values, without event times, in one subtask.
    pub fn rows<T>(&self, name: &str, values: impl IntoIterator<Item = T>) -> DataStream<T>
    where
        T: Clone + Send + Sync + 'static,
    {
        let rows: Vec<Row<T>> = values.into_iter().map(Row::untimed).collect();
        let stream = self.source(name, move |_| {
            Ok(MemorySource::new([StreamElement::Data(Rows::from(
                rows.clone(),
            ))]))
        });
        stream.parallelism(Parallelism::ONE)
    }

    /// The graph that was said. The job is empty afterwards.
    pub fn into_graph(self) -> Graph {
        self.graph.take()
    }

    /// Plans the job, runs it, and waits for its end.
    ///
    /// # Errors
    /// When it cannot be planned or started. A job that fails while it runs has a report that
    /// says so.
    pub fn run(self) -> Result<JobReport, RunError> {
        self.run_with(&PlanOptions::default(), &RunOptions::default())
    }

    /// As [`Job::run`], with options.
    ///
    /// # Errors
    /// As for `run`.
    pub fn run_with(self, plan: &PlanOptions, run: &RunOptions) -> Result<JobReport, RunError> {
        let plan = Plan::new(self.into_graph(), plan)?;
        Ok(start(&plan, run)?.wait())
    }

    pub(super) fn stream<B: Payload>(&self, node: NodeId, port: Port) -> Stream<B> {
        let ends = vec![End {
            node,
            port,
            exchange: Exchange::auto::<B>(),
        }];
        Stream {
            job: self.clone(),
            ends,
            payload: PhantomData,
        }
    }
}

impl<B: Payload> Stream<B> {
    /// Names the operator that this stream comes from, for people.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.job.graph.borrow_mut()[self.ends[0].node].name = name.into();
        self
    }

    /// Gives that operator a uid, by which its state is found again.
    pub fn uid(self, uid: impl Into<String>) -> Self {
        self.job.graph.borrow_mut()[self.ends[0].node].uid = Some(uid.into());
        self
    }

    /// Gives that operator a number of subtasks of its own.
    pub fn parallelism(self, parallelism: Parallelism) -> Self {
        self.job.graph.borrow_mut()[self.ends[0].node].parallelism = Some(parallelism);
        self
    }

    /// Whole batches in turn to the subtasks of the next operator.
    pub fn rebalance(self) -> Self {
        self.exchange(Exchange::rebalance::<B>())
    }

    /// Every batch to every subtask of the next operator.
    pub fn broadcast(self) -> Self {
        self.exchange(Exchange::broadcast::<B>())
    }

    /// Subtask to subtask; the plan refuses a next operator of another parallelism.
    pub fn forward(self) -> Self {
        self.exchange(Exchange::forward::<B>())
    }

    /// By this exchange to the next operator.
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.ends
            .iter_mut()
            .for_each(|end| end.exchange = exchange.clone());
        self
    }

    /// Both streams as one. Rows of one stream keep their order.
    pub fn union(mut self, other: Self) -> Self {
        self.ends.extend(other.ends);
        self
    }

    /// This stream and `right` as the two inputs of one operator. How each is spread over the
    /// subtasks of that is said of each before, or by a key of both after.
    ///
    /// # Panics
    /// When the streams are of different jobs.
    pub fn connect<R: Payload>(self, right: Stream<R>) -> ConnectedStreams<B, R> {
        ConnectedStreams::new(self, right)
    }

    /// As [`Stream::connect`], with every batch of `control` going to every subtask.
    ///
    /// # Panics
    /// When the streams are of different jobs.
    pub fn connect_broadcast<C: Payload>(self, control: Stream<C>) -> ConnectedStreams<B, C> {
        self.connect(control.broadcast())
    }

    /// Adds an operator: `make` makes one for each subtask.
    pub fn process<Out, Op>(
        self,
        name: &str,
        make: impl Fn(&Subtask) -> Result<Op, OperatorError> + Send + Sync + 'static,
    ) -> Stream<Out>
    where
        Out: Payload,
        Op: Operator<B, Out> + 'static,
    {
        let node = self.operator(name, Vec::new(), make);
        self.job.stream(node, Port::Main)
    }

    /// Adds an operator with one side output, which it emits to under the tag that `make` is
    /// given. Returns its main output and its side output.
    pub fn process_with_side<Out, S, Op>(
        self,
        name: &str,
        make: impl Fn(&Subtask, SideTag<S>) -> Result<Op, OperatorError> + Send + Sync + 'static,
    ) -> (Stream<Out>, Stream<S>)
    where
        Out: Payload,
        S: Payload,
        Op: Operator<B, Out> + 'static,
    {
        let sides = vec![PayloadType::of::<S>()];
        let node = self.operator(name, sides, move |subtask| make(subtask, SideTag::new(0)));
        (
            self.job.stream(node, Port::Main),
            self.job.stream(node, Port::Side(0)),
        )
    }

    /// Ends the stream in a sink that is the same for every subtask.
    pub fn sink<S: Sink<B> + Clone + Sync + 'static>(self, name: &str, sink: S) {
        self.sink_with(name, move |_| Ok(sink.clone()));
    }

    /// Ends the stream in a sink: `make` makes one for each subtask.
    pub fn sink_with<S: Sink<B> + 'static>(
        self,
        name: &str,
        make: impl Fn(&Subtask) -> Result<S, OperatorError> + Send + Sync + 'static,
    ) {
        let node =
            SinkNode::new(
                move |subtask: &Subtask| Ok(Box::new(make(subtask)?) as Box<dyn Sink<B>>),
            );
        let node = self.job.graph.borrow_mut().add(name, node);
        self.connect_to(node);
    }

    fn operator<Out: Payload, Op: Operator<B, Out> + 'static>(
        &self,
        name: &str,
        sides: Vec<PayloadType>,
        make: impl Fn(&Subtask) -> Result<Op, OperatorError> + Send + Sync + 'static,
    ) -> NodeId {
        let node = OperatorNode::new(sides, move |subtask: &Subtask| {
            Ok(Box::new(make(subtask)?) as Box<dyn Operator<B, Out>>)
        });
        let node = self.job.graph.borrow_mut().add(name, node);
        self.connect_to(node);
        node
    }

    pub(super) fn connect_to(&self, to: NodeId) {
        let mut graph = self.job.graph.borrow_mut();
        for end in &self.ends {
            graph.connect(end.node, end.port, to, end.exchange.clone());
        }
    }
}

impl<B: Payload> Clone for Stream<B> {
    fn clone(&self) -> Self {
        Self {
            job: self.job.clone(),
            ends: self.ends.clone(),
            payload: PhantomData,
        }
    }
}

impl<T: Clone + Send + 'static> DataStream<T> {
    /// Lets the rows go from one process to another, as the columns of `batcher`. Where a job
    /// runs in one process this changes nothing.
    pub fn batcher(self, batcher: Arc<dyn Batcher<T>>) -> Self {
        for end in &self.ends {
            let codec = Arc::new(Typed::new(batcher.clone()));
            let mut graph = self.job.graph.borrow_mut();
            graph.set_codec::<Rows<T>>(end.node, end.port, codec);
        }
        self
    }

    /// As [`DataStream::batcher`], with the batcher that the type has.
    pub fn batched(self) -> Self
    where
        T: Batchable,
    {
        self.batcher(T::batcher())
    }

    /// Replaces each value by `map` of it; its event time stays.
    pub fn map<U, F>(self, map: F) -> DataStream<U>
    where
        U: Clone + Send + 'static,
        F: FnMut(T) -> U + Clone + Send + Sync + 'static,
    {
        self.process("map", move |_| Ok(rows::Map::new(map.clone())))
    }

    /// Keeps the rows for whose value `keep` says so.
    pub fn filter<F>(self, keep: F) -> Self
    where
        F: FnMut(&T) -> bool + Clone + Send + Sync + 'static,
    {
        self.process("filter", move |_| Ok(rows::Filter::new(keep.clone())))
    }

    /// Replaces each value by all values of `map` of it; they have its event time.
    pub fn flat_map<I, F>(self, map: F) -> DataStream<I::Item>
    where
        F: FnMut(T) -> I + Clone + Send + Sync + 'static,
        I: IntoIterator + 'static,
        I::IntoIter: Send,
        I::Item: Clone + Send + 'static,
    {
        self.process("flat_map", move |_| {
            Ok(rows::FlatMap::<T, F, I>::new(map.clone()))
        })
    }

    /// Replaces each value by `call` of it, which may block: it is called on threads beside the
    /// worker, several at a time. Event times stay.
    pub fn async_map<U, F>(self, options: AsyncMapOptions, call: F) -> DataStream<U>
    where
        U: Clone + Send + 'static,
        F: FnMut(T) -> Result<U, OperatorError> + Clone + Send + Sync + 'static,
    {
        self.process("async_map", move |_| {
            Ok(AsyncMap::new(options, call.clone()))
        })
    }

    /// Gives each row the event time `event_time` of it, and the stream watermarks by this
    /// strategy. To keep the event times that rows have, give `|row| row.event_time`.
    pub fn assign_timestamps<F>(self, strategy: WatermarkStrategy, event_time: F) -> Self
    where
        F: FnMut(&Row<T>) -> Option<EventTime> + Clone + Send + Sync + 'static,
    {
        self.process("assign_timestamps", move |_| {
            Ok(rows::AssignTimestamps::new(event_time.clone(), strategy))
        })
    }

    /// The rows for whose value `to_first` says so, and the others.
    pub fn split<F>(self, to_first: F) -> (Self, Self)
    where
        F: FnMut(&T) -> bool + Clone + Send + Sync + 'static,
    {
        self.process_with_side("split", move |_, others| {
            Ok(rows::Split::new(to_first.clone(), others))
        })
    }

    /// Rows with the same `key` go to the same subtask of the next operator.
    pub fn key_by<K, F>(self, key: F) -> KeyedStream<T, F>
    where
        K: Key,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
    {
        let by = key.clone();
        let exchange = Exchange::key::<Rows<T>>(move || {
            let mut by = by.clone();
            Box::new(ByKeyHash::new(move |value: &T| by(value).key_hash()))
        });
        KeyedStream::new(self.exchange(exchange), key)
    }
}
