//! Running a plan: workers on their cores, and the one thread that watches over them.

use std::time::Duration;

use ringway_shm::{Bell, Consumer, PopError, Producer, ring};

use crate::clock::{Clock, Monotonic};
use crate::placement::CpuId;
use crate::task::{Task, TaskCommand, TaskError, TaskOutcome, TaskReport};
use crate::worker::{
    Host, HostError, HostInUse, HostKind, HostedWorker, IdlePolicy, Worker, WorkerCommand,
    WorkerEvent, WorkerThread,
};

use super::build::{BuildError, build};
use super::plan::Plan;

/// Time that tasks have to stop once the job is cancelled or has failed.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// Commands and events that may be under way between a worker and the job.
const CONTROL_RING_ELEMENTS: usize = 256;

/// How a plan is run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// What workers do when there is nothing to do.
    pub idle: IdlePolicy,
    /// What hosts the workers.
    pub host: HostKind,
}

/// A job that runs.
///
/// Whoever holds it watches over the job: [`JobHandle::wait`] or [`JobHandle::wait_timeout`]
/// must be called for the failure of one task to stop the others. Dropping it cancels the job.
pub struct JobHandle {
    workers: Vec<WorkerLink>,
    host: HostInUse,
    bell: Bell,
    clock: Clock,
    finished: Vec<(TaskReport, TaskOutcome)>,
    live: Vec<Vec<TaskReport>>,
    stopping: Option<Monotonic>,
    cancelled: bool,
    ended_at: Option<Monotonic>,
}

/// How a job ended.
#[derive(Debug)]
pub enum JobOutcome {
    /// All input was processed.
    Ended,
    /// It was stopped in order.
    Stopped,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed(JobError),
}

/// What a job did.
#[derive(Debug)]
pub struct JobReport {
    /// How it ended.
    pub outcome: JobOutcome,
    /// What each task did.
    pub tasks: Vec<TaskReport>,
    /// From start to end.
    pub elapsed: Duration,
    /// From start until the first row reached a sink, if one did.
    pub first_row: Option<Duration>,
    /// What hosted the workers.
    pub host: HostInUse,
}

/// Why a job failed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// Its parts cannot be made. Nothing ran.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A worker cannot be started where the plan puts it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A task failed; the others were cancelled.
    #[error("{0}")]
    Task(TaskError),
    /// Tasks did not stop in time after the job was cancelled or had failed: an operator of
    /// theirs does not return. Their threads are left behind.
    #[error("{} did not stop within {} s", names.join(", "), STOP_TIME_MAX.as_secs())]
    Stuck {
        /// The tasks, as far as they reported.
        names: Vec<String>,
    },
}

struct WorkerLink {
    commands: Producer<WorkerCommand>,
    events: Consumer<WorkerEvent>,
    thread: Option<HostedWorker>,
    tasks: usize,
    finished: usize,
}

/// Starts a plan.
///
/// # Errors
/// When its parts cannot be made or a thread cannot be started; nothing has run then.
pub fn start(plan: &Plan, options: &RunOptions) -> Result<JobHandle, JobError> {
    let host = Host::new(options.host);
    let built = build(plan, &host)?;
    let clock = Clock::start();
    let bell = Bell::thread();
    let mut job = JobHandle {
        workers: Vec::new(),
        live: built.workers.iter().map(|_| Vec::new()).collect(),
        host: host.in_use().clone(),
        bell,
        clock,
        finished: Vec::new(),
        stopping: None,
        cancelled: false,
        ended_at: None,
    };
    for (index, (bell, tasks)) in built.workers.into_iter().enumerate() {
        let thread = WorkerThread {
            name: format!("ringway-{index}"),
            cpu: plan.workers[index].map(CpuId),
            policy: options.idle,
        };
        // A worker that cannot be started leaves the others to be cancelled with the handle.
        let worker = start_worker(&host, thread, tasks, bell, &job)?;
        job.workers.push(worker);
    }
    Ok(job)
}

fn start_worker(
    host: &Host,
    thread: WorkerThread,
    tasks: Vec<Box<dyn Task>>,
    bell: Bell,
    job: &JobHandle,
) -> Result<WorkerLink, HostError> {
    let (commands, receive_commands) = ring(CONTROL_RING_ELEMENTS, job.bell.clone(), bell.clone());
    let (send_events, events) = ring(CONTROL_RING_ELEMENTS, bell.clone(), job.bell.clone());
    let (count, clock) = (tasks.len(), job.clock);
    let thread = host.spawn(thread, move || {
        Worker::new(tasks, clock, bell, receive_commands, send_events)
    })?;
    Ok(WorkerLink {
        commands,
        events,
        thread: Some(thread),
        tasks: count,
        finished: 0,
    })
}

impl JobHandle {
    /// Waits until the job is over.
    pub fn wait(mut self) -> JobReport {
        loop {
            if let Some(report) = self.wait_timeout(Duration::from_secs(1)) {
                return report;
            }
        }
    }

    /// Watches over the job for at most `timeout`. The report, once the job is over; calling
    /// again after that is a mistake.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<JobReport> {
        let deadline = self.clock.now().after(timeout);
        loop {
            self.bell.arm();
            self.take_events();
            let now = self.clock.now();
            if self.is_over(now) {
                self.bell.disarm();
                return Some(self.report(now));
            }
            if now >= deadline {
                self.bell.disarm();
                return None;
            }
            self.bell
                .park(Some(deadline.since(now).min(Duration::from_millis(100))));
        }
    }

    /// Cancels the job: no end, no flush, no commit.
    pub fn cancel(&mut self) {
        self.cancelled = true;
        self.stop_all();
    }

    /// Ends the sources: the job goes on to process what they have emitted, and then ends as
    /// if their input had ended there.
    pub fn drain(&mut self) {
        self.send(&WorkerCommand::Task(TaskCommand::End));
    }

    /// Stops the sources in order: what they have emitted is processed, but nothing is final.
    pub fn stop(&mut self) {
        self.send(&WorkerCommand::Task(TaskCommand::Stop));
    }

    /// Sends a command to every task.
    pub fn command(&mut self, command: TaskCommand) {
        self.send(&WorkerCommand::Task(command));
    }

    /// Asks the workers to report; the answers are there after the next wait.
    pub fn request_progress(&mut self) {
        self.send(&WorkerCommand::Report);
    }

    /// What every task last reported.
    pub fn progress(&self) -> impl Iterator<Item = &TaskReport> {
        let finished = self.finished.iter().map(|(report, _)| report);
        finished.chain(self.live.iter().flatten())
    }

    /// Time since the job was started.
    pub fn elapsed(&self) -> Duration {
        self.clock.now().0
    }

    fn send(&mut self, command: &WorkerCommand) {
        for worker in &mut self.workers {
            // A worker that does not take its commands is stuck in an operator: it is found
            // out by the time limit on stopping.
            drop(worker.commands.try_push(command.clone()));
        }
    }

    fn stop_all(&mut self) {
        if self.stopping.is_none() {
            self.stopping = Some(self.clock.now());
            self.send(&WorkerCommand::Task(TaskCommand::Cancel));
        }
    }

    fn take_events(&mut self) {
        for index in 0..self.workers.len() {
            loop {
                match self.workers[index].events.try_pop() {
                    Ok(WorkerEvent::Opened) => {}
                    Ok(WorkerEvent::Report(reports)) => self.live[index] = reports,
                    Ok(WorkerEvent::Finished { outcome, report }) => {
                        self.task_finished(index, *report, outcome);
                    }
                    Err(PopError::Empty | PopError::Finished | PopError::Abandoned) => break,
                }
            }
        }
    }

    fn task_finished(&mut self, worker: usize, report: TaskReport, outcome: TaskOutcome) {
        self.workers[worker].finished += 1;
        self.live[worker].retain(|live| live.name != report.name);
        let failed = matches!(outcome, TaskOutcome::Failed(_));
        self.finished.push((report, outcome));
        if failed {
            self.stop_all();
        }
    }

    fn is_over(&self, now: Monotonic) -> bool {
        let done = self
            .workers
            .iter()
            .all(|worker| worker.finished == worker.tasks);
        done || self
            .stopping
            .is_some_and(|since| now.since(since) > STOP_TIME_MAX)
    }

    fn report(&mut self, now: Monotonic) -> JobReport {
        self.ended_at = Some(now);
        for worker in &mut self.workers {
            if worker.finished == worker.tasks
                && let Some(thread) = worker.thread.take()
            {
                // The tasks are behind walls, so the thread itself has nothing to panic about.
                drop(thread.join());
            }
        }
        let outcome = self.outcome();
        let tasks: Vec<TaskReport> = self.progress().cloned().collect();
        let first_row = tasks.iter().filter_map(|task| task.first_row).min();
        JobReport {
            outcome,
            tasks,
            elapsed: now.0,
            first_row: first_row.map(|at| at.0),
            host: self.host.clone(),
        }
    }

    /// The cause of a failure is the task that failed by itself, not those that lost a peer.
    fn outcome(&mut self) -> JobOutcome {
        let mut failures = Vec::new();
        let mut stopped = false;
        for (_, outcome) in &mut self.finished {
            match std::mem::replace(outcome, TaskOutcome::Cancelled) {
                TaskOutcome::Failed(error) => failures.push(error),
                TaskOutcome::Stopped => stopped = true,
                TaskOutcome::Ended | TaskOutcome::Cancelled => {}
            }
        }
        if let Some(cause) = failures.iter().position(TaskError::is_cause) {
            return JobOutcome::Failed(JobError::Task(failures.swap_remove(cause)));
        }
        if self
            .workers
            .iter()
            .any(|worker| worker.finished < worker.tasks)
        {
            let names = self
                .live
                .iter()
                .flatten()
                .map(|report| report.name.clone())
                .collect();
            return JobOutcome::Failed(JobError::Stuck { names });
        }
        if self.cancelled {
            return JobOutcome::Cancelled;
        }
        match failures.into_iter().next() {
            Some(error) => JobOutcome::Failed(JobError::Task(error)),
            None if stopped => JobOutcome::Stopped,
            None => JobOutcome::Ended,
        }
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        if self.ended_at.is_none() {
            self.stop_all();
        }
    }
}
