//! What a plan knows of a source or a sink before it runs.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::operator::{Sink, Source, Subtask};
use crate::partition::Parallelism;

use super::{ConnectError, ConnectorStats};

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

    /// Whether a job that was stopped can go on with it where a checkpoint was made. Where not,
    /// [`Source::restore`] fails and says why.
    fn can_resume(&self) -> bool {
        true
    }

    /// The source that subtask `subtask` runs. All subtasks together read every row once.
    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>>;
}

/// A source connector that is another one, under a name and with a constructor of its own.
pub(crate) trait SourceForm: Send + Sync {
    /// What it is.
    fn form(&self) -> &dyn SourceConnector;
}

impl<C: SourceForm> SourceConnector for C {
    fn schema(&self) -> SchemaRef {
        self.form().schema()
    }

    fn has_event_time(&self) -> bool {
        self.form().has_event_time()
    }

    fn parallelism_max(&self) -> Option<usize> {
        self.form().parallelism_max()
    }

    fn paths_read(&self) -> Vec<PathBuf> {
        self.form().paths_read()
    }

    fn patterns_watched(&self) -> Vec<String> {
        self.form().patterns_watched()
    }

    fn is_bounded(&self) -> bool {
        self.form().is_bounded()
    }

    fn bad_rows_path(&self) -> Option<PathBuf> {
        self.form().bad_rows_path()
    }

    fn describe(&self) -> String {
        self.form().describe()
    }

    fn memory_bytes(&self) -> usize {
        self.form().memory_bytes()
    }

    fn stats(&self) -> ConnectorStats {
        self.form().stats()
    }

    fn can_resume(&self) -> bool {
        self.form().can_resume()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        self.form().build(subtask)
    }
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

/// A sink connector that is another one, under a name and with a constructor of its own.
pub(crate) trait SinkForm: Send + Sync {
    /// What it is.
    fn form(&self) -> &dyn SinkConnector;
}

impl<C: SinkForm> SinkConnector for C {
    fn validate(&self, schema: &SchemaRef, parallelism: u32) -> Result<(), ConnectError> {
        self.form().validate(schema, parallelism)
    }

    fn paths_written(&self, parallelism: Parallelism) -> Vec<PathBuf> {
        self.form().paths_written(parallelism)
    }

    fn describe(&self) -> String {
        self.form().describe()
    }

    fn memory_bytes(&self) -> usize {
        self.form().memory_bytes()
    }

    fn stats(&self) -> ConnectorStats {
        self.form().stats()
    }

    fn build(&self, subtask: &Subtask, schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>> {
        self.form().build(subtask, schema)
    }
}
