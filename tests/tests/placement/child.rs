//! A test in a process of its own: the test binary starts itself again with the one test.

use std::env;
use std::process::{Command, Output};

use ringway_netio::probe::DENY_VARIABLE;
use rustix::thread::{CpuSet, sched_setaffinity};

const CHILD: &str = "RINGWAY_TEST_CHILD";

/// A process of its own for one test.
pub(crate) struct Child {
    test: &'static str,
    on_cpu: Option<usize>,
    variable: Option<(&'static str, &'static str)>,
}

impl Child {
    /// For the test of this path, such as `cpus::a_test`.
    pub(crate) fn of(test: &'static str) -> Self {
        Self {
            test,
            on_cpu: None,
            variable: None,
        }
    }

    /// The process may use this CPU only, as if started by `taskset`.
    pub(crate) fn on_cpu(mut self, cpu: usize) -> Self {
        self.on_cpu = Some(cpu);
        self
    }

    /// The process has this environment variable.
    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.variable = Some((name, value));
        self
    }

    /// Runs `body` there and holds the test to its success.
    pub(crate) fn run(self, body: impl FnOnce()) {
        if env::var(CHILD).is_ok_and(|test| test == self.test) {
            return body();
        }
        // An affinity is inherited from the thread that starts the process.
        let output = std::thread::scope(|scope| scope.spawn(|| self.start()).join().unwrap());
        let said = String::from_utf8_lossy(&output.stdout);
        let ran = output.status.success() && said.contains("1 passed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(ran, "{}: {}\n{said}\n{errors}", self.test, output.status);
    }

    fn start(&self) -> Output {
        if let Some(cpu) = self.on_cpu {
            let mut only = CpuSet::new();
            only.set(cpu);
            sched_setaffinity(None, &only).unwrap();
        }
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([self.test, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, self.test);
        // What this process is denied by its environment is not denied there.
        command.env_remove(DENY_VARIABLE).envs(self.variable);
        command.output().unwrap()
    }
}
