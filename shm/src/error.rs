//! Why a push or a pop did not happen.

use std::fmt;

/// A value was not pushed. It comes back inside, unharmed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// There is no room now. Push it again after the consumer has popped.
    #[error("the ring is full: push again when the consumer has made room")]
    Full(T),
    /// The consumer is gone, and nothing will ever make room. Stop pushing.
    #[error("the consumer of the ring is gone: stop pushing")]
    Abandoned(T),
}

impl<T> PushError<T> {
    /// The value that was not pushed.
    pub fn into_inner(self) -> T {
        match self {
            PushError::Full(value) | PushError::Abandoned(value) => value,
        }
    }

    /// Whether trying again later can succeed.
    pub fn is_full(&self) -> bool {
        matches!(self, PushError::Full(_))
    }
}

/// Prints the reason without the value, so that any value can be reported.
impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PushError::Full(_) => "Full(..)",
            PushError::Abandoned(_) => "Abandoned(..)",
        })
    }
}

/// Nothing was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// Nothing is queued now. Pop again after the producer has pushed. Also
    /// the answer while the queue has ended but a priority value still waits.
    #[error("the ring is empty: pop again when the producer has pushed")]
    Empty,
    /// Everything was popped and the producer has said that this was all.
    #[error("the producer of the ring has finished")]
    Finished,
    /// Everything was popped and the producer is gone without having finished:
    /// treat what came so far as incomplete.
    #[error("the producer of the ring is gone without having finished")]
    Abandoned,
}
