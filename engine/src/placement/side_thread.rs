//! Threads beside the workers.

use std::io;
use std::thread::{Builder, JoinHandle};

use super::{AllowedCpus, unpin_current_thread};

/// Starts a named thread that may run on every CPU of the process, also when the thread that
/// starts it is pinned.
///
/// Where the mask cannot be set, the thread runs with the one it inherited, and a warning
/// says so.
///
/// # Errors
/// Those of starting a thread: the process may have no more of them, or no memory.
pub fn spawn_side_thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let named = name.to_owned();
    Builder::new().name(name.to_owned()).spawn(move || {
        let unpinned = AllowedCpus::of_process().and_then(unpin_current_thread);
        if let Err(error) = unpinned {
            tracing::warn!(thread = named, %error, "a side thread keeps the CPUs it inherited");
        }
        run()
    })
}

#[cfg(test)]
mod tests {
    use super::super::pin_current_thread;
    use super::*;
    use crate::placement::allowed::cpus_of;
    use rustix::thread::sched_getaffinity;

    #[test]
    fn a_side_thread_of_a_pinned_thread_has_the_mask_of_the_process_and_its_name() {
        let allowed = AllowedCpus::of_process().unwrap();
        let pinned = std::thread::spawn(move || {
            pin_current_thread(allowed.cpus()[0]).unwrap();
            let side = spawn_side_thread("files", || {
                let name = std::thread::current().name().map(str::to_owned);
                (name, cpus_of(&sched_getaffinity(None).unwrap()))
            });
            side.unwrap().join().unwrap()
        });
        let (name, mask) = pinned.join().unwrap();
        assert_eq!(name.as_deref(), Some("files"));
        assert_eq!(mask, allowed.cpus());
    }
}
