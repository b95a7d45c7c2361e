//! Typed streams by key: reduce, windows, and operators with keyed state.

use std::marker::PhantomData;

use crate::batch::{Payload, Rows};
use crate::error::OperatorError;
use crate::operator::{Operator, SideTag, Subtask};
use crate::operators::rows;
use crate::operators::window::{
    Aggregator, KeyedWindow, Trigger, TriggeredWindow, WindowAssigner, WindowResult,
};
use crate::partition::Key;

use super::stream::{DataStream, Stream};

/// A stream of typed rows whose rows with the same key go to the same subtask.
pub struct KeyedStream<T: Clone + Send + 'static, F> {
    pub(super) stream: DataStream<T>,
    pub(super) key: F,
}

/// A keyed stream in event-time windows.
///
/// Results are emitted when the watermark passes the end of a window, with the event time of
/// the window's last instant.
pub struct WindowedStream<T: Clone + Send + 'static, K, F> {
    keyed: KeyedStream<T, F>,
    assigner: WindowAssigner,
    allowed_lateness_ms: u64,
    keys: PhantomData<fn() -> K>,
}

/// What a window emits: a result for each key.
pub type WindowStream<K, R> = DataStream<WindowResult<K, R>>;

impl<T: Clone + Send + 'static, F> KeyedStream<T, F> {
    pub(super) fn new(stream: DataStream<T>, key: F) -> Self {
        Self { stream, key }
    }

    /// Folds each value into that of its key, and emits the result after each row. Keys are
    /// kept for ever.
    pub fn reduce<K, R>(self, reduce: R) -> DataStream<T>
    where
        K: Key,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
        R: FnMut(&mut T, T) + Clone + Send + Sync + 'static,
    {
        self.process("reduce", move |_, key| {
            Ok(rows::KeyedReduce::<K, T, F, R>::new(key, reduce.clone()))
        })
    }

    /// Event-time windows of each key.
    pub fn window<K>(self, assigner: WindowAssigner) -> WindowedStream<T, K, F>
    where
        K: Key,
        F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
    {
        WindowedStream {
            keyed: self,
            assigner,
            allowed_lateness_ms: 0,
            keys: PhantomData,
        }
    }

    /// Adds an operator that sees all rows of its keys: `make` makes one for each subtask and
    /// is given the key function.
    pub fn process<Out, Op>(
        self,
        name: &str,
        make: impl Fn(&Subtask, F) -> Result<Op, OperatorError> + Send + Sync + 'static,
    ) -> Stream<Out>
    where
        F: Clone + Send + Sync + 'static,
        Out: Payload,
        Op: Operator<Rows<T>, Out> + 'static,
    {
        let key = self.key;
        self.stream
            .process(name, move |subtask| make(subtask, key.clone()))
    }

    /// As [`KeyedStream::process`], with one side output, which the operator emits to under the
    /// tag that `make` is given.
    pub fn process_with_side<Out, S, Op>(
        self,
        name: &str,
        make: impl Fn(&Subtask, F, SideTag<S>) -> Result<Op, OperatorError> + Send + Sync + 'static,
    ) -> (Stream<Out>, Stream<S>)
    where
        F: Clone + Send + Sync + 'static,
        Out: Payload,
        S: Payload,
        Op: Operator<Rows<T>, Out> + 'static,
    {
        let key = self.key;
        self.stream
            .process_with_side(name, move |subtask, side| make(subtask, key.clone(), side))
    }
}

impl<T, K, F> WindowedStream<T, K, F>
where
    T: Clone + Send + 'static,
    K: Key,
    F: FnMut(&T) -> K + Clone + Send + Sync + 'static,
{
    /// Keeps windows open for rows that come up to this much event time late. Each such row
    /// makes the window emit its result again. Default: 0.
    pub fn allowed_lateness_ms(mut self, allowed_lateness_ms: u64) -> Self {
        self.allowed_lateness_ms = allowed_lateness_ms;
        self
    }

    /// Aggregates the values of each key and window. Rows that come too late are discarded and
    /// counted in the task's report.
    pub fn aggregate<A>(self, aggregator: A) -> WindowStream<K, A::Result>
    where
        A: Aggregator<T> + Clone + Send + Sync + 'static,
    {
        self.aggregate_with_late(aggregator).0
    }

    /// As [`WindowedStream::aggregate`], with the stream of the rows that come too late.
    pub fn aggregate_with_late<A>(
        self,
        aggregator: A,
    ) -> (WindowStream<K, A::Result>, DataStream<T>)
    where
        A: Aggregator<T> + Clone + Send + Sync + 'static,
    {
        let KeyedStream { stream, key } = self.keyed;
        let (assigner, lateness) = (self.assigner, self.allowed_lateness_ms);
        stream.process_with_side("window", move |_, late| {
            let window = KeyedWindow::<T, K, A, F>::new(
                key.clone(),
                assigner,
                aggregator.clone(),
                lateness,
                Some(late),
            );
            Ok(window)
        })
    }

    /// Aggregates the values of each key and window, and gives results when `trigger` says so.
    /// Returns them and the rows that come when all their windows are complete; there is no
    /// allowed lateness.
    pub fn aggregate_when<A, Tr>(
        self,
        aggregator: A,
        trigger: Tr,
    ) -> (WindowStream<K, A::Result>, DataStream<T>)
    where
        A: Aggregator<T> + Clone + Send + Sync + 'static,
        Tr: Trigger<T> + Clone + Sync + 'static,
    {
        let assigner = self.assigner;
        self.keyed.process_with_side("window", move |_, key, late| {
            Ok(TriggeredWindow::<T, K, A, F, Tr>::new(
                key,
                assigner,
                aggregator.clone(),
                trigger.clone(),
                Some(late),
            ))
        })
    }
}
