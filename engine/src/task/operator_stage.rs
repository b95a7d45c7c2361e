//! An operator in a chain, with the stages after it.

use std::collections::VecDeque;
use std::ops::Range;

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::{Barrier, StreamElement};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, StepScope, Subtask};

use super::report::Discard;
use super::stage::{Closing, Downstream, Stage, StageItem};
use super::{OperatorReport, TaskReport};

/// An operator in a chain, with the stages after it.
///
/// While the operator has an unfinished call, or the stages after it have, items that arrive
/// wait here in order. They are as many as one call of the operator before emits.
pub struct OperatorStage<In: Payload, Out: Payload> {
    operator: Box<dyn Operator<In, Out>>,
    subtask: Subtask,
    position: usize,
    sides: Range<usize>,
    next: Box<dyn Stage<Out>>,
    waiting: VecDeque<StageItem<In>>,
    busy: bool,
    /// What goes on when the unfinished call is done: the end, or what cuts the stream.
    passing: Option<StageItem<In>>,
}

impl<In: Payload, Out: Payload> OperatorStage<In, Out> {
    /// A stage for `operator`, which is number `position` of its chain and whose side outputs
    /// are `sides` among those of the task.
    pub fn new(
        operator: Box<dyn Operator<In, Out>>,
        subtask: Subtask,
        position: usize,
        sides: Range<usize>,
        next: Box<dyn Stage<Out>>,
    ) -> Self {
        Self {
            operator,
            subtask,
            position,
            sides,
            next,
            waiting: VecDeque::new(),
            busy: false,
            passing: None,
        }
    }

    /// Calls the operator with an emitter into the next stage.
    fn call(
        &mut self,
        step: &mut StepScope,
        call: impl FnOnce(
            &mut dyn Operator<In, Out>,
            &mut Emitter<'_, Out>,
        ) -> Result<Progress, OperatorError>,
    ) {
        let before = std::mem::replace(&mut step.running, self.position);
        let mut downstream = Downstream {
            next: &mut *self.next,
            sides: self.sides.clone(),
        };
        let mut emitter = Emitter::new(&mut downstream, step, self.sides.start);
        match call(&mut *self.operator, &mut emitter) {
            Ok(progress) => self.busy = progress == Progress::More,
            Err(error) => step.fail(self.position, error),
        }
        step.running = before;
        if !self.busy
            && !step.has_failed()
            && let Some(item) = self.passing.take()
        {
            self.pass(item, step);
        }
    }

    /// Passes on the end, or what cuts the stream.
    fn pass(&mut self, item: StageItem<In>, step: &mut StepScope) {
        let item = match item {
            StageItem::Element(StreamElement::Barrier(barrier)) => {
                self.snapshot(barrier, step);
                step.sides.barrier(self.sides.clone(), barrier);
                StageItem::Element(StreamElement::Barrier(barrier))
            }
            StageItem::Element(StreamElement::Drain(drain)) => {
                step.sides.drain(self.sides.clone(), drain);
                StageItem::Element(StreamElement::Drain(drain))
            }
            StageItem::End => StageItem::End,
            StageItem::Element(_) => unreachable!("the operator itself passes on what it emits"),
        };
        self.next.push(item, step);
    }

    fn run(&mut self, item: StageItem<In>, step: &mut StepScope) {
        match item {
            StageItem::Element(StreamElement::Data(batch)) => {
                self.call(step, |operator, out| operator.process(batch, out));
            }
            StageItem::Element(StreamElement::Watermark(watermark)) => {
                self.call(step, |operator, out| operator.on_watermark(watermark, out));
            }
            StageItem::Element(StreamElement::Drain(drain)) if !drain.stops() => {
                self.pass(item, step);
            }
            StageItem::Element(StreamElement::Barrier(_) | StreamElement::Drain(_)) => {
                self.passing = Some(item);
                self.call(step, |operator, out| operator.settle(out));
            }
            StageItem::End => {
                self.passing = Some(StageItem::End);
                self.call(step, |operator, out| operator.on_end(out));
            }
        }
    }

    fn snapshot(&mut self, barrier: Barrier, step: &mut StepScope) {
        if let Err(error) = self.operator.snapshot(barrier, &mut Discard) {
            step.lose_checkpoint(&self.subtask, barrier, &error);
        }
    }

    fn is_idle(&self) -> bool {
        !self.busy && self.waiting.is_empty()
    }
}

impl<In: Payload, Out: Payload> Stage<In> for OperatorStage<In, Out> {
    fn open(&mut self, bell: &Bell) -> Result<(), (usize, OperatorError)> {
        self.next.open(bell)?;
        self.operator
            .open(&self.subtask, bell)
            .map_err(|error| (self.position, error))
    }

    fn push(&mut self, item: StageItem<In>, step: &mut StepScope) {
        if step.has_failed() {
            return;
        }
        if self.is_idle() {
            self.run(item, step);
        } else {
            self.waiting.push_back(item);
        }
    }

    fn resume(&mut self, step: &mut StepScope) -> Progress {
        if self.next.resume(step) == Progress::More || step.has_failed() {
            return Progress::More;
        }
        if self.busy && !self.next.is_full() {
            self.call(step, |operator, out| operator.resume(out));
        }
        while !self.busy && !self.next.is_full() && !step.has_failed() {
            let Some(item) = self.waiting.pop_front() else {
                break;
            };
            self.run(item, step);
        }
        if self.is_idle() {
            self.next.resume(step)
        } else {
            Progress::More
        }
    }

    fn overtake(&mut self, barrier: Barrier, step: &mut StepScope) {
        self.snapshot(barrier, step);
        step.sides.barrier(self.sides.clone(), barrier);
        self.next.overtake(barrier, step);
    }

    fn fire_timers(&mut self, step: &mut StepScope) -> bool {
        let due = self
            .operator
            .next_timer()
            .is_some_and(|at| at <= step.processing_time);
        let fires = due && !self.is_full();
        if fires {
            self.call(step, |operator, out| operator.on_timer(out));
        }
        let ready = self.operator.is_ready() && !self.is_full();
        if ready {
            self.call(step, |operator, out| operator.on_ready(out));
        }
        self.next.fire_timers(step) || fires || ready
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        [self.operator.next_timer(), self.next.next_timer()]
            .into_iter()
            .flatten()
            .min()
    }

    fn is_full(&self) -> bool {
        !self.is_idle() || self.next.is_full()
    }

    fn is_waiting(&self) -> bool {
        if self.next.is_full() {
            self.next.is_waiting()
        } else {
            self.busy && self.operator.is_waiting()
        }
    }

    fn commit(&mut self, id: u64, step: &mut StepScope) {
        self.next.commit(id, step);
    }

    fn flush(&mut self, step: &mut StepScope) -> bool {
        self.next.flush(step)
    }

    fn close(&mut self, closing: &Closing, step: &mut StepScope) {
        self.next.close(closing, step);
    }

    fn is_closed(&self) -> bool {
        self.next.is_closed()
    }

    fn report(&self, report: &mut TaskReport) {
        report
            .operators
            .extend(self.operator.counts().map(|counts| OperatorReport {
                name: self.subtask.name.clone(),
                counts,
            }));
        self.next.report(report);
    }
}
