//! A task: one subtask as a worker runs it, a step at a time.
//!
//! A task is a head (a source, or an input gate) and a chain of stages: operators that hand
//! batches to each other by call, then the outputs or a sink. The single match on the kind
//! of element is where the head feeds the chain; operators see batches and watermarks.

mod chain;
mod gate_task;
mod operator_stage;
mod output_stage;
mod report;
mod side_outlet;
mod sink_stage;
mod source_task;
mod stage;

pub use chain::Chain;
pub use gate_task::GateTask;
pub use operator_stage::OperatorStage;
pub use output_stage::OutputStage;
pub use report::{Latency, OperatorReport, TaskReport};
pub use side_outlet::{SideOutlet, TypedSideOutlet};
pub use sink_stage::SinkStage;
pub use source_task::SourceTask;
pub use stage::{Closing, Downstream, Stage, StageItem};

use std::fmt;

use ringway_shm::Bell;

use crate::clock::{Clock, ProcessingTime};
use crate::edge::Failure;
use crate::element::Barrier;

/// One subtask, run in steps by a worker.
pub trait Task: Send {
    /// The subtask's name, such as `window[1]`; for a chain all its operators.
    fn name(&self) -> &str;

    /// Called once on the worker's thread before the first step. `bell` wakes the worker.
    ///
    /// # Errors
    /// When an operator cannot start: the job does not start then.
    fn open(&mut self, clock: Clock, bell: &Bell) -> Result<(), TaskError>;

    /// Does a bounded amount of work.
    fn step(&mut self) -> Step;

    /// Takes a command. It takes effect at once, also while the task is blocked on its output.
    fn command(&mut self, command: &TaskCommand);

    /// When the task is to be stepped again though nothing has arrived.
    fn next_timer(&self) -> Option<ProcessingTime>;

    /// What the task has to report.
    fn report(&self) -> TaskReport;

    /// The task will not be stepped again, because it panicked: its outputs fail.
    fn abandon(&mut self, reason: &str);

    /// The operator that was running when the task panicked.
    fn running(&self) -> String;
}

/// What a step did.
#[derive(Debug)]
#[must_use]
pub struct Step {
    /// Elements taken, emitted or moved. A worker without any in all its tasks is idle.
    pub work: usize,
    /// Whether the task goes on.
    pub state: TaskState,
}

/// Whether a task goes on.
#[derive(Debug)]
pub enum TaskState {
    /// It may be stepped again.
    Running,
    /// It waits for room on its outputs.
    Blocked,
    /// It is over.
    Finished(TaskOutcome),
}

/// How a task ended.
#[derive(Debug)]
pub enum TaskOutcome {
    /// Its input or source ended and everything was passed on.
    Ended,
    /// It was stopped in order; its stream is not final.
    Stopped,
    /// It was cancelled, or its input was.
    Cancelled,
    /// It failed.
    Failed(TaskError),
}

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// An operator, source or sink returned an error.
    #[error("{operator} failed: {message}")]
    Operator {
        /// The operator's name and subtask.
        operator: String,
        /// What it said.
        message: String,
    },
    /// An operator, source or sink panicked.
    #[error("{operator} panicked: {message}")]
    Panicked {
        /// The operator's name and subtask.
        operator: String,
        /// The panic's message.
        message: String,
    },
    /// An edge failed. The cause is at its other end.
    #[error("{0}")]
    Edge(#[from] Failure),
    /// What an operator emitted cannot be partitioned.
    #[error("{operator}: {message}")]
    Partition {
        /// The operator's name and subtask.
        operator: String,
        /// What is wrong.
        message: String,
    },
}

impl TaskError {
    /// Whether this failure began here, and not at the other end of an edge.
    pub fn is_cause(&self) -> bool {
        !matches!(self, Self::Edge(_))
    }
}

/// What a job tells its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskCommand {
    /// Stop now: no end, no flush, no commit.
    Cancel,
    /// Sources: behave as if the input had ended here.
    End,
    /// Sources: stop after what was emitted, without an end.
    Stop,
    /// Sources: a checkpoint begins here.
    Trigger(Barrier),
    /// A checkpoint was given up.
    Abort(u64),
    /// A checkpoint is decided: sinks commit.
    Commit(u64),
}

impl fmt::Display for TaskOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("ended"),
            Self::Stopped => f.write_str("stopped"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Failed(error) => write!(f, "failed: {error}"),
        }
    }
}
