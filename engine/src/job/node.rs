//! What a graph knows of an operator, source or sink: how to make one for a subtask.

use crate::batch::Payload;
use crate::error::OperatorError;
use crate::operator::{Operator, Sink, Source, Subtask};
use crate::task::{Chain, OperatorStage, SideOutlet, SinkStage, SourceTask, Stage, Task};

use super::payload::{Erased, PayloadType};

/// Makes the parts of one node of a graph, for any of its subtasks.
pub trait NodeFactory: Send + Sync {
    /// The payload type that it takes; `None` for a source.
    fn input(&self) -> Option<PayloadType>;

    /// The payload type that it emits; `None` for a sink.
    fn output(&self) -> Option<PayloadType>;

    /// The payload types of its side outputs.
    fn sides(&self) -> &[PayloadType] {
        &[]
    }

    /// The most subtasks that it can have, if that is bounded, such as by a source's splits.
    fn parallelism_max(&self) -> Option<u32> {
        None
    }

    /// A stage of a chain for `subtask`. `next` is a `Box<dyn Stage<Out>>`, absent for a sink;
    /// the result is a `Box<dyn Stage<In>>`.
    ///
    /// # Errors
    /// When the operator cannot be made.
    fn stage(&self, place: StagePlace, next: Option<Erased>) -> Result<Erased, OperatorError>;

    /// A task for a source with the stages behind it. `next` is a `Box<dyn Stage<Out>>`.
    ///
    /// # Errors
    /// When the source cannot be made.
    fn source_task(
        &self,
        subtasks: Vec<Subtask>,
        next: Erased,
        sides: Vec<Box<dyn SideOutlet>>,
    ) -> Result<Box<dyn Task>, OperatorError>;
}

/// Where in a task a stage stands.
#[derive(Clone, Debug)]
pub struct StagePlace {
    /// The subtask.
    pub subtask: Subtask,
    /// Its position in the chain, from 0.
    pub position: usize,
    /// Its side outputs among those of the task.
    pub sides: std::ops::Range<usize>,
}

/// A source node: `make` builds the source of a subtask.
pub struct SourceNode<B, F> {
    make: F,
    parallelism_max: Option<u32>,
    payload: std::marker::PhantomData<fn() -> B>,
}

/// An operator node: `make` builds the operator of a subtask.
pub struct OperatorNode<In, Out, F> {
    make: F,
    sides: Vec<PayloadType>,
    parallelism_max: Option<u32>,
    payload: std::marker::PhantomData<fn(In) -> Out>,
}

/// A sink node: `make` builds the sink of a subtask.
pub struct SinkNode<B, F> {
    make: F,
    payload: std::marker::PhantomData<fn(B)>,
}

impl<B, F> SourceNode<B, F>
where
    B: Payload,
    F: Fn(&Subtask) -> Result<Box<dyn Source<B>>, OperatorError> + Send + Sync,
{
    /// A source node that can have `parallelism_max` subtasks, or any number.
    pub fn new(parallelism_max: Option<u32>, make: F) -> Self {
        Self {
            make,
            parallelism_max,
            payload: std::marker::PhantomData,
        }
    }
}

impl<In, Out, F> OperatorNode<In, Out, F>
where
    In: Payload,
    Out: Payload,
    F: Fn(&Subtask) -> Result<Box<dyn Operator<In, Out>>, OperatorError> + Send + Sync,
{
    /// An operator node with side outputs of these payload types.
    pub fn new(sides: Vec<PayloadType>, make: F) -> Self {
        Self {
            make,
            sides,
            parallelism_max: None,
            payload: std::marker::PhantomData,
        }
    }

    /// The same node that can have `parallelism_max` subtasks at most, or any number: for what
    /// goes subtask to subtask with a node that is so bounded.
    pub fn with_parallelism_max(mut self, parallelism_max: Option<u32>) -> Self {
        self.parallelism_max = parallelism_max;
        self
    }
}

impl<B, F> SinkNode<B, F>
where
    B: Payload,
    F: Fn(&Subtask) -> Result<Box<dyn Sink<B>>, OperatorError> + Send + Sync,
{
    /// A sink node.
    pub fn new(make: F) -> Self {
        Self {
            make,
            payload: std::marker::PhantomData,
        }
    }
}

impl<B, F> NodeFactory for SourceNode<B, F>
where
    B: Payload,
    F: Fn(&Subtask) -> Result<Box<dyn Source<B>>, OperatorError> + Send + Sync,
{
    fn input(&self) -> Option<PayloadType> {
        None
    }

    fn output(&self) -> Option<PayloadType> {
        Some(PayloadType::of::<B>())
    }

    fn parallelism_max(&self) -> Option<u32> {
        self.parallelism_max
    }

    fn stage(&self, _place: StagePlace, _next: Option<Erased>) -> Result<Erased, OperatorError> {
        unreachable!("a source is the head of its chain")
    }

    fn source_task(
        &self,
        subtasks: Vec<Subtask>,
        next: Erased,
        sides: Vec<Box<dyn SideOutlet>>,
    ) -> Result<Box<dyn Task>, OperatorError> {
        let source = (self.make)(&subtasks[0])?;
        let stage = next.take::<Box<dyn Stage<B>>>();
        Ok(Box::new(SourceTask::new(
            source,
            Chain::new(stage, subtasks, sides),
        )))
    }
}

impl<In, Out, F> NodeFactory for OperatorNode<In, Out, F>
where
    In: Payload,
    Out: Payload,
    F: Fn(&Subtask) -> Result<Box<dyn Operator<In, Out>>, OperatorError> + Send + Sync,
{
    fn input(&self) -> Option<PayloadType> {
        Some(PayloadType::of::<In>())
    }

    fn output(&self) -> Option<PayloadType> {
        Some(PayloadType::of::<Out>())
    }

    fn sides(&self) -> &[PayloadType] {
        &self.sides
    }

    fn parallelism_max(&self) -> Option<u32> {
        self.parallelism_max
    }

    fn stage(&self, place: StagePlace, next: Option<Erased>) -> Result<Erased, OperatorError> {
        let operator = (self.make)(&place.subtask)?;
        // Invariant: the builder makes an output for every last node that has one.
        let next = next
            .expect("an operator has an output")
            .take::<Box<dyn Stage<Out>>>();
        let StagePlace {
            subtask,
            position,
            sides,
        } = place;
        let stage = OperatorStage::new(operator, subtask, position, sides, next);
        Ok(Erased::new(Box::new(stage) as Box<dyn Stage<In>>))
    }

    fn source_task(
        &self,
        _subtasks: Vec<Subtask>,
        _next: Erased,
        _sides: Vec<Box<dyn SideOutlet>>,
    ) -> Result<Box<dyn Task>, OperatorError> {
        unreachable!("an operator is no source")
    }
}

impl<B, F> NodeFactory for SinkNode<B, F>
where
    B: Payload,
    F: Fn(&Subtask) -> Result<Box<dyn Sink<B>>, OperatorError> + Send + Sync,
{
    fn input(&self) -> Option<PayloadType> {
        Some(PayloadType::of::<B>())
    }

    fn output(&self) -> Option<PayloadType> {
        None
    }

    fn stage(&self, place: StagePlace, _next: Option<Erased>) -> Result<Erased, OperatorError> {
        let sink = (self.make)(&place.subtask)?;
        let stage = SinkStage::new(sink, place.subtask, place.position);
        Ok(Erased::new(Box::new(stage) as Box<dyn Stage<B>>))
    }

    fn source_task(
        &self,
        _subtasks: Vec<Subtask>,
        _next: Erased,
        _sides: Vec<Box<dyn SideOutlet>>,
    ) -> Result<Box<dyn Task>, OperatorError> {
        unreachable!("a sink is no source")
    }
}
