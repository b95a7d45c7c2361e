//! A worker: one thread on one core, and the tasks it steps.
//!
//! Its duty cycle is [`Worker::turn`]: take commands, step every task that is not over, tell
//! what happened. What hosts the cycle (a plain thread, or an executor that shares it with
//! file I/O) decides between turns whether to go on, to yield or to park; the worker does not
//! know which host it has. Nothing that runs here blocks.

mod glommio_host;
mod host;
mod idle;
mod slot;
mod thread_host;

pub use host::{Host, HostError, HostInUse, HostKind, HostedWorker, WorkerThread};
pub use idle::{IdleAction, IdlePolicy, Idler};
pub(crate) use slot::panic_text;
pub use thread_host::run_on_thread;

use std::collections::VecDeque;

use ringway_shm::{Bell, Consumer, PopError, Producer, PushError};

use crate::clock::{Clock, Monotonic};
use crate::edge::remote::Links;
use crate::task::{Task, TaskCommand, TaskError, TaskOutcome, TaskReport};

use slot::TaskSlot;

/// What a worker is told.
#[derive(Clone, Debug)]
pub enum WorkerCommand {
    /// Everything is open everywhere: begin.
    Start,
    /// For all its tasks.
    Task(TaskCommand),
    /// Report on all tasks now.
    Report,
}

/// What a worker tells.
#[derive(Debug)]
pub enum WorkerEvent {
    /// All tasks are open.
    Opened,
    /// A task is over.
    Finished {
        /// How it ended.
        outcome: TaskOutcome,
        /// What it has to report for the last time.
        report: Box<TaskReport>,
    },
    /// The answer to [`WorkerCommand::Report`]: the tasks that are not over.
    Report(Vec<TaskReport>),
}

/// A core's tasks and their duty cycle.
pub struct Worker {
    tasks: Vec<TaskSlot>,
    running: usize,
    bell: Bell,
    clock: Clock,
    commands: Consumer<WorkerCommand>,
    events: Producer<WorkerEvent>,
    /// The connections of its tasks' edges, where there are any.
    links: Option<Links>,
    /// Events that found the ring full. Reports are not kept: the next one says more.
    unsent: VecDeque<WorkerEvent>,
    started: bool,
    orphaned: bool,
}

impl Worker {
    /// A worker for `tasks`. `bell` wakes it; it is the consumer's bell of `commands`, and of
    /// the receiving half of every edge into its tasks.
    pub fn new(
        tasks: Vec<Box<dyn Task>>,
        clock: Clock,
        bell: Bell,
        commands: Consumer<WorkerCommand>,
        events: Producer<WorkerEvent>,
    ) -> Self {
        let running = tasks.len();
        let tasks = tasks.into_iter().map(TaskSlot::new).collect();
        Self {
            tasks,
            running,
            bell,
            clock,
            commands,
            events,
            links: None,
            unsent: VecDeque::new(),
            started: false,
            orphaned: false,
        }
    }

    /// The same worker, which also drives connections. Their bell is that of the worker, so
    /// they are made from [`links_with`](crate::edge::remote::links_with) of it; and it has a
    /// descriptor.
    pub fn with_links(mut self, links: Links) -> Self {
        self.links = Some(links);
        self
    }

    /// Opens every task. Called once, on the thread that will turn the worker.
    ///
    /// A task that cannot open has failed; the others are told by the job. No task is stepped
    /// before [`WorkerCommand::Start`], so that nothing has run when one cannot open.
    pub fn open(&mut self) {
        for index in 0..self.tasks.len() {
            if let Err(error) = self.tasks[index].open(self.clock, &self.bell) {
                self.finish(index, TaskOutcome::Failed(error));
            }
        }
        self.tell(WorkerEvent::Opened);
    }

    /// One turn of the duty cycle: commands, a step of every task, and what is to be done on
    /// connections. Returns the work done: 0 means that nothing can be done until the bell
    /// rings, a connection has something, or a timer is due.
    pub fn turn(&mut self) -> usize {
        let mut work = self.obey() + self.send_unsent();
        if self.started {
            work += self.step_tasks();
        }
        work + self.links.as_mut().map_or(0, Links::turn)
    }

    fn step_tasks(&mut self) -> usize {
        let mut work = 0;
        for index in 0..self.tasks.len() {
            let Some(step) = self.tasks[index].step() else {
                continue;
            };
            work += step.work;
            if let crate::task::TaskState::Finished(outcome) = step.state {
                self.finish(index, outcome);
                work += 1;
            }
        }
        work
    }

    /// Whether every task is over, everything was told, and what the tasks have sent has
    /// arrived.
    pub fn is_done(&self) -> bool {
        self.running == 0
            && (self.unsent.is_empty() || self.events.is_abandoned())
            && !self.links.as_ref().is_some_and(Links::is_needed)
    }

    /// The bell that wakes the worker.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The time now, as the job's clock has it.
    pub fn now(&self) -> Monotonic {
        self.clock.now()
    }

    /// How long the worker may sleep at most: until the next timer of a task, and never longer
    /// than [`PARK_TIME_MAX`](crate::limits::PARK_TIME_MAX).
    pub fn sleep_max(&self) -> std::time::Duration {
        let processing_time = self.clock.processing_time(self.clock.now());
        let next = self.tasks.iter().filter_map(TaskSlot::next_timer).min();
        let until = next.map(|at| u64::try_from(at.saturating_sub(processing_time)).unwrap_or(0));
        let max = crate::limits::PARK_TIME_MAX;
        let links = self.links.as_ref().and_then(Links::next_timeout);
        let max = links.map_or(max, |timeout| timeout.min(max));
        until.map_or(max, |ms| std::time::Duration::from_millis(ms).min(max))
    }

    /// Sleeps until the bell rings or a connection has something, at most for
    /// [`sleep_max`](Self::sleep_max). The bell was armed before the last turn.
    fn sleep(&mut self) {
        let limit = self.sleep_max();
        match &mut self.links {
            Some(links) => links.wait(limit),
            None => drop(self.bell.park(Some(limit))),
        }
    }

    fn obey(&mut self) -> usize {
        let mut obeyed = 0;
        loop {
            match self.commands.try_pop() {
                Ok(WorkerCommand::Start) => self.started = true,
                Ok(WorkerCommand::Task(command)) => self.command(&command),
                Ok(WorkerCommand::Report) => {
                    let reports = self.tasks.iter().filter_map(TaskSlot::report).collect();
                    // A report that finds no room is dropped: the next one says more.
                    drop(self.events.try_push(WorkerEvent::Report(reports)));
                }
                Err(PopError::Empty) => return obeyed,
                Err(PopError::Finished | PopError::Abandoned) => {
                    self.cancel_orphans();
                    return obeyed;
                }
            }
            obeyed += 1;
        }
    }

    fn command(&mut self, command: &TaskCommand) {
        // What is cancelled before it has begun must still be stepped to its end.
        self.started |= *command == TaskCommand::Cancel;
        for index in 0..self.tasks.len() {
            if let Err(error) = self.tasks[index].command(command) {
                self.finish(index, TaskOutcome::Failed(error));
            }
        }
    }

    /// The job is gone without a word: nobody will ever tell the tasks to stop.
    fn cancel_orphans(&mut self) {
        if !self.orphaned {
            self.orphaned = true;
            self.command(&TaskCommand::Cancel);
        }
    }

    fn finish(&mut self, index: usize, outcome: TaskOutcome) {
        let Some(report) = self.tasks[index].finish() else {
            return;
        };
        self.running -= 1;
        if let TaskOutcome::Failed(error) = &outcome {
            log_failure(&report.name, error);
        }
        self.tell(WorkerEvent::Finished {
            outcome,
            report: Box::new(report),
        });
    }

    fn tell(&mut self, event: WorkerEvent) {
        self.unsent.push_back(event);
        self.send_unsent();
    }

    fn send_unsent(&mut self) -> usize {
        let mut sent = 0;
        while let Some(event) = self.unsent.pop_front() {
            match self.events.try_push(event) {
                Ok(()) => sent += 1,
                Err(PushError::Full(event)) => {
                    self.unsent.push_front(event);
                    break;
                }
                Err(PushError::Abandoned(_)) => self.unsent.clear(),
            }
        }
        sent
    }
}

/// Whoever started the job is told the cause, with its outcome: the log is for the details.
fn log_failure(task: &str, error: &TaskError) {
    tracing::debug!(task, %error, is_cause = error.is_cause(), "task failed");
}
