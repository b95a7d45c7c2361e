//! What a command has to say.

/// What a command has to say when it could do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What belongs on stdout.
    pub text: String,
    /// Whether what was found is as it should be: nothing became slower, no part failed.
    pub is_good: bool,
}

impl Answer {
    /// All is as it should be.
    pub(crate) fn good(text: String) -> Self {
        Self {
            text,
            is_good: true,
        }
    }
}
