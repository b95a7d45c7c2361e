//! Where a stream begins.

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::Barrier;
use crate::error::OperatorError;

use super::{Emitter, StateReader, StateWriter, Subtask};

/// What a source has to say after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SourceProgress {
    /// It emitted something, or may do so at once.
    Ready,
    /// Nothing now. It rings the worker's bell when there is, or is polled again at the
    /// given processing time, or both.
    Pending(Option<ProcessingTime>),
    /// There is nothing more, ever.
    End,
}

/// Produces batches and watermarks.
///
/// A source never blocks: files, sockets and services are read beside the worker.
pub trait Source<Out: Payload>: Send {
    /// Called once before anything else. `bell` wakes the worker that polls this source;
    /// a side thread rings it when a batch is ready.
    ///
    /// # Errors
    /// When the source cannot start; the job does not start then.
    fn open(&mut self, subtask: &Subtask, bell: &ringway_shm::Bell) -> Result<(), OperatorError>;

    /// Emits at most a few batches and the watermarks that go with them. Stops when
    /// `out.is_full()`.
    ///
    /// # Errors
    /// When input cannot be read or understood; the job fails and names this source.
    fn poll(&mut self, out: &mut Emitter<'_, Out>) -> Result<SourceProgress, OperatorError>;

    /// Whether it reads what the job itself has put aside. Its rows came into the job before:
    /// they are not counted as input, and it goes on where the job is drained. Default: no.
    fn is_inner(&self) -> bool {
        false
    }

    /// Saves the position up to which everything was emitted, for the checkpoint of `barrier`.
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

    /// Goes back to a position that `snapshot` saved, after `open` and before the first poll.
    ///
    /// # Errors
    /// When the position cannot be reached; the job does not start then.
    fn restore(&mut self, _state: &mut dyn StateReader) -> Result<(), OperatorError> {
        Ok(())
    }
}
