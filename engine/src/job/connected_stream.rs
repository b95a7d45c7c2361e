//! Two streams that are the inputs of one operator.

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::batch::{Either, Payload, Rows};
use crate::error::OperatorError;
use crate::operator::{Operator, SideTag, Subtask};
use crate::operators::SpecError;
use crate::operators::join::{Join, JoinKind, JoinSpec, JoinTime, KeyedJoin, LateTags};
use crate::operators::rows::{CoProcess, CoProcessing};
use crate::output::{ByKeyColumns, ByKeyHash};
use crate::partition::Key;

use super::KeyedStream;
use super::graph::{Exchange, NodeId, Port};
use super::node::OperatorNode;
use super::payload::PayloadType;
use super::stream::{BatchStream, DataStream, Stream};

/// Two streams that are the inputs of one operator.
///
/// The watermark of the operator is that of both streams: a stream that says nothing holds the
/// other back until it is idle or has ended.
pub struct ConnectedStreams<A: Payload, B: Payload> {
    left: Stream<A>,
    right: Stream<B>,
}

/// Two streams of typed rows whose rows with the same key go to the same subtask.
pub struct KeyedConnectedStreams<L, R, K, KL, KR>
where
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
{
    streams: ConnectedStreams<Rows<L>, Rows<R>>,
    left_key: KL,
    right_key: KR,
    keys: PhantomData<fn() -> K>,
}

/// A stream by key and a control stream that every subtask sees all of.
pub struct KeyedBroadcastStreams<T, C, F>
where
    T: Clone + Send + 'static,
    C: Clone + Send + 'static,
{
    streams: ConnectedStreams<Rows<T>, Rows<C>>,
    key: F,
}

impl<A: Payload, B: Payload> ConnectedStreams<A, B> {
    pub(super) fn new(left: Stream<A>, right: Stream<B>) -> Self {
        assert!(
            Rc::ptr_eq(&left.job.graph, &right.job.graph),
            "the inputs of an operator are streams of one job"
        );
        Self { left, right }
    }

    /// Adds an operator with two inputs: `make` makes one for each subtask.
    pub fn process<Out, Op>(
        self,
        name: &str,
        make: impl Fn(&Subtask) -> Result<Op, OperatorError> + Send + Sync + 'static,
    ) -> Stream<Out>
    where
        Out: Payload,
        Op: Operator<Either<A, B>, Out> + 'static,
    {
        let node = self.add(name, Vec::new(), make);
        self.left.job.stream(node, Port::Main)
    }

    /// Adds an operator with two inputs and two side outputs, which it emits to under the tags
    /// that `make` is given. Returns its main output and its side outputs.
    pub fn process_with_sides<Out, S, T, Op>(
        self,
        name: &str,
        make: impl Fn(&Subtask, SideTag<S>, SideTag<T>) -> Result<Op, OperatorError>
        + Send
        + Sync
        + 'static,
    ) -> (Stream<Out>, Stream<S>, Stream<T>)
    where
        Out: Payload,
        S: Payload,
        T: Payload,
        Op: Operator<Either<A, B>, Out> + 'static,
    {
        let sides = vec![PayloadType::of::<S>(), PayloadType::of::<T>()];
        let node = self.add(name, sides, move |subtask| {
            make(subtask, SideTag::new(0), SideTag::new(1))
        });
        let job = &self.left.job;
        (
            job.stream(node, Port::Main),
            job.stream(node, Port::Side(0)),
            job.stream(node, Port::Side(1)),
        )
    }

    pub(super) fn by(self, left: Exchange, right: Exchange) -> Self {
        Self {
            left: self.left.exchange(left),
            right: self.right.exchange(right),
        }
    }

    fn add<Out: Payload, Op: Operator<Either<A, B>, Out> + 'static>(
        &self,
        name: &str,
        sides: Vec<PayloadType>,
        make: impl Fn(&Subtask) -> Result<Op, OperatorError> + Send + Sync + 'static,
    ) -> NodeId {
        type Boxed<A, B, Out> = Box<dyn Operator<Either<A, B>, Out>>;
        let node = OperatorNode::new(sides, move |subtask: &Subtask| {
            Ok(Box::new(make(subtask)?) as Boxed<A, B, Out>)
        });
        let mut graph = self.left.job.graph.borrow_mut();
        let node = graph.add(name, node);
        for end in &self.left.ends {
            let _ = graph.connect_left::<A, B>(end.node, end.port, node, end.exchange.clone());
        }
        for end in &self.right.ends {
            let _ = graph.connect_right::<A, B>(end.node, end.port, node, end.exchange.clone());
        }
        node
    }
}

impl<L, R> ConnectedStreams<Rows<L>, Rows<R>>
where
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
{
    /// Rows of both streams with the same key go to the same subtask of the operator.
    pub fn key_by<K, KL, KR>(
        self,
        left_key: KL,
        right_key: KR,
    ) -> KeyedConnectedStreams<L, R, K, KL, KR>
    where
        K: Key,
        KL: FnMut(&L) -> K + Clone + Send + Sync + 'static,
        KR: FnMut(&R) -> K + Clone + Send + Sync + 'static,
    {
        let streams = self.by(by_hash(left_key.clone()), by_hash(right_key.clone()));
        KeyedConnectedStreams {
            streams,
            left_key,
            right_key,
            keys: PhantomData,
        }
    }

    /// Adds logic over the rows of both streams, without a key.
    pub fn co_process<O, P>(
        self,
        name: &str,
        make: impl Fn(&Subtask) -> Result<P, OperatorError> + Send + Sync + 'static,
    ) -> DataStream<O>
    where
        O: Clone + Send + 'static,
        P: CoProcess<(), L, R, O> + 'static,
    {
        self.process(name, move |subtask| {
            Ok(CoProcessing::new(|_| (), |_| (), make(subtask)?))
        })
    }
}

impl<L, R, K, KL, KR> KeyedConnectedStreams<L, R, K, KL, KR>
where
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
    K: Key,
    KL: FnMut(&L) -> K + Clone + Send + Sync + 'static,
    KR: FnMut(&R) -> K + Clone + Send + Sync + 'static,
{
    /// Adds logic over the rows and timers of each key: `make` makes one for each subtask.
    pub fn co_process<O, P>(
        self,
        name: &str,
        make: impl Fn(&Subtask) -> Result<P, OperatorError> + Send + Sync + 'static,
    ) -> DataStream<O>
    where
        O: Clone + Send + 'static,
        P: CoProcess<K, L, R, O> + 'static,
    {
        let (left_key, right_key) = (self.left_key, self.right_key);
        self.streams.process(name, move |subtask| {
            let process = make(subtask)?;
            Ok(CoProcessing::new(
                left_key.clone(),
                right_key.clone(),
                process,
            ))
        })
    }
}

impl<L, R, K, KL, KR> KeyedConnectedStreams<L, R, K, KL, KR>
where
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
    K: Key,
    KL: FnMut(&L) -> K + Clone + Send + Sync + 'static,
    KR: FnMut(&R) -> K + Clone + Send + Sync + 'static,
{
    /// Joins rows whose keys are equal and whose event times match: `join` makes a value of
    /// each pair, or of a row alone where the kind gives such. Rows that come too late are
    /// discarded and counted in the task's report.
    pub fn join<O, F>(self, name: &str, kind: JoinKind, time: JoinTime, join: F) -> DataStream<O>
    where
        O: Clone + Send + 'static,
        F: FnMut(Option<&L>, Option<&R>) -> O + Clone + Send + Sync + 'static,
    {
        self.join_with_late(name, kind, time, join).0
    }

    /// As [`KeyedConnectedStreams::join`], with the streams of the left rows and of the right
    /// rows that come too late.
    pub fn join_with_late<O, F>(
        self,
        name: &str,
        kind: JoinKind,
        time: JoinTime,
        join: F,
    ) -> (DataStream<O>, DataStream<L>, DataStream<R>)
    where
        O: Clone + Send + 'static,
        F: FnMut(Option<&L>, Option<&R>) -> O + Clone + Send + Sync + 'static,
    {
        let (left_key, right_key) = (self.left_key, self.right_key);
        self.streams
            .process_with_sides(name, move |_, left, right| {
                let keys = (left_key.clone(), right_key.clone());
                let late = LateTags {
                    left: Some(left),
                    right: Some(right),
                };
                Ok(KeyedJoin::<K, L, R, O, KL, KR, F>::new(
                    kind,
                    time,
                    keys,
                    join.clone(),
                    late,
                ))
            })
    }
}

impl<T: Clone + Send + 'static, F> KeyedStream<T, F> {
    /// This stream by key, and `control` of which every row goes to every subtask.
    ///
    /// # Panics
    /// When the streams are of different jobs.
    pub fn connect_broadcast<C>(self, control: DataStream<C>) -> KeyedBroadcastStreams<T, C, F>
    where
        C: Clone + Send + 'static,
    {
        let KeyedStream { stream, key } = self;
        let streams = stream.connect_broadcast(control);
        KeyedBroadcastStreams { streams, key }
    }
}

impl<T, C, F> KeyedBroadcastStreams<T, C, F>
where
    T: Clone + Send + 'static,
    C: Clone + Send + 'static,
{
    /// Adds logic over the rows and timers of each key, and over the control rows, which have
    /// no key: `make` makes one for each subtask.
    pub fn co_process<K, O, P>(
        self,
        name: &str,
        make: impl Fn(&Subtask) -> Result<P, OperatorError> + Send + Sync + 'static,
    ) -> DataStream<O>
    where
        K: Key,
        O: Clone + Send + 'static,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
        P: CoProcess<Option<K>, T, C, O> + 'static,
    {
        let key = self.key;
        self.streams.process(name, move |subtask| {
            let mut key = key.clone();
            let process = make(subtask)?;
            Ok(CoProcessing::new(
                move |row: &T| Some(key(row)),
                |_| None,
                process,
            ))
        })
    }
}

impl ConnectedStreams<RecordBatch, RecordBatch> {
    /// Joins batches of these schemas. Returns the results and the left and the right rows that
    /// come too late; the late tags of `spec` are not looked at.
    ///
    /// # Errors
    /// When the join does not fit the schemas, or rows cannot be sent by its keys.
    pub fn join(
        self,
        name: &str,
        left: &SchemaRef,
        right: &SchemaRef,
        spec: JoinSpec,
    ) -> Result<(BatchStream, BatchStream, BatchStream), SpecError> {
        Join::new(Arc::clone(left), Arc::clone(right), spec.clone())?;
        let by_left = by_columns(left, &spec.left_keys)?;
        let by_right = by_columns(right, &spec.right_keys)?;
        let (left, right) = (Arc::clone(left), Arc::clone(right));
        let make = move |_: &Subtask, left_late, right_late| {
            let spec = JoinSpec {
                left_late: Some(left_late),
                right_late: Some(right_late),
                ..spec.clone()
            };
            Ok(Join::new(Arc::clone(&left), Arc::clone(&right), spec)?)
        };
        Ok(self.by(by_left, by_right).process_with_sides(name, make))
    }
}

fn by_columns(schema: &SchemaRef, columns: &[usize]) -> Result<Exchange, SpecError> {
    let bind = |schema: &SchemaRef, columns: &[usize]| {
        ByKeyColumns::bind(schema, columns).map_err(|error| SpecError::Key {
            message: error.to_string(),
        })
    };
    bind(schema, columns)?;
    let (schema, columns) = (Arc::clone(schema), columns.to_vec());
    Ok(Exchange::key::<RecordBatch>(move || {
        // Invariant: it was bound once above.
        Box::new(bind(&schema, &columns).expect("bound before"))
    }))
}

fn by_hash<T, K, F>(key: F) -> Exchange
where
    T: Clone + Send + 'static,
    K: Key,
    F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
{
    Exchange::key::<Rows<T>>(move || {
        let mut key = key.clone();
        Box::new(ByKeyHash::new(move |value: &T| key(value).key_hash()))
    })
}

#[cfg(test)]
mod tests;
