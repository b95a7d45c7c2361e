//! The way out of a side output of a task: from its queue to its edges.

use crate::batch::Payload;
use crate::element::StreamElement;
use crate::operator::{SideOutputs, StepScope};
use crate::output::{Output, OutputError};

use super::TaskReport;
use super::stage::Closing;

/// The way out of one side output of a task, whatever its payload type.
pub trait SideOutlet: Send {
    /// Adds the side output to those of the task, in order.
    fn register(&self, sides: &mut SideOutputs);

    /// Moves what was emitted to the edges. `true` when nothing waits any more.
    ///
    /// # Errors
    /// When an edge has failed, or a batch cannot be partitioned.
    fn flush(&mut self, step: &mut StepScope) -> Result<bool, OutputError>;

    /// Closes the edges.
    ///
    /// # Errors
    /// When a receiver failed before it could learn of the end.
    fn close(&mut self, closing: &Closing) -> Result<(), OutputError>;

    /// Adds what the edges have to report.
    fn report(&self, report: &mut TaskReport);
}

/// The way out of a side output of payload type `S`.
pub struct TypedSideOutlet<S: Payload> {
    index: usize,
    /// `None` where nothing consumes the side output: what it is given is counted.
    output: Option<Output<S>>,
}

impl<S: Payload> TypedSideOutlet<S> {
    /// The way out of side output number `index` of the task.
    pub fn new(index: usize, output: Option<Output<S>>) -> Self {
        Self { index, output }
    }
}

impl<S: Payload> SideOutlet for TypedSideOutlet<S> {
    fn register(&self, sides: &mut SideOutputs) {
        sides.add::<S>(self.output.is_some());
    }

    fn flush(&mut self, step: &mut StepScope) -> Result<bool, OutputError> {
        let Some(output) = self.output.as_mut() else {
            return Ok(true);
        };
        loop {
            while !output.is_full() {
                match step.sides.pop::<S>(self.index) {
                    Some(StreamElement::Data(batch)) => output.data(batch, step.origin)?,
                    Some(control) => output.broadcast(&control, step.origin)?,
                    None => break,
                }
            }
            // The outboxes may be full and then empty at once, when the receiver makes room in
            // between: what is still in the queue has not moved by that.
            let all = output.flush(step.clock.now())?;
            if !all || step.sides.is_empty(self.index) {
                return Ok(all);
            }
        }
    }

    fn close(&mut self, closing: &Closing) -> Result<(), OutputError> {
        let Some(output) = self.output.as_mut() else {
            return Ok(());
        };
        match closing {
            Closing::Finish => return output.finish(),
            Closing::Cancel => output.cancel(),
            Closing::Fail(reason) => output.fail(reason),
        }
        Ok(())
    }

    fn report(&self, report: &mut TaskReport) {
        if let Some(output) = &self.output {
            report.discarded_rows += output.discarded_rows();
            report.edges.extend(output.report());
        }
    }
}
