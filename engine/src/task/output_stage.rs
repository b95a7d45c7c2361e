//! The end of a chain that has consumers: its output.

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::{Barrier, StreamElement};
use crate::error::OperatorError;
use crate::operator::{Progress, StepScope};
use crate::output::{Output, OutputError};

use super::TaskReport;
use super::stage::{Closing, Stage, StageItem};

/// The end of a chain that has consumers: its output.
pub struct OutputStage<B: Payload> {
    output: Output<B>,
    position: usize,
    rows: u64,
    ended: bool,
}

impl<B: Payload> OutputStage<B> {
    /// A stage for `output`, fed by operator number `position` of the chain.
    pub fn new(output: Output<B>, position: usize) -> Self {
        Self {
            output,
            position,
            rows: 0,
            ended: false,
        }
    }

    fn check<T: Default>(&self, result: Result<T, OutputError>, step: &mut StepScope) -> T {
        result.unwrap_or_else(|error| {
            step.fail(self.position, OperatorError::from(error));
            T::default()
        })
    }
}

impl<B: Payload> Stage<B> for OutputStage<B> {
    fn open(&mut self, _bell: &Bell) -> Result<(), (usize, OperatorError)> {
        Ok(())
    }

    fn push(&mut self, item: StageItem<B>, step: &mut StepScope) {
        let origin = step.origin;
        let result = match item {
            StageItem::Element(StreamElement::Data(batch)) => {
                self.rows += batch.rows() as u64;
                self.output.data(batch, origin)
            }
            StageItem::Element(control) => self.output.broadcast(&control, origin),
            StageItem::End => {
                self.ended = true;
                Ok(())
            }
        };
        self.check(result, step);
    }

    fn resume(&mut self, _step: &mut StepScope) -> Progress {
        Progress::Done
    }

    fn overtake(&mut self, barrier: Barrier, step: &mut StepScope) {
        let result = self.output.overtake(barrier, step.origin);
        self.check(result, step);
    }

    fn fire_timers(&mut self, _step: &mut StepScope) -> bool {
        false
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        None
    }

    fn is_full(&self) -> bool {
        self.output.is_full()
    }

    fn is_waiting(&self) -> bool {
        self.output.is_waiting()
    }

    fn commit(&mut self, _id: u64, _step: &mut StepScope) {}

    fn flush(&mut self, step: &mut StepScope) -> bool {
        let result = self.output.flush(step.clock.now());
        self.check(result, step)
    }

    fn close(&mut self, closing: &Closing, step: &mut StepScope) {
        match closing {
            Closing::Finish => {
                debug_assert!(
                    self.ended || self.output.last_stops(),
                    "a stream ends or is stopped"
                );
                let finished = self.output.finish();
                self.check(finished, step);
            }
            Closing::Cancel => self.output.cancel(),
            Closing::Fail(reason) => self.output.fail(reason),
        }
    }

    fn is_closed(&self) -> bool {
        self.output.is_closed()
    }

    fn report(&self, report: &mut TaskReport) {
        report.rows_out += self.rows;
        report.discarded_rows += self.output.discarded_rows();
        report.edges.extend(self.output.report());
    }
}
