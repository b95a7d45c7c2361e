//! The same test in another process, where it plays another part.
//!
//! What goes wrong here is a failure of the test, so everything panics.

use std::env;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

const PART: &str = "RINGWAY_TEST_PART";

/// A process that runs one test of this binary. It is killed if it is not waited for.
pub struct Process {
    child: Child,
    said: BufReader<ChildStdout>,
    told: ChildStdin,
}

/// The part that the test plays in this process; nothing in the one that began.
pub fn part() -> Option<String> {
    env::var(PART).ok()
}

/// Tells the process that began, on a line of its own.
pub fn tell(key: &str, value: impl std::fmt::Display) {
    // What the harness prints before may lack its end of line.
    let line = format!("\n{key} {value}\n");
    let mut out = stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Waits for what the process that began says; nothing once it is gone.
pub fn hear() -> Option<String> {
    let mut line = String::new();
    let bytes = stdin().read_line(&mut line).unwrap();
    (bytes > 0).then(|| line.trim_end().to_owned())
}

impl Process {
    /// Starts this test, of this path, in another process for that part.
    pub fn start(test: &str, part: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(PART, part);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let told = child.stdin.take().unwrap();
        Self { child, said, told }
    }

    /// What it tells next of `key`.
    pub fn next(&mut self, key: &str) -> String {
        loop {
            let mut line = String::new();
            let bytes = self.said.read_line(&mut line).unwrap();
            assert!(bytes > 0, "it ended before it told of {key}");
            if let Some(value) = line.trim_end().strip_prefix(&format!("{key} ")) {
                return value.to_owned();
            }
        }
    }

    /// What it tells next of `key`, a number.
    pub fn number(&mut self, key: &str) -> u64 {
        self.next(key).parse().unwrap()
    }

    /// Says a line to it, which it [`hear`]s.
    pub fn say(&mut self, line: impl std::fmt::Display) {
        writeln!(self.told, "{line}").unwrap();
    }

    /// Ends it as a machine without memory would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
