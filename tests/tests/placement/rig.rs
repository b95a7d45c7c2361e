//! Workers with tasks that do nothing but tell what happens to them.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use ringway::clock::{Clock, ProcessingTime};
use ringway::placement::CpuId;
use ringway::task::{Step, Task, TaskCommand, TaskError, TaskOutcome, TaskReport, TaskState};
use ringway::worker::{
    Host, HostError, HostedWorker, IdlePolicy, Worker, WorkerCommand, WorkerEvent, WorkerThread,
};
use ringway_shm::{Bell, Consumer, PopError, Producer, ring};
use ringway_tests::within::LONG;

/// A worker with its job's ends of the rings.
pub(crate) struct Running {
    pub(crate) worker: HostedWorker,
    pub(crate) commands: Producer<WorkerCommand>,
    events: Consumer<WorkerEvent>,
}

/// Starts a worker with `tasks`.
pub(crate) fn start(
    host: &Host,
    cpu: Option<CpuId>,
    policy: IdlePolicy,
    tasks: Vec<Box<dyn Task>>,
) -> Result<Running, HostError> {
    let bell = host.bell().expect("a descriptor for the bell");
    start_with(host, bell, cpu, policy, tasks)
}

/// Starts a worker that has this bell.
pub(crate) fn start_with(
    host: &Host,
    bell: Bell,
    cpu: Option<CpuId>,
    policy: IdlePolicy,
    tasks: Vec<Box<dyn Task>>,
) -> Result<Running, HostError> {
    let (mut commands, obeyed) = ring(64, Bell::thread(), bell.clone());
    let (told, events) = ring(1024, bell.clone(), Bell::thread());
    let thread = WorkerThread {
        name: "test-worker".to_owned(),
        cpu,
        policy,
    };
    let make = move || Worker::new(tasks, Clock::start(), bell, obeyed, told);
    let worker = host.spawn(thread, make)?;
    commands
        .try_push(WorkerCommand::Start)
        .expect("the ring is empty");
    Ok(Running {
        worker,
        commands,
        events,
    })
}

impl Running {
    /// Tells the worker's tasks.
    pub(crate) fn tell(&mut self, command: TaskCommand) {
        self.commands
            .try_push(WorkerCommand::Task(command))
            .unwrap();
    }

    /// Waits for all tasks: their names and outcomes, sorted.
    pub(crate) fn outcomes(mut self) -> Vec<String> {
        let mut outcomes = Vec::new();
        loop {
            match self.events.pop_blocking(Some(LONG)) {
                Ok(WorkerEvent::Finished { outcome, report }) => {
                    outcomes.push(format!("{} {outcome}", report.name));
                }
                Ok(_) => {}
                Err(PopError::Empty) => panic!("the worker hangs; so far: {outcomes:?}"),
                Err(PopError::Finished | PopError::Abandoned) => break,
            }
        }
        self.worker
            .join()
            .expect("the worker itself does not panic");
        outcomes.sort();
        outcomes
    }
}

/// Whether a task goes on, and the work that it did.
type OnStep = Box<dyn FnMut(&Clock) -> (TaskState, usize) + Send>;

/// What a task does, besides existing.
pub(crate) struct Script {
    /// Called on the worker's thread when the task opens.
    pub(crate) open: Box<dyn FnMut() + Send>,
    /// Called at each step.
    pub(crate) step: OnStep,
    /// Called for each command.
    pub(crate) command: Box<dyn FnMut(&TaskCommand) + Send>,
    /// The time of the next timer.
    pub(crate) timer: Arc<Mutex<Option<ProcessingTime>>>,
    name: String,
    clock: Clock,
    cancelled: bool,
}

impl Script {
    /// A task that waits until it is cancelled.
    pub(crate) fn waits(name: &str) -> Self {
        Self {
            open: Box::new(|| {}),
            step: Box::new(|_| (TaskState::Running, 0)),
            command: Box::new(|_| {}),
            timer: Arc::default(),
            name: name.to_owned(),
            clock: Clock::start(),
            cancelled: false,
        }
    }

    /// A task that ends after so many steps.
    pub(crate) fn counts(name: &str, steps: usize) -> Self {
        let mut left = steps;
        let step = move |_: &Clock| {
            left -= 1;
            match left {
                0 => (TaskState::Finished(TaskOutcome::Ended), 1),
                _ => (TaskState::Running, 1),
            }
        };
        Self {
            step: Box::new(step),
            ..Self::waits(name)
        }
    }
}

impl Task for Script {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self, clock: Clock, _bell: &Bell) -> Result<(), TaskError> {
        self.clock = clock;
        (self.open)();
        Ok(())
    }

    fn step(&mut self) -> Step {
        if self.cancelled {
            let state = TaskState::Finished(TaskOutcome::Cancelled);
            return Step { work: 1, state };
        }
        let (state, work) = (self.step)(&self.clock);
        Step { work, state }
    }

    fn command(&mut self, command: &TaskCommand) {
        self.cancelled |= *command == TaskCommand::Cancel;
        (self.command)(command);
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        *self.timer.lock().unwrap()
    }

    fn report(&self) -> TaskReport {
        TaskReport {
            name: self.name.clone(),
            ..TaskReport::default()
        }
    }

    fn abandon(&mut self, _reason: &str) {}

    fn running(&self) -> String {
        self.name.clone()
    }
}

/// Waits until `ready` gives something.
pub(crate) fn eventually<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(start.elapsed() < LONG, "it does not come");
        std::thread::yield_now();
    }
}

pub(crate) fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}
