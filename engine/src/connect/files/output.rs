//! A sink that writes a file for each subtask, whatever the format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::connect::side::writer::{AHEAD_BYTES_MAX, BatchWriter, WriterSink};
use crate::connect::{ConnectError, ConnectorStats, SinkConnector};
use crate::operator::{Sink, Subtask};
use crate::partition::Parallelism;

use super::pending::require_folder;

/// What a format adds to a sink of files.
pub(crate) trait OutputFormat: Send + Sync + 'static {
    /// The connector, as job files name it.
    const CONNECTOR: &'static str;

    /// Makes sure that batches of `schema` can be written.
    fn validate(&self, _schema: &SchemaRef) -> Result<(), ConnectError> {
        Ok(())
    }

    /// Starts to write what is to be the file `path`. Called on the side thread.
    fn start(&self, path: &Path, schema: &SchemaRef) -> Result<Box<dyn BatchWriter>, ConnectError>;
}

/// A sink that writes a file for each subtask.
#[derive(Clone, Debug)]
pub(crate) struct FileSink<F> {
    path: PathBuf,
    format: Arc<F>,
    stats: ConnectorStats,
}

impl<F: OutputFormat> FileSink<F> {
    /// A sink that writes to `path`, which begins at `base` if it is relative.
    pub(crate) fn new(path: &Path, base: &Path, format: F) -> Result<Self, ConnectError> {
        let path = base.join(path);
        require_folder(&path)?;
        Ok(Self {
            path,
            format: Arc::new(format),
            stats: ConnectorStats::default(),
        })
    }
}

impl<F: OutputFormat> SinkConnector for FileSink<F> {
    fn validate(&self, schema: &SchemaRef, _parallelism: u32) -> Result<(), ConnectError> {
        self.format.validate(schema)
    }

    fn paths_written(&self, parallelism: Parallelism) -> Vec<PathBuf> {
        let subtasks = 0..parallelism.subtasks();
        subtasks
            .map(|index| numbered(&self.path, index, parallelism))
            .collect()
    }

    fn describe(&self) -> String {
        format!("{}: {}", F::CONNECTOR, self.path.display())
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask, schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>> {
        let path = path_of_subtask(&self.path, subtask);
        let target = path.display().to_string();
        let (format, schema) = (self.format.clone(), schema.clone());
        let start = move || format.start(&path, &schema);
        Box::new(WriterSink::new(target, Box::new(start), self.stats.clone()))
    }
}

/// The path that subtask `subtask` of a file sink writes: the path itself where there is one
/// subtask, and `name-<index>.ext` where there are several.
pub fn path_of_subtask(path: &Path, subtask: &Subtask) -> PathBuf {
    numbered(path, subtask.index, subtask.parallelism)
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
