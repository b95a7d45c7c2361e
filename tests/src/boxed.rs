//! What a connector makes, as what a stream takes.

use ringway::batch::Payload;
use ringway::clock::ProcessingTime;
use ringway::error::OperatorError;
use ringway::operator::{Emitter, Progress, Sink, Source, SourceProgress, Subtask};
use ringway_shm::Bell;

/// A source or sink of any type.
pub struct Boxed<T: ?Sized>(pub Box<T>);

impl<B: Payload> Sink<B> for Boxed<dyn Sink<B>> {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        self.0.open(subtask, bell)
    }

    fn write(&mut self, batch: B, now: ProcessingTime) -> Result<Progress, OperatorError> {
        self.0.write(batch, now)
    }

    fn resume(&mut self, now: ProcessingTime) -> Result<Progress, OperatorError> {
        self.0.resume(now)
    }

    fn on_end(&mut self, now: ProcessingTime) -> Result<Progress, OperatorError> {
        self.0.on_end(now)
    }
}

impl<B: Payload> Source<B> for Boxed<dyn Source<B>> {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        self.0.open(subtask, bell)
    }

    fn poll(&mut self, out: &mut Emitter<'_, B>) -> Result<SourceProgress, OperatorError> {
        self.0.poll(out)
    }
}
