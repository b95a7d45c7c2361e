//! Tests that need a process of their own: the test binary runs itself again for them.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// Names the part of a test that the process is to play.
const PART: &str = "RINGWAY_TEST_PART";

/// Runs `body` in a process in which no other test runs, and fails as it does.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if std::env::var(PART).is_ok() {
        return body();
    }
    let status = command(test, "alone").status().unwrap();
    assert!(status.success(), "{test}: {status}");
}

/// The part that this process is to play in its test; none in the process that began it.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Starts this test once more for another part, with a stream to it.
pub(crate) fn spawn(test: &str, part: &str) -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let child = command(test, part)
        .stdin(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    (child, ours)
}

/// The stream to the process that began the test.
pub(crate) fn parent() -> UnixStream {
    std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .unwrap()
        .into()
}

fn command(test: &str, part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(PART, part).stdout(Stdio::null());
    command
}
