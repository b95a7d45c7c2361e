//! Where a stream leaves.

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::{Barrier, Watermark};
use crate::error::OperatorError;

use super::{Progress, StateReader, StateWriter, Subtask};

/// Takes batches out of the job.
///
/// A sink never blocks: what may wait (files, services) is written beside the worker, and
/// a sink whose writer is behind returns [`Progress::More`].
pub trait Sink<In: Payload>: Send {
    /// Called once before anything else. `bell` wakes the worker that steps this sink; a
    /// side thread rings it when there is room again.
    ///
    /// # Errors
    /// When the sink cannot start; the job does not start then.
    fn open(&mut self, _subtask: &Subtask, _bell: &ringway_shm::Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Takes one batch.
    ///
    /// # Errors
    /// When the batch cannot be written; the job fails and names this sink.
    fn write(&mut self, batch: In, now: ProcessingTime) -> Result<Progress, OperatorError>;

    /// Whether it puts rows aside for the job itself: they have not left it, and are not counted
    /// as output. Default: no.
    fn is_inner(&self) -> bool {
        false
    }

    /// Goes on with the call that returned [`Progress::More`].
    ///
    /// # Errors
    /// As for `write`.
    fn resume(&mut self, _now: ProcessingTime) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// Event time has advanced.
    ///
    /// # Errors
    /// As for `write`.
    fn on_watermark(&mut self, _watermark: Watermark) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Everything before `barrier` has been written: make it ready to be committed, and put
    /// what a commit after a restart needs into `state`.
    ///
    /// # Errors
    /// When it cannot be prepared; the checkpoint is abandoned, the job goes on.
    fn prepare(
        &mut self,
        _barrier: Barrier,
        _state: &mut dyn StateWriter,
    ) -> Result<(), OperatorError> {
        Ok(())
    }

    /// The checkpoint `id` is decided: make visible all that was prepared up to it. May be
    /// called more than once for the same id.
    ///
    /// # Errors
    /// When it cannot be committed; the job fails and names this sink. A commit that may
    /// succeed later is for the sink itself to try again.
    fn commit(&mut self, _id: u64) -> Result<(), OperatorError> {
        Ok(())
    }

    /// The stream has ended: make everything visible. Not called when the stream was
    /// stopped, cancelled or failed.
    ///
    /// # Errors
    /// When it cannot be; the job fails and names this sink.
    fn on_end(&mut self, _now: ProcessingTime) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// Reads back what `prepare` wrote, after `open` and before the first batch.
    ///
    /// # Errors
    /// When the state is not this sink's; the job does not start then.
    fn restore(&mut self, _state: &mut dyn StateReader) -> Result<(), OperatorError> {
        Ok(())
    }
}
