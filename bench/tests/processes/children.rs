//! A run of the program, and the processes that it starts.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What takes longer than this never happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of the program. It is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(words: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        Self(child.unwrap())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Waits for a process that it has started, other than `but`.
    pub(crate) fn child(&self, but: Option<Pid>) -> Pid {
        wait_for("a process that it starts", || {
            children_of(self.pid()).find(|child| Some(*child) != but)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended can't be killed, which is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks until there is something.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what} never was there");
        sleep(Duration::from_millis(1));
    }
}

pub(crate) fn signal(to: Pid, signal: Signal) {
    kill_process(to, signal).unwrap();
}

/// Whether there is such a process, dead and not waited for ones not counted.
pub(crate) fn is_there(process: Pid) -> bool {
    state_and_parent(process.as_raw_pid()).is_some_and(|(state, _)| state != 'Z')
}

fn children_of(parent: Pid) -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<i32>().ok()
    });
    processes.filter_map(move |process| {
        let (_, of) = state_and_parent(process)?;
        (of == parent.as_raw_pid())
            .then(|| Pid::from_raw(process))
            .flatten()
    })
}

fn state_and_parent(process: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}
