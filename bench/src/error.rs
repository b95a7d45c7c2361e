//! Why a measurement did not come about.

use std::fmt;

/// Why a measurement did not come about, in words: what, where, and what to do.
///
/// A result that is wrong is one of these too: a bench that loses a row fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchError(String);

impl BenchError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// The same error, in `place`.
    pub(crate) fn within(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// It is not itself a `std::error::Error`, which is what lets any error become one with `?`.
impl<E: std::error::Error> From<E> for BenchError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
