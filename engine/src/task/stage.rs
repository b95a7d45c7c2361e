//! The stages of a chain and what passes between them.

use std::ops::Range;

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::{Barrier, StreamElement, Watermark};
use crate::error::OperatorError;
use crate::operator::{Collector, Progress, StepScope};

use super::TaskReport;

/// What one stage of a chain gives the next.
#[derive(Clone, Debug, PartialEq)]
pub enum StageItem<B> {
    /// An element.
    Element(StreamElement<B>),
    /// The stream has ended here: `on_end`, then pass it on.
    End,
}

/// One stage of a chain: an operator with all that comes after it, a sink, or the outputs.
///
/// A stage takes everything it is given and keeps what it cannot process yet, so callers ask
/// [`Stage::is_full`] first where they have a choice. Errors are left in the [`StepScope`].
pub trait Stage<B: Payload>: Send {
    /// Opens this stage and those after it, last first.
    ///
    /// # Errors
    /// The position in the chain of what cannot start, and why.
    fn open(&mut self, bell: &Bell) -> Result<(), (usize, OperatorError)>;

    /// Takes the next item.
    fn push(&mut self, item: StageItem<B>, step: &mut StepScope);

    /// Goes on with unfinished work, here and further down. `Done` when there is none left.
    fn resume(&mut self, step: &mut StepScope) -> Progress;

    /// A barrier that goes ahead of all unfinished work.
    fn overtake(&mut self, barrier: Barrier, step: &mut StepScope);

    /// Fires what is due in processing time, and takes up what has come in from outside, when
    /// no work is unfinished. Returns whether there was anything.
    fn fire_timers(&mut self, step: &mut StepScope) -> bool;

    /// When [`Stage::fire_timers`] is to be called next.
    fn next_timer(&self) -> Option<ProcessingTime>;

    /// Whether the caller should stop and let the stage catch up.
    fn is_full(&self) -> bool;

    /// Whether unfinished work waits for something outside: room on an edge, a sink's writer,
    /// or what an operator has asked for. It rings the worker's bell when it is there.
    fn is_waiting(&self) -> bool;

    /// A checkpoint is decided: sinks commit.
    fn commit(&mut self, id: u64, step: &mut StepScope);

    /// Moves what waits in the outputs to the edges. `true` when nothing waits any more.
    fn flush(&mut self, step: &mut StepScope) -> bool;

    /// The end of everything, in one of the ways that [`Closing`] names.
    fn close(&mut self, closing: &Closing, step: &mut StepScope);

    /// Whether nobody wants what this chain would still emit.
    fn is_closed(&self) -> bool;

    /// Adds what this stage and those after it have to report.
    fn report(&self, report: &mut TaskReport);
}

/// How a chain closes its outputs.
#[derive(Clone, Debug)]
pub enum Closing {
    /// In order: the streams have ended, or were stopped.
    Finish,
    /// The job was cancelled.
    Cancel,
    /// This subtask failed, or its input did.
    Fail(String),
}

/// The next stage of a chain, as an operator's emitter sees it.
pub struct Downstream<'a, B: Payload> {
    /// The stage.
    pub next: &'a mut dyn Stage<B>,
    /// The side outputs of the operator among those of the task. They have the operator's own
    /// watermarks, whatever operators further down the chain make of them.
    pub sides: Range<usize>,
}

impl<B: Payload> Collector<B> for Downstream<'_, B> {
    fn data(&mut self, batch: B, step: &mut StepScope) {
        self.next
            .push(StageItem::Element(StreamElement::Data(batch)), step);
    }

    fn watermark(&mut self, watermark: Watermark, step: &mut StepScope) {
        step.sides.watermark(self.sides.clone(), watermark);
        self.next.push(
            StageItem::Element(StreamElement::Watermark(watermark)),
            step,
        );
    }

    fn is_full(&self) -> bool {
        self.next.is_full()
    }
}
