//! The workers of a job: starting them, and waiting for their threads.

use std::time::Duration;

use ringway_shm::{Bell, Consumer, Producer, ring};

use crate::clock::{Clock, Monotonic};
use crate::edge::remote::{Links, LinksSeed};
use crate::job::build::{Built, BuiltWorker};
use crate::job::plan::Plan;
use crate::job::remote::MakeDriver;
use crate::placement::CpuId;
use crate::worker::{
    Host, HostError, HostedWorker, Worker, WorkerCommand, WorkerEvent, WorkerThread,
};

use super::{JobError, JobHandle, RunOptions};

/// Commands and events that may be under way between a worker and the job.
pub(super) const CONTROL_RING_ELEMENTS: usize = 256;

/// The longest time without a look at whether the thread of a worker has ended.
const JOIN_LOOK_MAX: Duration = Duration::from_millis(1);

/// A worker, as its job has it.
pub(super) struct WorkerLink {
    pub(super) commands: Producer<WorkerCommand>,
    pub(super) events: Consumer<WorkerEvent>,
    pub(super) thread: Option<HostedWorker>,
    pub(super) opened: bool,
    /// The names of the tasks that are not over.
    pub(super) running: Vec<String>,
    /// Its thread is gone, and with it the tasks that are not over.
    pub(super) lost: bool,
}

impl WorkerLink {
    /// Waits for the end of the worker's thread, or leaves it behind at `deadline`.
    pub(super) fn join(&mut self, deadline: Option<Monotonic>, clock: &Clock) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        let bell = Bell::thread();
        while !thread.is_finished() {
            match deadline {
                Some(deadline) if clock.now() >= deadline => return,
                Some(_) => {
                    bell.arm();
                    bell.park(Some(JOIN_LOOK_MAX));
                }
                None => break,
            }
        }
        // A panic has no more to say: what it took with it is known.
        drop(thread.join());
    }
}

impl JobHandle {
    /// Starts the workers of this process.
    pub(super) fn add_workers(
        &mut self,
        plan: &Plan,
        options: &RunOptions,
        host: &Host,
        built: Built,
        drivers: Option<&MakeDriver>,
    ) -> Result<(), JobError> {
        for (index, worker) in built.workers.into_iter().enumerate() {
            let thread = WorkerThread {
                name: format!("ringway-{index}"),
                cpu: plan.workers[index].map(CpuId),
                policy: options.idle,
            };
            // A worker that cannot be started leaves the others to be cancelled with the handle.
            let worker = start_worker(host, thread, worker, drivers.cloned(), self)?;
            self.add_worker(worker);
        }
        Ok(())
    }
}

fn start_worker(
    host: &Host,
    thread: WorkerThread,
    built: BuiltWorker,
    driver: Option<MakeDriver>,
    job: &JobHandle,
) -> Result<WorkerLink, HostError> {
    let BuiltWorker { bell, tasks, links } = built;
    let (commands, receive_commands) = ring(CONTROL_RING_ELEMENTS, job.bell.clone(), bell.clone());
    let (send_events, events) = ring(CONTROL_RING_ELEMENTS, bell.clone(), job.bell.clone());
    let running = tasks.iter().map(|task| task.name().to_owned()).collect();
    let clock = job.clock;
    let thread = host.spawn(thread, move || {
        let worker = Worker::new(tasks, clock, bell, receive_commands, send_events);
        match links.zip(driver) {
            Some((seed, driver)) => with_links(worker, seed, &driver, clock),
            None => worker,
        }
    })?;
    Ok(WorkerLink {
        commands,
        events,
        thread: Some(thread),
        opened: false,
        running,
        lost: false,
    })
}

/// Lets a worker drive connections. Without a driver their edges fail, which ends the job.
fn with_links(worker: Worker, seed: LinksSeed, driver: &MakeDriver, clock: Clock) -> Worker {
    match driver().and_then(|driver| Links::new(seed, driver, clock)) {
        Ok(links) => worker.with_links(links),
        Err(error) => {
            tracing::error!(%error, "a worker cannot drive connections: their edges fail");
            worker
        }
    }
}
