//! A task in a worker, with a wall around it: a panic is a failure of that task.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringway_shm::Bell;

use crate::clock::{Clock, ProcessingTime};
use crate::task::{Step, Task, TaskCommand, TaskError, TaskOutcome, TaskReport, TaskState};

/// A task, until it is over.
pub(super) struct TaskSlot {
    task: Option<Box<dyn Task>>,
    /// When it is to be stepped again, as of its last step.
    next_timer: Option<ProcessingTime>,
}

impl TaskSlot {
    pub(super) fn new(task: Box<dyn Task>) -> Self {
        Self {
            task: Some(task),
            next_timer: None,
        }
    }

    pub(super) fn open(&mut self, clock: Clock, bell: &Bell) -> Result<(), TaskError> {
        let Some(task) = self.task.as_mut() else {
            return Ok(());
        };
        match guarded(&mut **task, |task| task.open(clock, bell)) {
            Ok(opened) => opened,
            Err(error) => Err(error),
        }
    }

    /// A step of the task; `None` if it is over.
    pub(super) fn step(&mut self) -> Option<Step> {
        let task = self.task.as_mut()?;
        let stepped = guarded(&mut **task, |task| (task.step(), task.next_timer()));
        let (step, next_timer) = stepped.unwrap_or_else(|error| (failed(error), None));
        self.next_timer = next_timer;
        Some(step)
    }

    /// Gives the task a command, if it is not over.
    pub(super) fn command(&mut self, command: &TaskCommand) -> Result<(), TaskError> {
        let Some(task) = self.task.as_mut() else {
            return Ok(());
        };
        guarded(&mut **task, |task| task.command(command))
    }

    pub(super) fn next_timer(&self) -> Option<ProcessingTime> {
        self.next_timer
    }

    pub(super) fn report(&self) -> Option<TaskReport> {
        self.task.as_ref().map(|task| task.report())
    }

    /// Takes the task out and drops it. A panic while it is dropped changes nothing any more.
    pub(super) fn finish(&mut self) -> Option<TaskReport> {
        let task = self.task.take()?;
        self.next_timer = None;
        let report = task.report();
        if catch_unwind(AssertUnwindSafe(|| drop(task))).is_err() {
            tracing::warn!(
                task = report.name,
                "a part of the task panicked when it was dropped"
            );
        }
        Some(report)
    }
}

fn failed(error: TaskError) -> Step {
    Step {
        work: 1,
        state: TaskState::Finished(TaskOutcome::Failed(error)),
    }
}

/// Calls the task. If it panics, its outputs fail with the panic's message and the name of the
/// operator that was running; the task is not called again.
fn guarded<T>(task: &mut dyn Task, call: impl FnOnce(&mut dyn Task) -> T) -> Result<T, TaskError> {
    // A task that panicked is only told to fail its outputs and dropped, so no broken
    // invariant inside it is relied on.
    catch_unwind(AssertUnwindSafe(|| call(task))).map_err(|panic| {
        let error = TaskError::Panicked {
            operator: task.running(),
            message: panic_text(&*panic),
        };
        let abandoned = catch_unwind(AssertUnwindSafe(|| task.abandon(&error.to_string())));
        if abandoned.is_err() {
            tracing::warn!(%error, "the outputs of the task are dropped: they cannot be failed");
        }
        error
    })
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is not text".to_owned())
}
