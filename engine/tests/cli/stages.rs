//! Jobs in stages as their users see them.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::command::{errors, job_file, json, ringway, run, started};
use crate::running::{HANG, ended, signal};

const STAGES: &str = r#"
[job]
spill_dir = "."

[sources.numbers]
connector = "generator"
rows = 20000

[operators.spilled]
type = "blocking"
input = "numbers"
spill_max = "1GiB"

[operators.sorted]
type = "sort"
input = "spilled"
order = "value DESC"
memory_max = "64KiB"

[sinks.nowhere]
connector = "blackhole"
input = "sorted"
"#;

fn spill_folders(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().starts_with("ringway-spill-"))
        .count()
}

#[test]
fn the_summary_and_the_plan_say_what_is_spilled() {
    let folder = tempfile::tempdir().unwrap();
    let path = job_file(folder.path(), STAGES);
    let output = run(&["run", path.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", errors(&output));
    let summary = json(&output);
    let spilled = &summary["blocking"][0];
    assert_eq!(
        (&summary["rows_in"], &summary["rows_out"]),
        (&20000.into(), &20000.into())
    );
    assert_eq!(
        (&spilled["name"], &spilled["rows"]),
        (&"spilled".into(), &20000.into())
    );
    assert_eq!(
        (&spilled["reads"], &summary["restarts"]),
        (&1.into(), &0.into())
    );
    assert!(spilled["bytes"].as_u64() > Some(20000), "{spilled}");
    assert!(summary["operators"][0]["spilled_bytes"].as_u64() > Some(20000));
    let text = errors(&output);
    for part in [
        "\n  blocking spilled: 20,000 rows, ",
        " spilled, read 1 time\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(spill_folders(folder.path()), 0);
    let plan = run(&["check", path.to_str().unwrap()]);
    let text = String::from_utf8(plan.stdout).unwrap();
    for part in [
        "\nstages, one after the other:\n  1: numbers > spilled.spill\n  2: spilled > sorted > nowhere\n",
        "\n  spilled spills at most 1.0 GiB to ",
        "what reads it is run again 1 time at most\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let plan = json(&run(&["check", path.to_str().unwrap(), "--json"]));
    assert_eq!(plan["stages"], serde_json::json!([[0], [1]]));
    let refused = run(&["check", path.to_str().unwrap(), "--processes", "2"]);
    assert!(
        errors(&refused)
            .contains("the blocking exchange spilled spills to the disk of one process")
    );
}

#[test]
fn what_a_failed_attempt_of_a_stage_has_written_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    // The row that fails is far down, so that others have reached the sink.
    let failing = STAGES.replace(
        "type = \"sort\"\ninput = \"spilled\"\norder = \"value DESC\"\nmemory_max = \"64KiB\"",
        "type = \"filter\"\ninput = \"spilled\"\nwhere = \"1 / (id - 19999) <= 0\"",
    );
    let rows = |restarts: u32| {
        let again = format!("spill_max = \"1GiB\"\nrestarts = {restarts}");
        let text = failing.replace("spill_max = \"1GiB\"", &again);
        let path = job_file(folder.path(), &text);
        let output = run(&["run", path.to_str().unwrap(), "--json"]);
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        let summary = json(&output);
        assert_eq!(summary["restarts"], restarts);
        summary["sinks"][0]["rows"].as_u64().expect("a number")
    };
    let once = rows(0);
    assert!(once > 0, "some rows come before the one that fails");
    assert_eq!(rows(2), once);
}

#[test]
fn what_a_killed_process_leaves_behind_goes_with_the_next_job() {
    let folder = tempfile::tempdir().unwrap();
    let slow = STAGES.replace("rows = 20000", "rows = 20000000\nrate = 1000");
    let path = job_file(folder.path(), &slow);
    let mut command = ringway(&["run", path.to_str().unwrap(), "--quiet"]);
    let child = started(&mut command);
    let since = Instant::now();
    while spill_folders(folder.path()) == 0 {
        assert!(since.elapsed() < HANG, "nothing is spilled");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, Signal::KILL);
    ended(child);
    assert_eq!(spill_folders(folder.path()), 1);
    let path = job_file(folder.path(), STAGES);
    let output = run(&["run", path.to_str().unwrap(), "--quiet"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(spill_folders(folder.path()), 0);
}

/// The thread that sorts is in the middle of it, and is not waited for.
#[test]
fn a_sort_that_is_cancelled_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (head, sorted) = STAGES.split_once("[operators.spilled]").unwrap();
    let (_, sorted) = sorted.split_once("[operators.sorted]").unwrap();
    let job = format!("{head}[operators.sorted]{sorted}")
        .replace("rows = 20000", "rows = 1000000000")
        .replace("\"spilled\"", "\"numbers\"");
    let path = job_file(folder.path(), &job);
    for _ in 0..5 {
        let child = started(&mut ringway(&["run", path.to_str().unwrap(), "--quiet"]));
        let since = Instant::now();
        while spill_folders(folder.path()) == 0 {
            assert!(since.elapsed() < HANG, "nothing is spilled");
            std::thread::sleep(Duration::from_millis(1));
        }
        signal(&child, Signal::TERM);
        let (output, _) = ended(child);
        assert_eq!(output.status.code(), Some(143), "{}", errors(&output));
        assert_eq!(spill_folders(folder.path()), 0);
    }
}
