//! What an operator emits through: it takes everything it is given, and says when it has
//! had enough.

use crate::batch::Payload;
use crate::clock::{Clock, Monotonic, ProcessingTime};
use crate::element::{Barrier, Watermark};
use crate::error::OperatorError;

use super::{SideOutputs, SideTag, Subtask};

/// Takes what one operator emits: the next operator of the chain, or the chain's output.
pub trait Collector<B: Payload> {
    /// Takes a batch. Never refuses; see [`Collector::is_full`].
    fn data(&mut self, batch: B, step: &mut StepScope);

    /// Takes a watermark, after all that was given before.
    fn watermark(&mut self, watermark: Watermark, step: &mut StepScope);

    /// Whether the operator should stop and return [`super::Progress::More`].
    fn is_full(&self) -> bool;
}

/// What one step of a task knows and shares with every operator of its chain: the time, the
/// side outputs, and the first error.
#[derive(Debug)]
pub struct StepScope {
    /// The clock of the job.
    pub clock: Clock,
    /// Processing time at the start of the step, in milliseconds since the Unix epoch.
    pub processing_time: ProcessingTime,
    /// When what is being processed entered the job.
    pub origin: Monotonic,
    /// The side outputs of the task.
    pub sides: SideOutputs,
    /// The operator of the chain that is running, so that a panic can be laid at its door.
    pub running: usize,
    error: Option<(usize, OperatorError)>,
    checkpoints_lost: u64,
}

impl StepScope {
    /// A scope that reads time from `clock`.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            processing_time: clock.processing_time(clock.now()),
            origin: Monotonic::default(),
            sides: SideOutputs::default(),
            running: 0,
            error: None,
            checkpoints_lost: 0,
        }
    }

    /// Remembers that the operator at `position` of the chain failed, unless one failed before
    /// it in this step.
    pub fn fail(&mut self, position: usize, error: OperatorError) {
        self.error.get_or_insert((position, error));
    }

    /// Whether an operator has failed in this step.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// An operator could not write its state for a checkpoint: that one is lost, the job goes on.
    pub fn lose_checkpoint(&mut self, of: &Subtask, barrier: Barrier, error: &OperatorError) {
        self.checkpoints_lost += 1;
        tracing::warn!(operator = %of, checkpoint = barrier.id, %error, "checkpoint lost");
    }

    /// Checkpoints that an operator could not write its state for.
    pub fn checkpoints_lost(&self) -> u64 {
        self.checkpoints_lost
    }

    /// The position of the operator that failed and why, once.
    pub fn take_error(&mut self) -> Option<(usize, OperatorError)> {
        self.error.take()
    }
}

/// An operator's way out: batches, watermarks, side outputs, and the time.
///
/// Nothing that is emitted is dropped or refused. An operator that may emit much asks
/// [`Emitter::is_full`] between batches and returns [`super::Progress::More`] when it says so.
pub struct Emitter<'a, Out: Payload> {
    collector: &'a mut dyn Collector<Out>,
    step: &'a mut StepScope,
    side_base: usize,
}

impl<'a, Out: Payload> Emitter<'a, Out> {
    /// An emitter into `collector`. The operator's own side outputs begin at `side_base` of
    /// those of the task.
    pub fn new(
        collector: &'a mut dyn Collector<Out>,
        step: &'a mut StepScope,
        side_base: usize,
    ) -> Self {
        Self {
            collector,
            step,
            side_base,
        }
    }

    /// Emits a batch. An empty batch is not emitted.
    pub fn emit(&mut self, batch: Out) {
        if batch.rows() > 0 {
            self.collector.data(batch, self.step);
        }
    }

    /// Passes a watermark on, after all that was emitted before.
    pub fn watermark(&mut self, watermark: Watermark) {
        self.collector.watermark(watermark, self.step);
    }

    /// Emits a batch to a side output. A side output that nothing consumes discards and
    /// counts what it is given.
    pub fn emit_side<S: Payload>(&mut self, tag: SideTag<S>, batch: S) {
        if batch.rows() > 0 {
            self.step.sides.data(self.side_base + tag.index(), batch);
        }
    }

    /// Whether to stop emitting and return [`super::Progress::More`].
    pub fn is_full(&self) -> bool {
        self.collector.is_full() || self.step.sides.is_full()
    }

    /// Processing time at the start of this step, in milliseconds since the Unix epoch.
    pub fn now(&self) -> ProcessingTime {
        self.step.processing_time
    }
}
