//! What hosts a worker: a thread that it has for itself, or an executor beside file I/O.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::thread::JoinHandle;

use ringway_netio::executor::{Executor, IoTurn};
use ringway_netio::probe::Denial;
use ringway_shm::{Bell, Producer, ring};

use crate::placement::{CpuId, PlacementError, pin_current_thread, spawn_side_thread};

use super::glommio_host::run_on_executor;
use super::{IdlePolicy, Worker, run_on_thread};

/// What hosts a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// A thread with nothing else on it. The default.
    #[default]
    Thread,
    /// A glommio executor: tasks that do file I/O through io_uring share the worker's thread.
    /// Where io_uring is denied, [`HostKind::Thread`] takes its place.
    Glommio,
}

/// What really hosts a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInUse {
    /// The host.
    pub kind: HostKind,
    /// Why it is not the one that was asked for.
    pub cause: Option<String>,
}

/// Starts workers. It decides once which host they get.
#[derive(Clone, Debug)]
pub struct Host {
    in_use: HostInUse,
}

/// The thread of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerThread {
    /// Its name, as the system shows it (the first 15 bytes).
    pub name: String,
    /// Where it is pinned; `None` leaves it on the CPUs of the process.
    pub cpu: Option<CpuId>,
    /// What it does when there is nothing to do.
    pub policy: IdlePolicy,
}

/// A worker that runs.
#[derive(Debug)]
pub struct HostedWorker {
    in_use: HostInUse,
    thread: JoinHandle<()>,
}

/// Why a worker did not start. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The process cannot have another thread.
    #[error("cannot start the thread of worker {name}: {cause}")]
    Thread {
        /// The worker's name.
        name: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The worker's thread cannot be pinned. It does not run unpinned instead.
    #[error("worker {name}: {cause}")]
    Placement {
        /// The worker's name.
        name: String,
        /// Why.
        cause: PlacementError,
    },
    /// The thread panicked before the worker was there.
    #[error("the thread of worker {0} panicked when it started")]
    Panicked(String),
}

type Started = Result<HostInUse, PlacementError>;

impl Host {
    /// The host `wanted`, or the plain thread where the executor cannot be had; one line of
    /// log then names the cause.
    pub fn new(wanted: HostKind) -> Self {
        let support = match wanted {
            HostKind::Thread => {
                return Self {
                    in_use: wanted.into(),
                };
            }
            HostKind::Glommio => Executor::support(),
        };
        let in_use = support.map_or_else(HostInUse::instead, |()| wanted.into());
        Self { in_use }
    }

    /// What workers get.
    pub fn in_use(&self) -> &HostInUse {
        &self.in_use
    }

    /// A bell that this host can wait for, for a worker that it is to run.
    ///
    /// # Errors
    /// No descriptor is left: raise the limit of open files.
    pub fn bell(&self) -> io::Result<Bell> {
        match self.in_use.kind {
            HostKind::Thread => Ok(Bell::thread()),
            HostKind::Glommio => Bell::descriptor(),
        }
    }

    /// Starts a thread, pins it, and makes and runs the worker on it. Returns when the thread
    /// is where it should be; opening the tasks is told by
    /// [`WorkerEvent`](super::WorkerEvent)s.
    ///
    /// The calling thread keeps its affinity, and it does not matter whether it is pinned.
    ///
    /// # Errors
    /// See [`HostError`]: the plan asks for more than the system gives; nothing was started.
    pub fn spawn(
        &self,
        thread: WorkerThread,
        make_worker: impl FnOnce() -> Worker + Send + 'static,
    ) -> Result<HostedWorker, HostError> {
        let name = thread.name.clone();
        let (started, mut starting) = ring::<Started>(1, Bell::thread(), Bell::thread());
        let wanted = self.in_use.clone();
        let running = spawn_side_thread(&name, move || run(wanted, thread, started, make_worker));
        let running = match running {
            Ok(running) => running,
            Err(cause) => return Err(HostError::Thread { name, cause }),
        };
        match starting.pop_blocking(None) {
            Ok(Ok(in_use)) => Ok(HostedWorker {
                in_use,
                thread: running,
            }),
            Ok(Err(cause)) => Err(HostError::Placement { name, cause }),
            Err(_) => Err(HostError::Panicked(name)),
        }
    }
}

impl HostInUse {
    /// The plain thread, because the executor was denied.
    fn instead(denial: Denial) -> Self {
        let cause = denial.to_string();
        tracing::warn!(cause, "workers run on plain threads, without glommio");
        Self {
            kind: HostKind::Thread,
            cause: Some(cause),
        }
    }
}

impl HostedWorker {
    /// What hosts it.
    pub fn in_use(&self) -> &HostInUse {
        &self.in_use
    }

    /// Whether all its tasks are over.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until all its tasks are over.
    ///
    /// # Errors
    /// The payload of a panic of the worker itself; those of tasks are outcomes.
    pub fn join(self) -> std::thread::Result<()> {
        self.thread.join()
    }
}

impl From<HostKind> for HostInUse {
    fn from(kind: HostKind) -> Self {
        Self { kind, cause: None }
    }
}

impl fmt::Display for HostKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread => "thread",
            Self::Glommio => "glommio",
        })
    }
}

impl FromStr for HostKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "thread" => Ok(Self::Thread),
            "glommio" => Ok(Self::Glommio),
            other => Err(format!("unknown host {other:?}: use thread or glommio")),
        }
    }
}

/// The life of a worker's thread.
fn run(
    wanted: HostInUse,
    thread: WorkerThread,
    mut started: Producer<Started>,
    make_worker: impl FnOnce() -> Worker,
) {
    // Before the pin, because the executor starts a thread of its own, which inherits.
    let (executor, in_use) = match wanted.kind {
        HostKind::Thread => (None, wanted),
        HostKind::Glommio => match executor(&thread.name) {
            Ok(executor) => (Some(executor), wanted),
            Err(denial) => (None, HostInUse::instead(denial)),
        },
    };
    let pinned = thread.cpu.map_or(Ok(()), pin_current_thread);
    let is_pinned = pinned.is_ok();
    // Whoever started this waits, so there is room and somebody to read it.
    drop(started.try_push(pinned.map(|()| in_use)));
    started.finish();
    if !is_pinned {
        return;
    }
    let mut worker = make_worker();
    match executor {
        Some((executor, io)) => executor.run(run_on_executor(worker, thread.policy, io)),
        None => run_on_thread(&mut worker, thread.policy),
    }
}

fn executor(name: &str) -> Result<(Executor, IoTurn), Denial> {
    let executor = Executor::new(name)?;
    let io = IoTurn::new().map_err(|error| Denial {
        cause: format!("the executor {name} has no eventfd ({error})"),
        what_to_do: "raise the limit of open files (`ulimit -n`)".to_owned(),
    })?;
    Ok((executor, io))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_they_are_shown() {
        for kind in [HostKind::Thread, HostKind::Glommio] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!(
            "tokio"
                .parse::<HostKind>()
                .unwrap_err()
                .contains("thread or glommio")
        );
    }

    #[test]
    fn a_denied_executor_leaves_the_plain_thread_and_the_cause() {
        let in_use = HostInUse::instead(Executor::support().err().unwrap_or(Denial {
            cause: "io_uring_setup failed".to_owned(),
            what_to_do: "allow it".to_owned(),
        }));
        assert_eq!(in_use.kind, HostKind::Thread);
        assert!(in_use.cause.unwrap().contains("io_uring"));
    }
}
