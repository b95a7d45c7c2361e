//! Threads beside the workers, for whatever may block.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use crate::placement::spawn_side_thread;

use crate::connect::ConnectError;

/// Starts the named thread `name` on every CPU that this process may use, whatever the calling
/// thread is pinned to. It runs `body`; a panic of that is caught and given to `on_panic` as
/// text.
///
/// # Errors
/// [`ConnectError::Thread`] when the system refuses another thread.
pub(crate) fn spawn<S: Send + 'static>(
    name: &str,
    mut state: S,
    body: impl FnOnce(&mut S) + Send + 'static,
    on_panic: impl FnOnce(&mut S, String) + Send + 'static,
) -> Result<JoinHandle<()>, ConnectError> {
    let run = move || {
        // The state is only told of the panic afterwards, so nothing broken is relied on.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&mut state))) {
            on_panic(&mut state, panic_text(&*panic));
        }
    };
    spawn_side_thread(name, run).map_err(|error| ConnectError::Thread {
        name: name.to_owned(),
        reason: error.to_string(),
    })
}

/// What `body` gives, or what its panic says: for libraries that panic at what others wrote.
pub(crate) fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    // What it worked on is not used after a panic.
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| panic_text(&*panic))
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
