//! The end of the program is the end of those that it has started.

use rustix::process::Signal;

use crate::children::{Running, is_there, signal, wait_for};

/// Long runs, each with a process at the other end.
const SUBCOMMANDS: [&str; 2] = [
    "edge --transport socket --seconds 60",
    "latency --transport shared --seconds 60",
];

#[test]
fn a_run_that_is_ended_or_killed_leaves_no_process_behind() {
    for subcommand in SUBCOMMANDS {
        // Not INT, which a shell that runs tests in the background lets them ignore.
        for ending in [Signal::TERM, Signal::KILL] {
            let mut running = Running::start(subcommand);
            let child = running.child(None);
            // To the program alone: a terminal would interrupt both.
            signal(running.pid(), ending);
            running.0.wait().unwrap();
            wait_for("the end of the other process", || {
                (!is_there(child)).then_some(())
            });
        }
    }
}
