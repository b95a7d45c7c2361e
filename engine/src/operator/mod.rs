//! What a user writes: operators, sources and sinks.
//!
//! All of them are resumable. A call that cannot finish what it was given without filling
//! its output returns [`Progress::More`] and is called again with `resume` once there is
//! room, so that neither a flat map that explodes nor a watermark that fires a million
//! timers holds the core or memory.

mod counts;
mod emitter;
mod side;
mod sink;
mod source;
mod state;
mod subtask;

pub use counts::RowCounts;
pub use emitter::{Collector, Emitter, StepScope};
pub use side::{SideOutputs, SideTag};
pub use sink::Sink;
pub use source::{Source, SourceProgress};
pub use state::{EachKeyed, EachValue, StateReader, StateWriter};
pub use subtask::Subtask;

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::{Barrier, Watermark};
use crate::error::OperatorError;

/// Whether a call did all that it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// All done.
    Done,
    /// There is more to do: call `resume` when the output has room.
    More,
}

/// Turns batches of `In` into batches of `Out`.
///
/// The runtime calls one method at a time, on one thread. While a call is unfinished
/// ([`Progress::More`]) only `resume` and `snapshot` are called. Any error ends the job.
pub trait Operator<In: Payload, Out: Payload>: Send {
    /// Called once before anything else. `bell` wakes the worker that runs this operator; a
    /// side thread rings it when what the operator waits for is there.
    ///
    /// # Errors
    /// When the operator cannot start; the job does not start then.
    fn open(&mut self, _subtask: &Subtask, _bell: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Takes one batch.
    ///
    /// # Errors
    /// When the batch cannot be processed; the job fails and names this operator.
    fn process(&mut self, batch: In, out: &mut Emitter<'_, Out>)
    -> Result<Progress, OperatorError>;

    /// Event time has advanced, or the stream went idle (`watermark.idle`: fire nothing, its
    /// timestamp is for information). Implementations pass the watermark on with
    /// [`Emitter::watermark`] after what it made them emit; the default does just that.
    ///
    /// # Errors
    /// As for `process`.
    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Out>,
    ) -> Result<Progress, OperatorError> {
        out.watermark(watermark);
        Ok(Progress::Done)
    }

    /// The processing time that [`Operator::next_timer`] named has come (`out.now()`).
    ///
    /// # Errors
    /// As for `process`.
    fn on_timer(&mut self, _out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// When `on_timer` is to be called next, in processing time.
    fn next_timer(&self) -> Option<ProcessingTime> {
        None
    }

    /// The stream has ended: emit what is left. Called after the last watermark. Not called
    /// when the stream is stopped, cancelled or failed.
    ///
    /// # Errors
    /// As for `process`.
    fn on_end(&mut self, _out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// Goes on with the call that returned [`Progress::More`].
    ///
    /// # Errors
    /// As for `process`.
    fn resume(&mut self, _out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// Whether the call that returned [`Progress::More`] can go on only when something outside
    /// the worker has happened, of which the bell of `open` tells. The worker may sleep until
    /// then.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Whether something has come in from outside that `on_ready` is to take up. Asked often:
    /// it must cost little.
    fn is_ready(&self) -> bool {
        false
    }

    /// Takes up what has come in from outside though there is no unfinished call; see
    /// [`Operator::is_ready`].
    ///
    /// # Errors
    /// As for `process`.
    fn on_ready(&mut self, _out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// What follows cuts the stream here: an aligned barrier, or the marker that stops it. Emit
    /// what is still under way outside the worker, so that it is before the cut.
    ///
    /// # Errors
    /// As for `process`.
    fn settle(&mut self, _out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// Rows that were treated apart from others so far, for the report of the task; none where
    /// there is nothing to tell.
    fn counts(&self) -> Option<RowCounts> {
        None
    }

    /// Writes the operator's state for the checkpoint of `barrier`, including what an
    /// unfinished call has still to do.
    ///
    /// # Errors
    /// When the state cannot be written; the checkpoint is abandoned, the job goes on.
    fn snapshot(
        &mut self,
        _barrier: Barrier,
        _state: &mut dyn StateWriter,
    ) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Reads back what `snapshot` wrote, after `open` and before the first batch.
    ///
    /// # Errors
    /// When the state is not this operator's; the job does not start then.
    fn restore(&mut self, _state: &mut dyn StateReader) -> Result<(), OperatorError> {
        Ok(())
    }
}

/// A boxed operator is an operator, so that plans can hold operators by name.
impl<In: Payload, Out: Payload> Operator<In, Out> for Box<dyn Operator<In, Out>> {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        (**self).open(subtask, bell)
    }

    fn process(
        &mut self,
        batch: In,
        out: &mut Emitter<'_, Out>,
    ) -> Result<Progress, OperatorError> {
        (**self).process(batch, out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Out>,
    ) -> Result<Progress, OperatorError> {
        (**self).on_watermark(watermark, out)
    }

    fn on_timer(&mut self, out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        (**self).on_timer(out)
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        (**self).next_timer()
    }

    fn on_end(&mut self, out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        (**self).on_end(out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        (**self).resume(out)
    }

    fn is_waiting(&self) -> bool {
        (**self).is_waiting()
    }

    fn is_ready(&self) -> bool {
        (**self).is_ready()
    }

    fn on_ready(&mut self, out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        (**self).on_ready(out)
    }

    fn settle(&mut self, out: &mut Emitter<'_, Out>) -> Result<Progress, OperatorError> {
        (**self).settle(out)
    }

    fn counts(&self) -> Option<RowCounts> {
        (**self).counts()
    }

    fn snapshot(
        &mut self,
        barrier: Barrier,
        state: &mut dyn StateWriter,
    ) -> Result<(), OperatorError> {
        (**self).snapshot(barrier, state)
    }

    fn restore(&mut self, state: &mut dyn StateReader) -> Result<(), OperatorError> {
        (**self).restore(state)
    }
}
