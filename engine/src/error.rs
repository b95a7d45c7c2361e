//! Failures of operators, sources and sinks, and how they are told.

use std::fmt;

/// Why an operator, source or sink cannot go on. It ends the job: what downstream sees is a
/// failed stream, never an end.
///
/// Build one from any error with `?`, or from a message with [`OperatorError::new`].
#[derive(Debug)]
pub struct OperatorError {
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl OperatorError {
    /// An error that says `message`: what went wrong, where, and what to do about it.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// The error that this was made from, if it was one of type `E`.
    pub fn cause<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.source
            .as_deref()
            .and_then(|source| source.downcast_ref())
    }
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut cause = self.source.as_deref().and_then(std::error::Error::source);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// `OperatorError` is not itself a `std::error::Error`, which is what lets any error become
/// one with `?`.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for OperatorError {
    fn from(error: E) -> Self {
        Self {
            message: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}
