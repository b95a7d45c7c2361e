//! An executor for one thread: a worker's duty cycle, beside tasks that do file I/O through
//! io_uring.
//!
//! It is glommio behind a narrow door. Only a few long-lived tasks run on it, and none of its
//! sockets and channels is used.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use glommio::{LocalExecutor, LocalExecutorBuilder, Placement};
use rustix::event::{EventfdFlags, eventfd};

use crate::event_wait::readable;
use crate::probe::{Denial, io_uring, memlock_max_bytes};

/// Locked memory below which glommio refuses to start, in bytes.
const MEMLOCK_MIN_BYTES: u64 = 512 << 10;

/// Memory that is registered for file I/O, in bytes: three rings lock it each, and a process
/// may often lock no more than 8 MiB.
const IO_MEMORY_BYTES: usize = 256 << 10;

/// After this time glommio interrupts tasks that keep each other running, to look at timers
/// and I/O.
///
/// It is long, because a short one loses wake-ups: where this timer fires between glommio's
/// look at I/O and its look at runnable tasks, it takes "interrupted" for "nothing to run" and
/// sleeps over them. A thread that others push off its core for longer than the timer gets
/// there; with half a millisecond it did once in a thousand waits on a busy machine. So a task
/// that spins asks for a look at I/O itself, with [`IoTurn`].
const PREEMPT_TIMER: Duration = Duration::from_secs(1);

/// The longest wait for I/O that is ready already.
const IO_TURN_MAX: Duration = Duration::from_millis(10);

/// Longer than anything runs, and short enough to be added to the time of a host: a century.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// An executor, bound to the thread that made it.
pub struct Executor {
    inner: LocalExecutor,
}

/// Makes the executor look at its timers and at I/O, for a task that always has something to
/// do: [`yield_now`] alone lets only the tasks run that are runnable already. It costs some
/// microseconds; once in a millisecond is often enough.
#[derive(Debug)]
pub struct IoTurn {
    /// Its count is never taken, so it is always readable.
    ready: OwnedFd,
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

    /// Makes an executor for the calling thread, which its messages call `name`.
    ///
    /// It starts a thread of its own for calls that block, which inherits the affinity of
    /// the calling one: so the calling thread pins itself after this, not before.
    ///
    /// # Errors
    /// As for [`Executor::support`]; also if there are not enough descriptors for its rings.
    pub fn new(name: &str) -> Result<Self, Denial> {
        Self::support()?;
        let builder = LocalExecutorBuilder::new(Placement::Unbound)
            .name(name)
            .preempt_timer(PREEMPT_TIMER)
            .io_memory(IO_MEMORY_BYTES);
        // It panics where a ring of its own for probing cannot be made, though ours could.
        let made = catch_unwind(AssertUnwindSafe(|| builder.make()));
        let cause = match made {
            Ok(Ok(inner)) => return Ok(Self { inner }),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => message_of(&*panic),
        };
        Err(Denial::new(
            format!("the executor {name} cannot start ({cause})"),
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

impl IoTurn {
    /// A turn that can be taken any number of times.
    ///
    /// # Errors
    /// No descriptor is left: raise the limit of open files.
    pub fn new() -> io::Result<Self> {
        let ready = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { ready })
    }

    /// Waits until the executor has looked at its timers and at I/O.
    ///
    /// # Errors
    /// As for [`readable`]: go on, and take the next turn.
    ///
    /// # Panics
    /// Outside of an [`Executor`].
    pub async fn take(&self) -> io::Result<()> {
        // To wait for what is ready is the only way to have the executor look.
        readable(self.ready.as_fd(), IO_TURN_MAX).await.map(drop)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("id", &self.inner.id())
            .finish()
    }
}

/// Lets the other runnable tasks of the executor run. See [`IoTurn`] for those that wait.
pub async fn yield_now() {
    futures_lite::future::yield_now().await;
}

/// Sleeps for at least `time`; the other tasks run meanwhile.
///
/// # Panics
/// Outside of an executor.
pub async fn sleep(time: Duration) {
    glommio::timer::sleep(time.min(TIME_MAX)).await;
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
