//! The end of a chain that leaves the job: its sink.

use std::collections::VecDeque;

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::{Monotonic, ProcessingTime};
use crate::element::{Barrier, StreamElement};
use crate::error::OperatorError;
use crate::operator::{Progress, Sink, StepScope, Subtask};

use super::TaskReport;
use super::report::{Discard, Latency};
use super::stage::{Closing, Stage, StageItem};

/// The end of a chain that leaves the job: its sink. Latency is measured here.
pub struct SinkStage<B: Payload> {
    sink: Box<dyn Sink<B>>,
    subtask: Subtask,
    position: usize,
    waiting: VecDeque<StageItem<B>>,
    busy: bool,
    rows: u64,
    latency: Latency,
    first_row: Option<Monotonic>,
}

impl<B: Payload> SinkStage<B> {
    /// A stage for `sink`, which is number `position` of its chain.
    pub fn new(sink: Box<dyn Sink<B>>, subtask: Subtask, position: usize) -> Self {
        let (waiting, latency) = (VecDeque::new(), Latency::default());
        Self {
            sink,
            subtask,
            position,
            waiting,
            busy: false,
            rows: 0,
            latency,
            first_row: None,
        }
    }

    fn run(&mut self, item: StageItem<B>, step: &mut StepScope) {
        let before = std::mem::replace(&mut step.running, self.position);
        let now = step.processing_time;
        let result = match item {
            StageItem::Element(StreamElement::Data(batch)) => {
                self.rows += batch.rows() as u64;
                if !self.sink.is_inner() {
                    let arrived = step.clock.now();
                    self.first_row.get_or_insert(arrived);
                    self.latency.record(arrived.since(step.origin));
                }
                self.sink.write(batch, now)
            }
            StageItem::Element(StreamElement::Watermark(watermark)) => {
                self.sink.on_watermark(watermark).map(|()| Progress::Done)
            }
            StageItem::Element(StreamElement::Barrier(barrier)) => {
                self.prepare(barrier, step).map(|()| Progress::Done)
            }
            StageItem::Element(StreamElement::Drain(_)) => Ok(Progress::Done),
            StageItem::End => self.sink.on_end(now),
        };
        self.note(result, step);
        step.running = before;
    }

    fn note(&mut self, result: Result<Progress, OperatorError>, step: &mut StepScope) {
        match result {
            Ok(progress) => self.busy = progress == Progress::More,
            Err(error) => step.fail(self.position, error),
        }
    }

    /// A terminal barrier comes after the last record of sources that take no final
    /// checkpoint: nobody else will decide it, so it is committed at once, and no later
    /// checkpoint makes up for one that cannot be prepared.
    fn prepare(&mut self, barrier: Barrier, step: &mut StepScope) -> Result<(), OperatorError> {
        match self.sink.prepare(barrier, &mut Discard) {
            Ok(()) if barrier.terminal => self.sink.commit(barrier.id),
            Err(error) if barrier.terminal => Err(error),
            Ok(()) => Ok(()),
            Err(error) => {
                step.lose_checkpoint(&self.subtask, barrier, &error);
                Ok(())
            }
        }
    }
}

impl<B: Payload> Stage<B> for SinkStage<B> {
    fn open(&mut self, bell: &Bell) -> Result<(), (usize, OperatorError)> {
        self.sink
            .open(&self.subtask, bell)
            .map_err(|error| (self.position, error))
    }

    fn push(&mut self, item: StageItem<B>, step: &mut StepScope) {
        if step.has_failed() {
            return;
        }
        if self.busy || !self.waiting.is_empty() {
            self.waiting.push_back(item);
        } else {
            self.run(item, step);
        }
    }

    fn resume(&mut self, step: &mut StepScope) -> Progress {
        if self.busy {
            let before = std::mem::replace(&mut step.running, self.position);
            let result = self.sink.resume(step.processing_time);
            self.note(result, step);
            step.running = before;
        }
        while !self.busy && !step.has_failed() {
            let Some(item) = self.waiting.pop_front() else {
                return Progress::Done;
            };
            self.run(item, step);
        }
        Progress::More
    }

    fn overtake(&mut self, barrier: Barrier, step: &mut StepScope) {
        if let Err(error) = self.prepare(barrier, step) {
            step.fail(self.position, error);
        }
    }

    fn fire_timers(&mut self, _step: &mut StepScope) -> bool {
        false
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        None
    }

    fn is_full(&self) -> bool {
        self.busy || !self.waiting.is_empty()
    }

    fn is_waiting(&self) -> bool {
        self.busy
    }

    fn commit(&mut self, id: u64, step: &mut StepScope) {
        let before = std::mem::replace(&mut step.running, self.position);
        if let Err(error) = self.sink.commit(id) {
            step.fail(self.position, error);
        }
        step.running = before;
    }

    fn flush(&mut self, _step: &mut StepScope) -> bool {
        true
    }

    fn close(&mut self, _closing: &Closing, _step: &mut StepScope) {}

    fn is_closed(&self) -> bool {
        false
    }

    fn report(&self, report: &mut TaskReport) {
        report.rows_out += self.rows;
        if !self.sink.is_inner() {
            report.sink_rows += self.rows;
        }
        report.first_row = self.first_row;
        report.latency.merge(&self.latency);
    }
}
