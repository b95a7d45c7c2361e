//! Standard output and standard error that nobody reads, or that are full.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use crate::command::ringway;
use crate::running::{Running, ended};

const JOB: &str = r#"
[sources.numbers]
connector = "generator"
rows = 1000
[operators.even]
type = "filter"
input = "numbers"
where = "id % 2 = 0"
[sinks.nowhere]
connector = "blackhole"
input = "even"
"#;

/// A pipe that nobody reads any more.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("pipes can be made");
    drop(reader);
    writer.into()
}

/// A device on which there is no room.
fn full() -> Stdio {
    let device = File::options().write(true).open("/dev/full");
    device.expect("/dev/full is there").into()
}

/// The exit code of a command on a job, with these streams.
fn code(folder: &Path, args: &[&str], job: &str, stdout: Stdio, stderr: Stdio) -> Option<i32> {
    let path = folder.join("job.toml");
    std::fs::write(&path, job).expect("the folder is writable");
    let mut command = ringway(&args[..1]);
    command.arg(path).args(&args[1..]).env("RUST_LOG", "debug");
    let child = command.stdout(stdout).stderr(stderr).spawn();
    let (output, _) = ended(Running::new(child.expect("the binary runs")));
    output.status.code()
}

#[test]
fn a_job_ends_as_it_does_whoever_reads() {
    let folder = tempfile::tempdir().unwrap();
    let failing = JOB.replace("id % 2 = 0", "1 / (id - 500) > 5");
    let invalid = JOB.replace("id % 2", "ids % 2");
    for (job, expected) in [(JOB, 0), (failing.as_str(), 1), (invalid.as_str(), 2)] {
        for stderr in [closed, full] {
            for stdout in [closed, Stdio::null] {
                let code = code(folder.path(), &["run", "--json"], job, stdout(), stderr());
                assert_eq!(code, Some(expected));
            }
        }
    }
}

#[test]
fn a_summary_or_a_plan_that_is_lost_is_a_failure_unless_its_reader_left() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["run", "--json"][..], &["check"], &["check", "--json"]] {
        let with = |stdout, stderr| code(folder.path(), args, JOB, stdout, stderr);
        assert_eq!(with(full(), Stdio::null()), Some(1), "{args:?}");
        assert_eq!(with(full(), full()), Some(1), "{args:?}");
        assert_eq!(with(closed(), Stdio::null()), Some(0), "{args:?}");
        assert_eq!(with(closed(), full()), Some(0), "{args:?}");
    }
}
