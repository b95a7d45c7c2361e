//! What a plan knows of a source or a sink before it runs.

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use crate::operator::{Sink, Source, Subtask};
use crate::partition::Parallelism;

use super::{ConnectError, ConnectorStats, ListedFile};

/// A source of a plan. Making one reads what is needed to know its schema and its splits;
/// nothing is run.
pub trait SourceConnector: Send + Sync {
    /// The schema of every batch that it emits: column 0 is `event_time`.
    fn schema(&self) -> SchemaRef;

    /// Whether its rows can have an event time; where not, column 0 is null in all of them.
    fn has_event_time(&self) -> bool {
        true
    }

    /// How many subtasks have anything to read; none where any number has. Further subtasks
    /// end at once.
    fn parallelism_max(&self) -> Option<usize> {
        None
    }

    /// The files that it reads, as far as they are known.
    fn paths_read(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Patterns of further files that it reads when they come, as `glob` takes them.
    fn patterns_watched(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it ends by itself, as far as can be known. Default: unless it waits for new
    /// files.
    fn is_bounded(&self) -> bool {
        self.patterns_watched().is_empty()
    }

    /// The file that it writes rows to that it leaves out, if there is one.
    fn bad_rows_path(&self) -> Option<PathBuf> {
        None
    }

    /// What it reads, in one line for people: the connector, and files or numbers.
    fn describe(&self) -> String;

    /// Bytes that each subtask may hold beside the worker, one batch more not counted.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// What its subtasks have read so far, together.
    fn stats(&self) -> ConnectorStats;

    /// The source that subtask `subtask` runs. All subtasks together read every row once.
    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>>;
}

/// A sink of a plan. Making one checks what can be checked before anything runs.
pub trait SinkConnector: Send + Sync {
    /// Makes sure that batches of `schema` can be written by `parallelism` subtasks.
    ///
    /// # Errors
    /// When they cannot; the error names the option or the file.
    fn validate(&self, _schema: &SchemaRef, _parallelism: u32) -> Result<(), ConnectError> {
        Ok(())
    }

    /// The files that `parallelism` subtasks write.
    fn paths_written(&self, _parallelism: Parallelism) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Where it writes to, in one line for people: the connector, and the file if there is one.
    fn describe(&self) -> String;

    /// Bytes that each subtask may hold beside the worker, one batch more not counted.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// What its subtasks have written so far, together.
    fn stats(&self) -> ConnectorStats;

    /// The sink that subtask `subtask` runs, for batches of `schema`.
    fn build(&self, subtask: &Subtask, schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>>;
}

/// The paths of a file source: one, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a path, or a list of paths")]
pub enum Paths {
    /// One path or pattern.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Paths {
    /// The paths, in their order.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Several(paths) => paths,
        }
    }
}

impl From<&str> for Paths {
    fn from(path: &str) -> Self {
        Self::One(path.to_owned())
    }
}

/// Files for people: one by its name, several by the first and their number.
pub(super) fn describe_files(connector: &str, files: &[ListedFile]) -> String {
    match files {
        [] => format!("{connector}: no file"),
        [only] => format!("{connector}: {}", only.path.display()),
        [first, rest @ ..] => {
            let (first, more) = (first.path.display(), rest.len());
            format!("{connector}: {first} and {more} more files")
        }
    }
}

/// The path that subtask `subtask` of a file sink writes: the path itself where there is one
/// subtask, and `name-<index>.ext` where there are several.
pub fn path_of_subtask(path: &Path, subtask: &Subtask) -> PathBuf {
    numbered(path, subtask.index, subtask.parallelism)
}

/// The paths that all of `parallelism` subtasks of a file sink write.
pub(super) fn paths_of_subtasks(path: &Path, parallelism: Parallelism) -> Vec<PathBuf> {
    let paths = (0..parallelism.subtasks()).map(|index| numbered(path, index, parallelism));
    paths.collect()
}

fn numbered(path: &Path, index: u32, parallelism: Parallelism) -> PathBuf {
    if parallelism == Parallelism::ONE {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{index}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
