//! Processes that do not outlive their test, whatever becomes of either.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// Far longer than anything takes here, so that only a hang reaches it.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// A process that is killed when it is dropped before its end, and after [`HANG`] in any case: what
/// waits for its words then finds the end of them.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn new(child: Child) -> Self {
        let process = pidfd_open(pid(&child), PidfdFlags::empty()).expect("it is a child");
        std::thread::spawn(move || {
            let limit = Timespec {
                tv_sec: HANG.as_secs().cast_signed(),
                tv_nsec: 0,
            };
            // Readable when the process is over, and it names that one for ever.
            let mut over = [PollFd::new(&process, PollFlags::IN)];
            if poll(&mut over, Some(&limit)) == Ok(0) {
                let _ = pidfd_send_signal(&process, Signal::KILL);
            }
        });
        Self(Some(child))
    }

    /// Waits for its end, and gives what it has said since.
    pub(crate) fn wait_with_output(mut self) -> Output {
        let child = self.0.take().expect("it is waited for once");
        child.wait_with_output().expect("it ran")
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it is waited for once")
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is waited for once")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(pid(child), signal).expect("the process is there");
}

/// Waits for the end, and says how long it took.
pub(crate) fn ended(mut running: Running) -> (Output, Duration) {
    let since = Instant::now();
    while running.try_wait().expect("it is a child").is_none() {
        assert!(since.elapsed() < HANG, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = since.elapsed();
    (running.wait_with_output(), took)
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}
