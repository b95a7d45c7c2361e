//! What every task has behind its head: the stages of its chain and its side outputs.

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::{Clock, ProcessingTime};
use crate::element::{Barrier, Drain, StreamElement, Watermark};
use crate::error::OperatorError;
use crate::operator::{Progress, StepScope, Subtask};
use crate::output::OutputError;

use super::side_outlet::SideOutlet;
use super::stage::{Closing, Stage, StageItem};
use super::{Step, TaskCommand, TaskError, TaskOutcome, TaskReport, TaskState};

/// The stages of a task behind its head, with its side outputs and the scope of its steps.
pub struct Chain<B: Payload> {
    stage: Box<dyn Stage<B>>,
    /// The subtasks of the chain, head first, by the position that errors name.
    subtasks: Vec<Subtask>,
    name: String,
    sides: Vec<Box<dyn SideOutlet>>,
    step: StepScope,
    phase: Phase,
    last_stops: bool,
    /// A timer fired in this step.
    fired: bool,
    /// The last step left something that waits for room.
    blocked: bool,
}

/// How far a chain is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// The end (or the stop) was pushed; what is unfinished is being finished.
    Ending {
        stopped: bool,
    },
    Closed,
}

impl<B: Payload> Chain<B> {
    /// A chain of these stages. `subtasks` names the operators from the head on.
    pub fn new(
        stage: Box<dyn Stage<B>>,
        subtasks: Vec<Subtask>,
        sides: Vec<Box<dyn SideOutlet>>,
    ) -> Self {
        let mut step = StepScope::new(Clock::start());
        sides.iter().for_each(|side| side.register(&mut step.sides));
        let names: Vec<String> = subtasks
            .iter()
            .map(|subtask| subtask.name.clone())
            .collect();
        let index = subtasks.first().map_or(0, |subtask| subtask.index);
        let name = format!("{}[{index}]", names.join(" > "));
        Self {
            stage,
            subtasks,
            name,
            sides,
            step,
            phase: Phase::Running,
            last_stops: false,
            fired: false,
            blocked: false,
        }
    }

    /// The chain's name: its operators and the number of the subtask.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The subtask at the head of the chain.
    ///
    /// # Panics
    /// When the chain was built without a subtask.
    pub fn head(&self) -> &Subtask {
        self.subtasks
            .first()
            .expect("a chain has at least one operator")
    }

    /// Opens every stage.
    ///
    /// # Errors
    /// When one cannot start.
    pub fn open(&mut self, clock: Clock, bell: &Bell) -> Result<(), TaskError> {
        self.step.clock = clock;
        self.stage
            .open(bell)
            .map_err(|(position, error)| self.blame(position, error))
    }

    /// Reads the time for a new step.
    pub fn begin_step(&mut self) {
        self.step.processing_time = self.step.clock.processing_time(self.step.clock.now());
    }

    /// The clock of the job.
    pub fn clock(&self) -> Clock {
        self.step.clock
    }

    /// The scope of the step, for the head.
    pub fn scope(&mut self) -> &mut StepScope {
        &mut self.step
    }

    /// The first stage and the scope of the step, for a head that emits into it.
    pub fn parts(&mut self) -> (&mut dyn Stage<B>, &mut StepScope) {
        self.last_stops = false;
        (&mut *self.stage, &mut self.step)
    }

    /// Gives an element to the first stage.
    pub fn push(&mut self, element: StreamElement<B>) {
        self.last_stops = matches!(&element, StreamElement::Drain(drain) if drain.stops());
        self.stage.push(StageItem::Element(element), &mut self.step);
    }

    /// Passes a barrier ahead of everything unfinished.
    pub fn overtake(&mut self, barrier: Barrier) {
        self.last_stops = false;
        self.stage.overtake(barrier, &mut self.step);
    }

    /// The stream has ended: `on_end` runs down the chain.
    pub fn end(&mut self) {
        self.phase = Phase::Ending { stopped: false };
        self.stage.push(StageItem::End, &mut self.step);
    }

    /// The stream ends as a source's does: nothing follows, so the watermark is MAX.
    pub fn end_source(&mut self) {
        self.push(StreamElement::Watermark(Watermark::MAX));
        self.end();
    }

    /// The stream is stopped in order: no end, nothing becomes final.
    pub fn stop(&mut self) {
        if !self.last_stops {
            let drain = Drain::stop(self.head().index);
            self.push(StreamElement::Drain(drain));
        }
        self.phase = Phase::Ending { stopped: true };
    }

    /// Whether the head may feed the chain.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Whether the head should stop feeding the chain in this step.
    pub fn is_full(&self) -> bool {
        self.stage.is_full() || self.step.sides.is_full() || self.step.has_failed()
    }

    /// Goes on with what earlier steps left, and fires the timers that are due once nothing is
    /// left. `None`: the head may feed the chain. Otherwise the step is over with this.
    pub fn catch_up(&mut self) -> Option<Step> {
        if let Some(step) = self.settle(0) {
            return Some(step);
        }
        let progress = self.stage.resume(&mut self.step);
        if progress == Progress::Done && !self.step.has_failed() && self.is_running() {
            self.fired = self.stage.fire_timers(&mut self.step);
            self.last_stops &= !self.fired;
            return None;
        }
        let waits = self.stage.is_waiting();
        if let Some(step) = self.settle(usize::from(!waits)) {
            return Some(step);
        }
        match (progress, self.phase) {
            (Progress::Done, Phase::Ending { stopped }) => Some(self.finish(stopped)),
            _ if waits => {
                self.blocked = true;
                Some(Step {
                    work: 0,
                    state: TaskState::Blocked,
                })
            }
            _ => Some(Step {
                work: 1,
                state: TaskState::Running,
            }),
        }
    }

    /// Ends a step that did `work`: moves what was produced to the edges.
    pub fn end_step(&mut self, work: usize) -> Step {
        let work = work + usize::from(std::mem::take(&mut self.fired));
        self.settle(work).unwrap_or(Step {
            work,
            state: TaskState::Running,
        })
    }

    /// Closes the outputs because the input failed in this way.
    pub fn fail(&mut self, error: TaskError) -> Step {
        let reason = Closing::Fail(error.to_string());
        self.close(&reason, TaskOutcome::Failed(error))
    }

    /// Closes the outputs because the job is cancelled.
    pub fn cancel(&mut self) -> Step {
        self.close(&Closing::Cancel, TaskOutcome::Cancelled)
    }

    /// Closes the outputs though nothing has ended, because nobody wants more.
    pub fn leave(&mut self) -> Step {
        self.close(&Closing::Cancel, TaskOutcome::Ended)
    }

    /// Whether nobody wants what the chain would still emit.
    pub fn is_closed(&self) -> bool {
        self.stage.is_closed() && self.sides.is_empty()
    }

    /// Takes a command that is not the head's business.
    pub fn command(&mut self, command: &TaskCommand) {
        if let TaskCommand::Commit(id) = command {
            self.stage.commit(*id, &mut self.step);
        }
    }

    /// When the task is to be stepped again though nothing has arrived. No timer fires while the
    /// task is blocked, nor once the stream has ended or was stopped: its last element has been
    /// emitted.
    pub fn next_timer(&self) -> Option<ProcessingTime> {
        let can_fire = self.is_running() && !self.blocked;
        self.stage.next_timer().filter(|_| can_fire)
    }

    /// The operator that is running.
    pub fn running(&self) -> String {
        self.subtask_name(self.step.running)
    }

    /// The outputs fail, whatever state a panic left the stages in.
    pub fn abandon(&mut self, reason: &str) {
        self.close_edges(&Closing::Fail(reason.to_owned()));
    }

    /// Adds what the chain has to report.
    pub fn report(&self, report: &mut TaskReport) {
        report.name.clone_from(&self.name);
        report.uid.clone_from(&self.head().uid);
        self.stage.report(report);
        report.checkpoints_lost += self.step.checkpoints_lost();
        report.discarded_rows += self.step.sides.discarded_rows();
        self.sides.iter().for_each(|side| side.report(report));
    }

    /// Moves what was produced to the edges; a step when this one is over: the task failed, or
    /// its outputs have no room.
    fn settle(&mut self, work: usize) -> Option<Step> {
        let mut flushed = self.stage.flush(&mut self.step);
        for side in &mut self.sides {
            match side.flush(&mut self.step) {
                Ok(all) => flushed &= all,
                Err(error) => self.step.fail(0, error.into()),
            }
        }
        if let Some((position, error)) = self.step.take_error() {
            let error = self.blame(position, error);
            return Some(self.fail(error));
        }
        self.blocked = !flushed;
        (!flushed).then_some(Step {
            work,
            state: TaskState::Blocked,
        })
    }

    fn finish(&mut self, stopped: bool) -> Step {
        let outcome = if stopped {
            TaskOutcome::Stopped
        } else {
            TaskOutcome::Ended
        };
        let step = self.close(&Closing::Finish, outcome);
        match self.step.take_error() {
            Some((position, error)) => Step {
                state: TaskState::Finished(TaskOutcome::Failed(self.blame(position, error))),
                ..step
            },
            None => step,
        }
    }

    fn close(&mut self, closing: &Closing, outcome: TaskOutcome) -> Step {
        self.close_edges(closing);
        Step {
            work: 1,
            state: TaskState::Finished(outcome),
        }
    }

    fn close_edges(&mut self, closing: &Closing) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            self.stage.close(closing, &mut self.step);
            for side in &mut self.sides {
                if let Err(error) = side.close(closing) {
                    self.step.fail(0, error.into());
                }
            }
        }
    }

    fn blame(&self, position: usize, error: OperatorError) -> TaskError {
        match error.cause::<OutputError>() {
            Some(OutputError::Edge(failure)) => TaskError::Edge(failure.clone()),
            Some(OutputError::Partition(message)) => TaskError::Partition {
                operator: self.subtask_name(position),
                message: message.clone(),
            },
            None => TaskError::Operator {
                operator: self.subtask_name(position),
                message: error.to_string(),
            },
        }
    }

    fn subtask_name(&self, position: usize) -> String {
        self.subtasks
            .get(position)
            .map_or_else(|| self.name.clone(), Subtask::to_string)
    }
}
