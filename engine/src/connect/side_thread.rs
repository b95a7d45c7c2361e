//! Threads beside the workers, for whatever may block.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::ConnectError;

/// The CPUs on which this process may run, as they were before any thread was pinned.
static ALLOWED: OnceLock<Option<CpuSet>> = OnceLock::new();

/// Remembers on which CPUs this process may run, for side threads that are started later
/// from pinned threads. The first call counts. Connectors call it when they are built,
/// which is before workers are pinned; a host that pins threads earlier calls it first.
///
/// It reads the mask of the main thread, which workers never pin.
pub fn remember_allowed_cpus() {
    allowed_cpus();
}

/// Starts the named thread `name` (at most 15 bytes are seen by tools) on every CPU that
/// this process may use, whatever the calling thread is pinned to.
///
/// A panic of `body` is caught and given to `on_panic` as text.
///
/// # Errors
/// [`ConnectError::Thread`] when the system refuses another thread.
pub(super) fn spawn<S: Send + 'static>(
    name: &str,
    mut state: S,
    body: impl FnOnce(&mut S) + Send + 'static,
    on_panic: impl FnOnce(&mut S, String) + Send + 'static,
) -> Result<JoinHandle<()>, ConnectError> {
    let allowed = *allowed_cpus();
    let thread = move || {
        if let Some(allowed) = allowed {
            // Where it is refused the thread runs where it is: slower, not wrong.
            let _ = sched_setaffinity(None, &allowed);
        }
        // The state is only told of the panic afterwards, so nothing broken is relied on.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&mut state))) {
            on_panic(&mut state, panic_text(&*panic));
        }
    };
    Builder::new()
        .name(name.to_owned())
        .spawn(thread)
        .map_err(|error| ConnectError::Thread {
            name: name.to_owned(),
            reason: error.to_string(),
        })
}

fn allowed_cpus() -> &'static Option<CpuSet> {
    ALLOWED.get_or_init(|| sched_getaffinity(Some(rustix::process::getpid())).ok())
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_side_thread_of_a_pinned_thread_is_not_pinned() {
        remember_allowed_cpus();
        let allowed = allowed_cpus().expect("the mask of the main thread can be read");
        let seen = Arc::new(Mutex::new(None));
        let pinned = std::thread::spawn({
            let seen = seen.clone();
            move || {
                let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu));
                let mut one = CpuSet::new();
                one.set(first.expect("a process may run somewhere"));
                sched_setaffinity(None, &one).unwrap();
                let body = |seen: &mut Arc<Mutex<Option<CpuSet>>>| {
                    *seen.lock().unwrap() = sched_getaffinity(None).ok();
                };
                spawn("ringway-test", seen, body, |_, _| ())
                    .unwrap()
                    .join()
                    .unwrap();
            }
        });
        pinned.join().unwrap();
        assert_eq!(*seen.lock().unwrap(), Some(allowed));
    }

    #[test]
    fn a_panic_of_a_side_thread_arrives_as_text() {
        let text = Arc::new(Mutex::new(String::new()));
        spawn(
            "ringway-test",
            text.clone(),
            |_| panic!("no such luck"),
            |text, reason| *text.lock().unwrap() = reason,
        )
        .unwrap()
        .join()
        .unwrap();
        assert_eq!(*text.lock().unwrap(), "no such luck");
    }
}
