//! Making the tasks of a process on a thread of its own: operators, sources and sinks may take
//! long to be made, and a process that is one of several has to be heard of meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringway_shm::{Bell, Consumer, PopError, ring};

use crate::job::build::{BuildError, Built, OpenPart};
use crate::job::plan::Plan;
use crate::job::remote::MakeDriver;
use crate::placement::spawn_side_thread;
use crate::worker::{Host, HostError, panic_text};

use super::{JobError, JobHandle, RunOptions};

/// The name of the thread.
const THREAD_NAME: &str = "ringway-make";

/// Tasks that are being made, and how they are to be run.
pub(super) struct Making {
    made: Consumer<Result<Built, BuildError>>,
    /// The name of the task that is being made.
    at: Arc<Mutex<String>>,
    plan: Plan,
    options: RunOptions,
    host: Host,
    drivers: Option<MakeDriver>,
}

impl Making {
    /// Begins to make the tasks of `part`. `bell` rings when they are made.
    pub(super) fn start(
        part: OpenPart,
        plan: &Plan,
        options: &RunOptions,
        host: Host,
        drivers: Option<MakeDriver>,
        bell: &Bell,
    ) -> Result<Self, JobError> {
        let (mut tell, made) = ring(1, Bell::thread(), bell.clone());
        let making = Self {
            made,
            at: Arc::default(),
            plan: plan.clone(),
            options: options.clone(),
            host,
            drivers,
        };
        let (plan, at) = (plan.clone(), Arc::clone(&making.at));
        let thread = spawn_side_thread(THREAD_NAME, move || {
            // There is room for the one answer, and whoever is gone needs none.
            drop(tell.try_push(make(part, &plan, &at)));
        });
        let name = THREAD_NAME.to_owned();
        thread.map_err(|cause| HostError::Thread { name, cause })?;
        Ok(making)
    }

    /// The task that is being made.
    pub(super) fn task(&self) -> String {
        lock(&self.at).clone()
    }
}

fn make(part: OpenPart, plan: &Plan, at: &Mutex<String>) -> Result<Built, BuildError> {
    let mut begins = |name| *lock(at) = name;
    // What was half made is dropped with the panic.
    let made = catch_unwind(AssertUnwindSafe(|| part.build(plan, None, &mut begins)));
    made.unwrap_or_else(|panic| {
        Err(BuildError::Operator {
            operator: lock(at).clone(),
            message: format!("it panicked: {}", panic_text(&*panic)),
        })
    })
}

fn lock(at: &Mutex<String>) -> MutexGuard<'_, String> {
    at.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JobHandle {
    /// Starts the workers once their tasks are made, unless the job is being stopped.
    pub(super) fn take_made(&mut self) {
        let Some(making) = &mut self.making else {
            return;
        };
        let made = match making.made.try_pop() {
            Ok(made) => made,
            Err(PopError::Empty) => return,
            // The thread answers whatever happens on it, so this is not expected.
            Err(PopError::Finished | PopError::Abandoned) => Err(BuildError::Operator {
                operator: making.task(),
                message: "nobody makes it any more".to_owned(),
            }),
        };
        let Some(making) = self.making.take() else {
            return;
        };
        let added = match made {
            Ok(_) if self.stopping.is_some() => {
                self.given_up = true;
                Ok(())
            }
            Ok(built) => {
                let drivers = making.drivers.as_ref();
                self.add_workers(&making.plan, &making.options, &making.host, built, drivers)
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = added {
            self.cannot_be_made(error);
        }
    }
}
