//! A job file as it was read: its tree, and errors that say where they stand in it.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::error::{JobFileError, Place};
use super::names::did_you_mean;
use super::read::{Misfit, MisfitKind, read};
use super::tree::{Language, Node};

/// The keys that lead to a part of a job file.
pub(super) type KeyPath = Vec<String>;

/// The text of a job file and its tree.
pub(super) struct Document {
    text: String,
    /// Relative paths in the file begin here.
    pub(super) base: PathBuf,
    pub(super) root: Node,
}

impl Document {
    pub(super) fn parse(text: &str, language: Language, base: &Path) -> Result<Self, JobFileError> {
        Ok(Self {
            root: Node::parse(text, language)?,
            text: text.to_owned(),
            base: base.to_owned(),
        })
    }

    /// `message` about what stands at `path`.
    pub(super) fn error(&self, path: &[String], message: impl Into<String>) -> JobFileError {
        JobFileError::new(self.place(path), message)
    }

    /// Where the value at `path` stands.
    pub(super) fn place(&self, path: &[String]) -> Place {
        Place::at(&self.text, self.root.start_of(path)).with_key(path)
    }

    /// The struct that `node`, which stands at `path`, holds. `also` are keys that may stand
    /// there too, for the message about one that may not.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        path: &[String],
        node: &Node,
        also: &[&str],
    ) -> Result<T, JobFileError> {
        read(node).map_err(|misfit| self.misfit(path, misfit, also))
    }

    /// What was read at `path` does not fit.
    pub(super) fn misfit(&self, path: &[String], misfit: Misfit, also: &[&str]) -> JobFileError {
        let inner = misfit.path.into_iter();
        let path: KeyPath = path.iter().cloned().chain(inner).collect();
        let message = match misfit.kind {
            MisfitKind::Other(message) => message,
            MisfitKind::UnknownKey { key, known } => {
                let more = also.iter().filter(|key| !known.contains(key));
                let known: Vec<&str> = known.iter().chain(more).copied().collect();
                format!("unknown key `{key}`{}", did_you_mean(&key, &known))
            }
        };
        self.error(&path, message)
    }
}

/// `path` with `keys` behind it.
pub(super) fn under(path: &[String], keys: &[&str]) -> KeyPath {
    let keys = keys.iter().map(|key| (*key).to_owned());
    path.iter().cloned().chain(keys).collect()
}
