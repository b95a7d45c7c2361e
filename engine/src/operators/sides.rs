//! What makes a stream one side of an operator with two inputs.

use crate::batch::{Either, Payload};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

/// Makes batches the left input of an operator with two. It moves them, and stands at the end
/// of the chain before the exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToLeft;

/// Makes batches the right input of an operator with two; see [`ToLeft`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ToRight;

impl<A: Payload, B: Payload> Operator<A, Either<A, B>> for ToLeft {
    fn process(
        &mut self,
        batch: A,
        out: &mut Emitter<'_, Either<A, B>>,
    ) -> Result<Progress, OperatorError> {
        out.emit(Either::Left(batch));
        Ok(Progress::Done)
    }
}

impl<A: Payload, B: Payload> Operator<B, Either<A, B>> for ToRight {
    fn process(
        &mut self,
        batch: B,
        out: &mut Emitter<'_, Either<A, B>>,
    ) -> Result<Progress, OperatorError> {
        out.emit(Either::Right(batch));
        Ok(Progress::Done)
    }
}
