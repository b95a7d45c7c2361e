//! Why a job file is refused, and where in it the reason stands.

use std::fmt;
use std::path::{Path, PathBuf};

/// A job file that cannot be run: nothing has been. The message says where, what and what to
/// do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct JobFileError {
    file: Option<PathBuf>,
    place: Place,
    message: String,
}

/// A place in a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// From 1; none where it is the file as a whole.
    pub line: Option<usize>,
    /// The key and those that it is under, such as `operators.hourly.where`; empty where it is
    /// the file as a whole or is not known.
    pub key: String,
}

impl Place {
    /// The line of `text` in which byte `at` stands.
    pub(super) fn at(text: &str, at: usize) -> Self {
        let before = &text.as_bytes()[..at.min(text.len())];
        Self {
            line: Some(1 + before.iter().filter(|byte| **byte == b'\n').count()),
            key: String::new(),
        }
    }

    /// The same place, which has a key.
    pub(super) fn with_key(self, path: &[String]) -> Self {
        Self {
            key: path.join("."),
            ..self
        }
    }
}

impl JobFileError {
    /// `message` about a place of the file.
    pub(super) fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            file: None,
            place,
            message: message.into(),
        }
    }

    /// The same, of the file `path`.
    pub(super) fn in_file(self, path: &Path) -> Self {
        Self {
            file: Some(path.to_owned()),
            ..self
        }
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What is wrong and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(file) = &self.file {
            write!(f, "{}", file.display())?;
            separator = ", ";
        }
        if let Some(line) = self.place.line {
            write!(f, "{separator}line {line}")?;
            separator = ", ";
        }
        if !self.place.key.is_empty() {
            write!(f, "{separator}key {}", self.place.key)?;
            separator = ", ";
        }
        if !separator.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}
