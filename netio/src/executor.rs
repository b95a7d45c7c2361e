//! An executor for one thread: a worker's duty cycle, beside tasks that do file I/O through
//! io_uring.
//!
//! It is glommio behind a narrow door. Only a few long-lived tasks run on it, and none of its
//! sockets and channels is used.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use glommio::{LocalExecutor, LocalExecutorBuilder, Placement};

use crate::probe::{Denial, io_uring, memlock_max_bytes};

/// Locked memory below which glommio refuses to start, in bytes.
const MEMLOCK_MIN_BYTES: u64 = 512 << 10;

/// How an executor is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorOptions {
    /// What its messages call it.
    pub name: String,
    /// How long a task that always has something to do keeps timers and I/O of the others
    /// waiting, from 100 microseconds to 1 millisecond. Default: 500 microseconds.
    pub preempt_timer: Duration,
    /// Memory that is registered for file I/O, in bytes. Default: 256 KiB, because three
    /// rings lock it each, and a process may often lock no more than 8 MiB.
    pub io_memory_bytes: usize,
}

/// An executor, bound to the thread that made it.
pub struct Executor {
    inner: LocalExecutor,
}

impl ExecutorOptions {
    /// The defaults, under this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            preempt_timer: Duration::from_micros(500),
            io_memory_bytes: 256 << 10,
        }
    }
}

impl Executor {
    /// Whether an executor can be made in this process.
    ///
    /// # Errors
    /// io_uring is denied, or the process may lock too little memory: host workers on plain
    /// threads, and tell why.
    pub fn support() -> Result<(), Denial> {
        io_uring().usable()?;
        enough_locked_memory(memlock_max_bytes())
    }

    /// Makes an executor for the calling thread.
    ///
    /// It starts a thread of its own for calls that block, which inherits the affinity of
    /// the calling one: so the calling thread pins itself after this, not before.
    ///
    /// # Errors
    /// As for [`Executor::support`]; also if there are not enough descriptors for its rings.
    pub fn new(options: &ExecutorOptions) -> Result<Self, Denial> {
        Self::support()?;
        let builder = LocalExecutorBuilder::new(Placement::Unbound)
            .name(&options.name)
            .preempt_timer(options.preempt_timer)
            .io_memory(options.io_memory_bytes);
        // It panics where a ring of its own for probing cannot be made, though ours could.
        let made = catch_unwind(AssertUnwindSafe(|| builder.make()));
        let cause = match made {
            Ok(Ok(inner)) => return Ok(Self { inner }),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => message_of(&*panic),
        };
        Err(Denial::new(
            format!("the executor {} cannot start ({cause})", options.name),
            "raise the limits of open files (`ulimit -n`) and of locked memory (`ulimit -l`)",
        ))
    }

    /// Runs `future`, and the tasks that it starts, until it is ready.
    ///
    /// # Panics
    /// If the future panics, or an executor already runs on this thread.
    pub fn run<F>(&self, future: F) -> F::Output
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.inner.run(future)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("id", &self.inner.id())
            .finish()
    }
}

/// Lets the other tasks of the executor run, and its I/O, when their time has come.
pub async fn yield_now() {
    futures_lite::future::yield_now().await;
}

/// Sleeps for at least `time`; the other tasks run meanwhile.
///
/// # Panics
/// Outside of an executor.
pub async fn sleep(time: Duration) {
    glommio::timer::sleep(time).await;
}

fn enough_locked_memory(max_bytes: Option<u64>) -> Result<(), Denial> {
    match max_bytes {
        Some(max) if max < MEMLOCK_MIN_BYTES => Err(Denial::new(
            format!(
                "the process may lock {max} bytes of memory, its executor needs {MEMLOCK_MIN_BYTES}"
            ),
            "raise the limit (`ulimit -l 8192`)",
        )),
        _ => Ok(()),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_locked_memory_is_refused_with_limit_need_and_remedy() {
        assert_eq!(enough_locked_memory(None), Ok(()));
        assert_eq!(enough_locked_memory(Some(MEMLOCK_MIN_BYTES)), Ok(()));
        let refused = enough_locked_memory(Some(65_536)).unwrap_err().to_string();
        for part in ["65536", "524288", "ulimit -l"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
}
