//! The files of a source: those that are there, or those that come.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;

use crate::operator::{Source, Subtask};

use super::connector::describe_files;
use super::split::full_pattern;
use super::watch::WatchJob;
use super::{
    ConnectError, ConnectorStats, ListedFile, Paths, Split, SplitFormat, SplitInput, SplitSource,
    WatermarkOptions, assigned, list_files,
};

/// Files that are split by file.
#[derive(Clone, Debug)]
pub(super) struct FileInput {
    base: PathBuf,
    patterns: Vec<String>,
    /// Those that were there when the job was planned.
    files: Arc<[ListedFile]>,
    /// How often to look for more; never, and the input ends with those that there are.
    watch: Option<Duration>,
}

impl FileInput {
    /// Lists the files that `paths` name, from `base` on. If they are to be watched, every
    /// `watch_ms`, there may be none yet.
    pub(super) fn list(
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
            files: files.into(),
            watch: watch_ms.map(Duration::from_millis),
        })
    }

    /// The files that were there when the job was planned.
    pub(super) fn files(&self) -> &[ListedFile] {
        &self.files
    }

    /// Where those are.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// The patterns of the files that may come.
    pub(super) fn patterns_watched(&self) -> Vec<String> {
        let patterns = self.patterns.iter().filter(|_| self.watch.is_some());
        let full = patterns.map(|pattern| full_pattern(&self.base, pattern));
        full.collect()
    }

    /// How many subtasks have anything to read.
    pub(super) fn parallelism_max(&self) -> Option<usize> {
        self.watch.is_none().then_some(self.files.len())
    }

    /// The files for people.
    pub(super) fn describe(&self, connector: &str) -> String {
        match self.watch {
            None => describe_files(connector, &self.files),
            Some(_) => format!("{connector}: {}, watched", self.patterns.join(", ")),
        }
    }

    /// The source that subtask `subtask` runs.
    pub(super) fn build(
        &self,
        subtask: &Subtask,
        format: Arc<dyn SplitFormat>,
        stats: ConnectorStats,
        watermark: Option<WatermarkOptions>,
    ) -> Box<dyn Source<RecordBatch>> {
        let parallelism = subtask.parallelism.subtasks();
        if let Some(interval) = self.watch {
            let job = WatchJob {
                format,
                base: self.base.clone(),
                patterns: self.patterns.clone(),
                interval,
                index: subtask.index,
                parallelism,
            };
            return Box::new(SplitSource::of_job(Box::new(job), stats, watermark));
        }
        let splits: Vec<Split> = (0..self.files.len()).map(Split::whole).collect();
        let input = SplitInput {
            format,
            files: self.files.clone(),
            splits: assigned(&splits, subtask.index, parallelism),
            stats,
        };
        Box::new(SplitSource::new(input, watermark))
    }
}
