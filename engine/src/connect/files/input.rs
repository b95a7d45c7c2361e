//! The files of a source: those that are there, or those that come.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::connect::ConnectError;

use super::list::{Paths, describe_files, full_pattern, list_files};
use super::listed::ListedFile;

/// The files that a source was asked to read.
#[derive(Clone, Debug)]
pub(crate) struct FileInput {
    pub(super) base: PathBuf,
    pub(super) patterns: Vec<String>,
    /// Those that were there when the job was planned.
    files: Vec<ListedFile>,
    /// How often to look for more; never, and the input ends with those that there are.
    pub(super) watch: Option<Duration>,
}

impl FileInput {
    /// Lists the files that `paths` name, from `base` on. If they are to be watched, every
    /// `watch_ms`, there may be none yet.
    pub(crate) fn list(
        base: &Path,
        paths: &Paths,
        watch_ms: Option<u64>,
    ) -> Result<Self, ConnectError> {
        if watch_ms == Some(0) {
            return Err(ConnectError::option("watch_ms", "is 0; give 1 or more"));
        }
        let files = match list_files(base, paths.as_slice()) {
            Err(ConnectError::NoMatch { .. }) if watch_ms.is_some() => Vec::new(),
            files => files?,
        };
        Ok(Self {
            base: base.to_owned(),
            patterns: paths.as_slice().to_vec(),
            files,
            watch: watch_ms.map(Duration::from_millis),
        })
    }

    /// The files that were there when the job was planned.
    pub(crate) fn files(&self) -> &[ListedFile] {
        &self.files
    }

    /// The patterns of the files that may come.
    pub(super) fn patterns_watched(&self) -> Vec<String> {
        let patterns = self.patterns.iter().filter(|_| self.watch.is_some());
        let full = patterns.map(|pattern| full_pattern(&self.base, pattern));
        full.collect()
    }

    /// The files for people.
    pub(super) fn describe(&self, connector: &str) -> String {
        match self.watch {
            None => describe_files(connector, &self.files),
            Some(_) => format!("{connector}: {}, watched", self.patterns.join(", ")),
        }
    }
}
