//! Why a measurement did not come about.

use std::fmt;

/// Why a measurement did not come about, in words: what, where, and what to do.
///
/// A result that is wrong is one of these too: a bench that loses a row fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchError {
    message: String,
    is_usage: bool,
}

impl BenchError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_usage: false,
        }
    }

    /// What was asked for makes no sense here; nothing was measured.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_usage: true,
        }
    }

    /// The same error, in `place`.
    pub(crate) fn within(self, place: &str) -> Self {
        Self {
            message: format!("{place}: {}", self.message),
            ..self
        }
    }

    /// Whether the command line is at fault, rather than what was measured.
    pub fn is_usage(&self) -> bool {
        self.is_usage
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// It is not itself a `std::error::Error`, which is what lets any error become one with `?`.
impl<E: std::error::Error> From<E> for BenchError {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}
