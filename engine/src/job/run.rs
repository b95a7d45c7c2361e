//! Running a plan: workers on their cores, and the one thread that watches over them.

mod making;
mod staged;
mod together;
mod workers;

pub use together::start_in;

use std::time::Duration;

use ringway_shm::{Bell, PopError, PushError};

use crate::clock::{Clock, Monotonic};
use crate::connect::spill::SpillReport;
use crate::control::{CancelCause, JobEnd, StopWay};
use crate::task::{TaskCommand, TaskError, TaskOutcome, TaskReport};
use crate::worker::{Host, HostError, HostInUse, HostKind, IdlePolicy, WorkerCommand, WorkerEvent};

use super::build::{BuildError, Built, Part, build};
use super::cluster::{Cluster, ProcessReport};
use super::plan::Plan;
use super::remote::RemoteError;
use making::Making;
use staged::Staged;
use workers::WorkerLink;

/// Time that tasks have to stop once the job is cancelled or has failed.
pub(super) const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// The longest time without a look at the workers, though none of them rings.
const WATCH_TIME_MAX: Duration = Duration::from_millis(100);

/// The longest time that starting a job waits for everything to be open: whoever has started it
/// can stop it then, and waiting for the job waits on.
const BEGIN_TIME_MAX: Duration = Duration::from_secs(1);

/// The longest time that a job of several processes which is over waits for the threads of its
/// workers, whose connections may have peers that hang.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(2);

/// The longest time without a look at whether all edges to other processes are open.
const OPENING_LOOK_MAX: Duration = Duration::from_millis(2);

/// Room that is kept for the commands that start, end, stop and cancel a job. Each is sent
/// once, so none of them is ever lost.
const CONTROL_RING_RESERVED: usize = 4;

/// How a plan is run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// What workers do when there is nothing to do.
    pub idle: IdlePolicy,
    /// What hosts the workers.
    pub host: HostKind,
}

/// What of this process is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opened {
    Nothing,
    /// All tasks.
    Tasks,
    /// All tasks and all edges to other processes, and that was told.
    All,
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
    /// Who cancelled the job in this process, if somebody did.
    cancelled: Option<CancelCause>,
    sources_ended: bool,
    sources_stopped: bool,
    ended_at: Option<Monotonic>,
    opened: Opened,
    /// The tasks of this process, while they are made.
    making: Option<Making>,
    /// The job was to stop before the tasks of this process were made.
    given_up: bool,
    /// Why its parts could not be made, if so.
    not_made: Option<JobError>,
    /// How the tasks of this process ended, once all are over.
    local: Option<JobOutcome>,
    /// The processes that run the job together, if there are several.
    cluster: Option<Cluster>,
    /// The stages of the job, if it has several.
    staged: Option<Staged>,
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
    /// Whether the sources were ended before their input.
    pub drained: bool,
    /// Why it was cancelled, if it was.
    pub cancelled_by: Option<CancelCause>,
    /// What each process did, where there are several and this is process 0.
    pub processes: Vec<ProcessReport>,
    /// What each blocking exchange did.
    pub spills: Vec<SpillReport>,
    /// How often a stage was run again after it had failed.
    pub restarts: u32,
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
    /// Something failed in another process, or that was lost; this one was cancelled.
    #[error("{0}")]
    Elsewhere(String),
    /// Tasks did not stop in time after the job was cancelled or had failed: an operator of
    /// theirs does not return. Their threads are left behind.
    #[error("{} did not stop within {} s", names.join(", "), STOP_TIME_MAX.as_secs())]
    Stuck {
        /// The tasks.
        names: Vec<String>,
    },
    /// A worker's thread is gone. That is a defect of the runtime, not of an operator.
    #[error("worker {worker} is gone, and with it {}", names.join(", "))]
    WorkerLost {
        /// The worker.
        worker: usize,
        /// The tasks that were not over.
        names: Vec<String>,
    },
}

/// A command that no worker was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("worker {worker} does not take its commands: an operator on it does not return")]
pub struct CommandRefused {
    /// The worker.
    pub worker: usize,
}

/// Starts a plan: makes its parts, opens them all, and lets them run. When one cannot be
/// opened, nothing runs, and the job's report says so.
///
/// Where opening takes long this returns before it runs: it does when everything is open, as
/// long as the handle is waited on.
///
/// # Errors
/// When its parts cannot be made or a thread cannot be started; nothing has run then.
pub fn start(plan: &Plan, options: &RunOptions) -> Result<JobHandle, JobError> {
    let host = Host::new(options.host);
    let mut job = JobHandle::new(host.in_use().clone(), Bell::thread(), Clock::start());
    if plan.stages.len() > 1 {
        let staged = Staged::begin(plan, options, host)?;
        return job.start_staged(staged);
    }
    let built = build_alone(plan, &host, None)?;
    job.add_workers(plan, options, &host, built, None)?;
    job.begin();
    Ok(job)
}

/// Builds `chains` of a plan, or all, to run in this process alone.
fn build_alone(plan: &Plan, host: &Host, chains: Option<&[usize]>) -> Result<Built, BuildError> {
    let mut alone = |_| Err(RemoteError("the job runs in this process alone".to_owned()));
    let part = Part {
        process: 0,
        chains,
        has_connections: false,
        remote: &mut alone,
    };
    build(plan, host, part)
}

impl JobHandle {
    fn new(host: HostInUse, bell: Bell, clock: Clock) -> Self {
        Self {
            workers: Vec::new(),
            host,
            bell,
            clock,
            finished: Vec::new(),
            live: Vec::new(),
            stopping: None,
            cancelled: None,
            sources_ended: false,
            sources_stopped: false,
            ended_at: None,
            opened: Opened::Nothing,
            making: None,
            given_up: false,
            not_made: None,
            local: None,
            cluster: None,
            staged: None,
        }
    }

    fn add_worker(&mut self, worker: WorkerLink) {
        self.workers.push(worker);
        self.live.push(Vec::new());
    }

    /// Waits a while until everything is open, and lets it run if all of it is.
    fn begin(&mut self) {
        let deadline = self.clock.now().after(BEGIN_TIME_MAX);
        loop {
            self.bell.arm();
            self.attend();
            let is_begun = self.opened != Opened::Nothing || self.stopping.is_some();
            if is_begun || self.clock.now() >= deadline {
                self.bell.disarm();
                return;
            }
            self.park(WATCH_TIME_MAX);
        }
    }

    /// Takes what has come, and does what is to be done about it.
    fn attend(&mut self) {
        self.take_made();
        self.take_events();
        self.run_when_open();
        self.take_part();
    }

    /// Lets the tasks run once all of them are open; those of several processes are told to
    /// together.
    fn run_when_open(&mut self) {
        let mut workers = self.workers.iter();
        let is_open = workers.all(|worker| worker.opened || worker.lost);
        if self.opened == Opened::Nothing && self.making.is_none() && is_open {
            self.opened = Opened::Tasks;
            if self.stopping.is_none() && self.cluster.is_none() {
                self.send(&WorkerCommand::Start);
            }
        }
    }

    /// Waits until the job is over.
    pub fn wait(mut self) -> JobReport {
        loop {
            if let Some(report) = self.wait_timeout(Duration::from_secs(1)) {
                return report;
            }
        }
    }

    /// Watches over the job for at most `timeout`. The report, once the job is over.
    ///
    /// # Panics
    /// When the report was given before.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<JobReport> {
        assert!(self.ended_at.is_none(), "a job has one report");
        let deadline = self.clock.now().after(timeout);
        loop {
            self.bell.arm();
            self.attend();
            let now = self.clock.now();
            if self.is_over(now) {
                self.bell.disarm();
                if self.go_on() {
                    continue;
                }
                return Some(self.report(now));
            }
            if now >= deadline {
                self.bell.disarm();
                return None;
            }
            self.park(deadline.since(now).min(WATCH_TIME_MAX));
        }
    }

    /// Cancels the job, in all of its processes: no end, no flush, no commit.
    pub fn cancel(&mut self) {
        self.cancel_by(CancelCause::Asked);
    }

    /// As [`JobHandle::cancel`], with the cause that all processes report.
    pub fn cancel_by(&mut self, cause: CancelCause) {
        self.cancelled.get_or_insert(cause);
        if let Some(cluster) = &mut self.cluster {
            cluster.ask_to_cancel(cause);
        }
        self.stop_all();
    }

    /// Ends the sources: the job goes on to process what they have emitted, and then ends as
    /// if their input had ended there.
    pub fn drain(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            return cluster.ask_to_stop(StopWay::End);
        }
        self.end_sources();
    }

    fn end_sources(&mut self) {
        if !std::mem::replace(&mut self.sources_ended, true) {
            self.end_sources_again();
        }
    }

    /// Ends the sources of the stage that runs now.
    fn end_sources_again(&mut self) {
        self.send(&WorkerCommand::Task(TaskCommand::End));
    }

    /// Stops the sources in order: what they have emitted is processed, but nothing is final.
    pub fn stop(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            return cluster.ask_to_stop(StopWay::Stop);
        }
        self.stop_sources();
    }

    fn stop_sources(&mut self) {
        if !std::mem::replace(&mut self.sources_stopped, true) {
            self.send(&WorkerCommand::Task(TaskCommand::Stop));
        }
    }

    /// Sends a command to every task.
    ///
    /// # Errors
    /// When a worker has not taken those before. No worker got the command then: a barrier
    /// that only some sources emit would stop the inputs of the others.
    pub fn command(&mut self, command: TaskCommand) -> Result<(), CommandRefused> {
        match command {
            TaskCommand::Cancel => self.cancel(),
            TaskCommand::End => self.drain(),
            TaskCommand::Stop => self.stop(),
            TaskCommand::Trigger(_) | TaskCommand::Abort(_) | TaskCommand::Commit(_) => {
                return self.send_if_room(&WorkerCommand::Task(command));
            }
        }
        Ok(())
    }

    /// Asks the workers to report; the answers are there after the next wait. Nothing is asked
    /// while a worker does not take its commands.
    pub fn request_progress(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            cluster.request_progress();
        }
        let _ = self.send_if_room(&WorkerCommand::Report);
    }

    /// What every task last reported, as far as this process is told: process 0 is told of the
    /// tasks of all processes.
    pub fn progress(&self) -> impl Iterator<Item = &TaskReport> {
        let others = self.cluster.iter().flat_map(Cluster::progress);
        self.own_progress().chain(others)
    }

    fn own_progress(&self) -> impl Iterator<Item = &TaskReport> {
        let finished = self.finished.iter().map(|(report, _)| report);
        finished.chain(self.live.iter().flatten())
    }

    /// Time since the job was started.
    pub fn elapsed(&self) -> Duration {
        self.clock.now().0
    }

    fn send_if_room(&mut self, command: &WorkerCommand) -> Result<(), CommandRefused> {
        let mut workers = self.workers.iter();
        let full = |worker: &WorkerLink| worker.commands.slots() <= CONTROL_RING_RESERVED;
        if let Some(worker) = workers.position(full) {
            return Err(CommandRefused { worker });
        }
        self.send(command);
        Ok(())
    }

    fn send(&mut self, command: &WorkerCommand) {
        for worker in &mut self.workers {
            // A worker that is over takes nothing, and one that runs has room: for these few
            // commands by the reserve, for the others because the caller looked.
            if let Err(PushError::Full(command)) = worker.commands.try_push(command.clone()) {
                debug_assert!(false, "no room for {command:?}");
            }
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
                    Ok(WorkerEvent::Opened) => self.workers[index].opened = true,
                    Ok(WorkerEvent::Report(reports)) => self.live[index] = reports,
                    Ok(WorkerEvent::Finished { outcome, report }) => {
                        self.task_finished(index, *report, outcome);
                    }
                    Err(PopError::Empty) => break,
                    Err(PopError::Finished | PopError::Abandoned) => {
                        self.thread_ended(index);
                        break;
                    }
                }
            }
        }
    }

    fn task_finished(&mut self, worker: usize, report: TaskReport, outcome: TaskOutcome) {
        let running = &mut self.workers[worker].running;
        if let Some(at) = running.iter().position(|name| *name == report.name) {
            running.swap_remove(at);
        }
        self.live[worker].retain(|live| live.name != report.name);
        let failed = matches!(outcome, TaskOutcome::Failed(_));
        if let (TaskOutcome::Failed(error), Some(cluster)) = (&outcome, &mut self.cluster) {
            cluster.failed(error.is_cause(), error.to_string());
        }
        self.finished.push((report, outcome));
        if failed {
            self.stop_all();
        }
    }

    fn park(&self, timeout: Duration) {
        match &self.cluster {
            Some(cluster) => {
                let opening = self.opened == Opened::Tasks && self.stopping.is_none();
                let limit = if opening { OPENING_LOOK_MAX } else { timeout };
                cluster.park(&self.bell, limit.min(timeout));
            }
            None => {
                self.bell.park(Some(timeout));
            }
        }
    }

    /// A worker's thread ends when its tasks are over; before that it is lost.
    fn thread_ended(&mut self, worker: usize) {
        let link = &mut self.workers[worker];
        if !link.running.is_empty() && !link.lost {
            link.lost = true;
            self.stop_all();
        }
    }

    fn is_over(&mut self, now: Monotonic) -> bool {
        match &mut self.cluster {
            Some(cluster) => self.local.is_some() && cluster.is_over(),
            None => self.tasks_are_over(now),
        }
    }

    fn tasks_are_over(&self, now: Monotonic) -> bool {
        let mut workers = self.workers.iter();
        let done = workers.all(|worker| worker.running.is_empty() || worker.lost);
        (done && self.making.is_none())
            || self
                .stopping
                .is_some_and(|since| now.since(since) > STOP_TIME_MAX)
    }

    fn report(&mut self, now: Monotonic) -> JobReport {
        self.ended_at = Some(now);
        self.join_workers();
        let is_cut = self.is_cut();
        let (spills, restarts) = self.end_staged();
        let outcome = match self.local.take() {
            Some(local) => self.outcome_of_all(local),
            None => self.outcome(),
        };
        // The sources were stopped when a stage had just ended.
        let outcome = match outcome {
            JobOutcome::Ended if is_cut => JobOutcome::Stopped,
            outcome => outcome,
        };
        let tasks: Vec<TaskReport> = self.progress().cloned().collect();
        let cluster = self.cluster.as_ref();
        let cancelled_by = match cluster.and_then(Cluster::end) {
            Some(JobEnd::Cancelled(cause)) => Some(*cause),
            _ => self.cancelled,
        };
        let processes = cluster.map_or_else(Vec::new, Cluster::process_reports);
        let first_row = tasks.iter().filter_map(|task| task.first_row).min();
        JobReport {
            outcome,
            tasks,
            elapsed: now.0,
            first_row: first_row.map(|at| at.0),
            host: self.host.clone(),
            drained: self.sources_ended,
            cancelled_by,
            processes,
            spills,
            restarts,
        }
    }

    fn join_workers(&mut self) {
        let end = self.cluster.as_ref().and_then(Cluster::end);
        let failed_together =
            end.is_some_and(|end| !matches!(end, JobEnd::Ended | JobEnd::Stopped));
        // A connection whose peer hangs is no reason to wait for long once the job is over in
        // all processes, and for none once it has failed.
        let now = self.clock.now();
        let deadline = match (&self.cluster, failed_together) {
            (None, _) => None,
            (Some(_), true) => Some(now),
            (Some(_), false) => Some(now.after(LEAVE_TIME_MAX)),
        };
        for worker in &mut self.workers {
            if worker.running.is_empty() || worker.lost {
                worker.join(deadline, &self.clock);
            }
        }
    }

    /// The cause of a failure is the task that failed by itself, not those that lost a peer.
    fn outcome(&mut self) -> JobOutcome {
        let mut failures = Vec::new();
        let (mut stopped, mut cancelled) = (false, self.given_up);
        for (_, outcome) in &mut self.finished {
            match std::mem::replace(outcome, TaskOutcome::Cancelled) {
                TaskOutcome::Failed(error) => failures.push(error),
                TaskOutcome::Stopped => stopped = true,
                TaskOutcome::Cancelled => cancelled = true,
                TaskOutcome::Ended => {}
            }
        }
        if let Some(error) = self.not_made.take() {
            return JobOutcome::Failed(error);
        }
        if let Some(cause) = failures.iter().position(TaskError::is_cause) {
            return JobOutcome::Failed(JobError::Task(failures.swap_remove(cause)));
        }
        if let Some(error) = self.unfinished() {
            return JobOutcome::Failed(error);
        }
        if self.cancelled.is_some() {
            return JobOutcome::Cancelled;
        }
        match failures.into_iter().next() {
            Some(error) => JobOutcome::Failed(JobError::Task(error)),
            None if cancelled => JobOutcome::Cancelled,
            None if stopped => JobOutcome::Stopped,
            None => JobOutcome::Ended,
        }
    }

    /// What is wrong if not all tasks are over.
    fn unfinished(&self) -> Option<JobError> {
        if let Some(worker) = self.workers.iter().position(|worker| worker.lost) {
            let names = self.workers[worker].running.clone();
            return Some(JobError::WorkerLost { worker, names });
        }
        let running = self.workers.iter().flat_map(|worker| &worker.running);
        let mut names: Vec<String> = running.cloned().collect();
        let made = self.making.iter();
        names.extend(made.map(|making| format!("{}, which is being made,", making.task())));
        (!names.is_empty()).then_some(JobError::Stuck { names })
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        if self.ended_at.is_none() {
            self.stop_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use ringway_shm::{Consumer, Producer, ring};

    use super::workers::CONTROL_RING_ELEMENTS;
    use super::*;
    use crate::worker::{Worker, WorkerThread};

    /// What a worker has of its rings.
    type WorkerEnds = (Consumer<WorkerCommand>, Producer<WorkerEvent>);

    /// A handle to one worker, and the other ends of its rings.
    fn handle(running: &[&str]) -> (JobHandle, WorkerEnds) {
        let bell = Bell::thread();
        let (commands, received) = ring(CONTROL_RING_ELEMENTS, bell.clone(), Bell::thread());
        let (events, told) = ring(CONTROL_RING_ELEMENTS, Bell::thread(), bell.clone());
        let link = WorkerLink {
            commands,
            events: told,
            thread: None,
            opened: true,
            running: running.iter().map(|&name| name.to_owned()).collect(),
            lost: false,
        };
        let mut handle = JobHandle::new(HostKind::Thread.into(), bell, Clock::start());
        handle.add_worker(link);
        (handle, (received, events))
    }

    fn finished(name: &str) -> WorkerEvent {
        let report = TaskReport {
            name: name.to_owned(),
            ..TaskReport::default()
        };
        WorkerEvent::Finished {
            outcome: TaskOutcome::Ended,
            report: Box::new(report),
        }
    }

    #[test]
    fn a_worker_that_is_gone_is_a_failure_that_names_its_tasks_and_never_a_wait_for_ever() {
        let (mut handle, (_commands, mut events)) = handle(&["map[0]", "sink[0]"]);
        assert!(handle.wait_timeout(Duration::ZERO).is_none());
        events.try_push(finished("map[0]")).unwrap();
        drop(events);
        let report = handle.wait_timeout(Duration::from_secs(5)).unwrap();
        let JobOutcome::Failed(JobError::WorkerLost { worker: 0, names }) = report.outcome else {
            panic!("the job has failed: {:?}", report.outcome)
        };
        assert_eq!(names, ["sink[0]"]);
    }

    #[test]
    fn what_a_worker_said_before_its_thread_ended_is_heard() {
        let (mut handle, (_commands, mut events)) = handle(&["map[0]", "map[0]"]);
        events.try_push(finished("map[0]")).unwrap();
        events.try_push(finished("map[0]")).unwrap();
        drop(events);
        let report = handle.wait_timeout(Duration::ZERO).unwrap();
        assert!(matches!(report.outcome, JobOutcome::Ended));
        assert_eq!(report.tasks.len(), 2);
    }

    #[test]
    fn a_worker_whose_thread_does_not_end_is_left_behind_in_time() {
        let (mut handle, (commands, events)) = handle(&[]);
        let (held, mut let_go) = ring::<()>(1, Bell::thread(), Bell::thread());
        let clock = handle.clock;
        let thread = WorkerThread {
            name: "hangs".to_owned(),
            cpu: None,
            policy: IdlePolicy::default(),
        };
        let host = Host::new(HostKind::Thread);
        let hangs = host.spawn(thread, move || {
            let _ = let_go.pop_blocking(None);
            Worker::new(Vec::new(), clock, Bell::thread(), commands, events)
        });
        let worker = &mut handle.workers[0];
        worker.thread = Some(hangs.unwrap());
        let deadline = clock.now().after(Duration::from_millis(50));
        worker.join(Some(deadline), &clock);
        assert!(clock.now() >= deadline);
        assert!(worker.thread.is_none());
        drop(held);
    }

    #[test]
    fn the_commands_that_stop_a_job_find_room_beside_all_others() {
        let (mut handle, (mut commands, _events)) = handle(&["map[0]"]);
        while handle.command(TaskCommand::Abort(1)).is_ok() {}
        handle.request_progress();
        handle.send(&WorkerCommand::Start);
        for _ in 0..3 {
            handle.drain();
            handle.stop();
            handle.cancel();
        }
        let mut last = Vec::new();
        while let Ok(command) = commands.try_pop() {
            if !matches!(command, WorkerCommand::Task(TaskCommand::Abort(_))) {
                last.push(command);
            }
        }
        assert!(
            matches!(
                &last[..],
                [
                    WorkerCommand::Start,
                    WorkerCommand::Task(TaskCommand::End),
                    WorkerCommand::Task(TaskCommand::Stop),
                    WorkerCommand::Task(TaskCommand::Cancel)
                ]
            ),
            "{last:?}"
        );
    }
}
