//! The `ringway` command as its users run it.
//!
//! Each test runs the built binary in a folder of its own. The flights job is the one of
//! `docs/examples`, and its outputs are compared with those that another engine computed.

use std::fs::DirEntry;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::example::Example;
use crate::running::{HANG, Running, ended, signal};

pub(crate) fn ringway(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringway"));
    command.args(args);
    let inherited = std::env::vars().filter(|(name, _)| name.starts_with("RINGWAY_"));
    for (name, _) in inherited {
        command.env_remove(name);
    }
    command.env_remove("RUST_LOG");
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    let (output, _) = ended(started(&mut ringway(args)));
    output
}

/// What it prints is small enough for the pipes to hold.
pub(crate) fn started(command: &mut Command) -> Running {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::new(command.spawn().expect("the binary runs"))
}

/// The last line of standard output.
pub(crate) fn json(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).expect("standard output is text");
    let line = text.lines().last().expect("standard output has a line");
    serde_json::from_str(line).expect("the last line is JSON")
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn job_file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("job.toml");
    let mut file = std::fs::File::create(&path).expect("the folder is writable");
    file.write_all(text.as_bytes())
        .expect("the file is writable");
    path
}

/// A job that never ends by itself.
pub(crate) const ENDLESS: &str = r#"
name = "endless"

[sources.numbers]
connector = "generator"
rate = 100000

[operators.even]
type = "filter"
input = "numbers"
where = "id % 2 = 0"

[sinks.nowhere]
connector = "blackhole"
input = "even"
"#;

/// A job that writes what [`ENDLESS`] gives to a file, so that it can be seen to run.
pub(crate) fn written(job: &str) -> String {
    let nowhere = "connector = \"blackhole\"";
    assert!(job.contains(nowhere));
    job.replace(nowhere, "connector = \"csv\"\npath = \"rows.csv\"")
}

/// Waits until a job of [`written`] in this folder has written rows.
pub(crate) fn until_rows_flow(folder: &Path) {
    // More than the line with the names of the columns.
    let has_rows = |entry: std::io::Result<DirEntry>| {
        let entry = entry.expect("an entry");
        let of_sink = entry.file_name().to_string_lossy().contains("rows");
        of_sink && entry.metadata().is_ok_and(|file| file.len() > 1_000)
    };
    let since = Instant::now();
    while !std::fs::read_dir(folder).expect("a folder").any(has_rows) {
        assert!(since.elapsed() < HANG, "no row comes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts the endless job, and waits until its rows flow.
fn endless(folder: &Path, args: &[&str]) -> Running {
    let path = job_file(folder, &written(ENDLESS));
    let mut command = ringway(&["run", path.to_str().unwrap(), "--json"]);
    let running = started(command.args(args));
    until_rows_flow(folder);
    running
}

#[test]
fn the_flights_job_gives_what_another_engine_computed_at_any_parallelism() {
    for parallelism in ["1", "2", "4"] {
        let flights = Example::in_folder_of_its_own();
        let output = run(&["run", flights.job(), "--parallelism", parallelism, "--json"]);
        assert!(output.status.success(), "{}", errors(&output));
        flights.assert_outputs();
        let summary = json(&output);
        assert_eq!(summary["outcome"], "ended");
        assert_eq!(summary["rows_in"], 336_776 + 26_115);
        assert_eq!(summary["rows_out"], 115_205 + 47_488 + 45_545);
        assert_eq!(summary["discarded_rows"], 0);
    }
}

#[test]
fn the_summary_says_how_fast_it_was_and_where_it_waited() {
    let flights = Example::in_folder_of_its_own();
    let output = run(&[
        "run",
        flights.job(),
        "--json",
        "--host",
        "thread",
        "--cores",
        "2",
    ]);
    let summary = json(&output);
    for field in ["elapsed_s", "first_row_s", "cpu_s", "rows_per_s"] {
        assert!(
            summary[field].as_f64().is_some_and(|value| value > 0.0),
            "{field}: {summary}"
        );
    }
    let latency = &summary["latency"];
    let quantiles = ["p50_us", "p99_us", "p999_us", "max_us"].map(|q| latency[q].as_f64().unwrap());
    assert!(quantiles.is_sorted() && quantiles[0] > 0.0, "{latency}");
    assert_eq!(summary["host"], "thread");
    assert_eq!(summary["workers"], 2);
    let edges = summary["edges"].as_array().unwrap();
    let hourly = edges
        .iter()
        .find(|edge| edge["name"] == "departures[0] -> hourly[0]")
        .unwrap();
    assert_eq!(hourly["rows"], 328_521);
    assert!(
        hourly["high_water"]
            .as_u64()
            .is_some_and(|depth| depth >= 1),
        "{hourly}"
    );
    assert!(hourly["blocked_s"].is_f64());
    let text = errors(&output);
    for part in [
        "flights ended after",
        "362,891 rows",
        "p99.9",
        "edge departures -> hourly",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// Two readings that are given twice, and a window that the second of them opens.
const TWICE: &str = r#"
[sources.readings]
connector = "csv"
path = "readings.csv"
watermark = { strategy = "monotonic" }
[operators.once]
type = "deduplicate"
input = "readings"
key = "value"
[operators.per_second]
type = "window"
input = "once"
size = "1s"
aggregates = ["count(*) AS n"]
[sinks.results]
connector = "blackhole"
input = "per_second"
"#;

#[test]
fn the_summary_says_what_each_operator_treated_apart() {
    let folder = tempfile::tempdir().unwrap();
    let readings = "event_time,value\n0,1\n5,1\n,2\n2000,3\n2000,3\n";
    std::fs::write(folder.path().join("readings.csv"), readings).unwrap();
    let path = job_file(folder.path(), TWICE);
    let output = run(&["run", path.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", errors(&output));
    let counts = |name: &str, untimed: u64, duplicate: u64| {
        serde_json::json!({
            "name": name,
            "late_rows": 0,
            "accepted_late_rows": 0,
            "untimed_rows": untimed,
            "duplicate_rows": duplicate,
            "spilled_bytes": 0,
        })
    };
    let expected = serde_json::json!([counts("once", 0, 2), counts("per_second", 1, 0)]);
    let summary = json(&output);
    assert_eq!(summary["operators"], expected);
    assert_eq!(
        summary["discarded_rows"], 1,
        "nothing takes `per_second.late`"
    );
    let text = errors(&output);
    for part in [
        "operator once: 2 left out as duplicates\n",
        "operator per_second: 1 without an event time\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn quiet_says_nothing_but_what_was_asked_for() {
    let flights = Example::in_folder_of_its_own();
    let output = run(&["run", flights.job(), "--quiet"]);
    assert!(output.status.success());
    assert_eq!((errors(&output).as_str(), output.stdout.len()), ("", 0));
}

#[test]
fn check_shows_the_plan_and_writes_nothing() {
    let flights = Example::in_folder_of_its_own();
    let output = run(&["check", flights.job(), "--parallelism", "2", "--cores", "1"]);
    assert!(output.status.success(), "{}", errors(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "15 tasks on 1 worker (",
        "flights > departures: 2 subtasks on worker 0, 0",
        "departures -> hourly: key, local, 4 of 1024 elements and 64 MiB each",
        "hold at most 1.6 GiB",
        "\n  temperatures: event_time Int64, origin Utf8, kind Utf8 not null, value Int64\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!flights.has_outputs());
    let plan = json(&run(&["check", flights.job(), "--json"]));
    assert_eq!(plan["valid"], true);
    assert_eq!(plan["chains"][0]["operators"][0], "flights");
    let streams = plan["streams"].as_array().unwrap();
    let hourly = streams.iter().find(|stream| stream["name"] == "hourly");
    let n = serde_json::json!({ "name": "n", "type": "Int64", "nullable": false });
    assert_eq!(hourly.unwrap()["columns"][5], n);
    assert!(plan["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
}

#[test]
fn what_cannot_be_run_is_refused_with_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = job_file(folder.path(), &ENDLESS.replace("id % 2", "ids % 2"));
    for command in ["run", "check"] {
        let output = run(&[command, path.to_str().unwrap(), "--json"]);
        assert_eq!(output.status.code(), Some(2));
        let text = errors(&output);
        assert!(
            text.contains("job.toml, line 11, key operators.even.where: "),
            "{text}"
        );
        assert!(json(&output)["error"].as_str().unwrap().contains("line 11"));
    }
    for args in [
        &["run"][..],
        &["run", "job.toml", "--parallelism", "129"],
        &["run", "job.toml", "--cores", "0"],
        &["run", "job.toml", "--idle", "sleep"],
        &["run", "nowhere.toml"],
        &["walk", "job.toml"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn options_come_from_the_environment_unless_they_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = job_file(folder.path(), ENDLESS);
    let mut command = ringway(&["check", path.to_str().unwrap(), "--json", "--idle", "park"]);
    command
        .env("RINGWAY_PARALLELISM", "3")
        .env("RINGWAY_IDLE", "spin");
    let plan = json(&command.output().unwrap());
    assert_eq!(plan["chains"][0]["subtasks"], 3);
    assert_eq!(plan["idle"], "park");
}

#[test]
fn a_job_that_fails_names_the_operator_and_says_so_by_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let job = ENDLESS.replace("id % 2 = 0", "1 / (id - 50000) > 5");
    let path = job_file(folder.path(), &job);
    let output = run(&["run", path.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let summary = json(&output);
    assert_eq!(summary["outcome"], "failed");
    let error = summary["error"].as_str().unwrap();
    assert!(
        error.contains("even[0] failed") && error.contains("division by zero"),
        "{error}"
    );
    assert!(
        errors(&output).contains("error: even[0] failed"),
        "{}",
        errors(&output)
    );
}

#[test]
fn what_fails_in_a_list_is_shown_as_the_job_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let select = "select = [\"key\", \"id\", \"1 / (id - 500) AS x\"]";
    let job = ENDLESS.replace("\"filter\"", "\"map\"");
    let job = job.replace("where = \"id % 2 = 0\"", select);
    let path = job_file(folder.path(), &job);
    let output = run(&["run", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = errors(&output);
    let told = "error: even[0] failed: `1 / (id - 500) AS x`, line 1, column 1: division by zero";
    assert!(text.contains(told), "{text}");
    assert_eq!(text.matches("division by zero").count(), 1, "{text}");
    assert!(!text.contains("uid"), "{text}");
}

#[test]
fn side_outputs_go_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let job = ENDLESS.replace("\"filter\"", "\"split\"");
    let job = job.replace(
        "input = \"even\"",
        "input = [\"even.others\"]\nparallelism = 2",
    );
    let path = job_file(folder.path(), &job.replace("rate = 100000", "rows = 100"));
    let plan = json(&run(&["check", path.to_str().unwrap(), "--json"]));
    assert_eq!(plan["links"][0]["from"], "even.others", "{plan}");
    let summary = json(&run(&["run", path.to_str().unwrap(), "--json"]));
    let edge = &summary["edges"][0]["name"];
    assert_eq!(edge, "even.others[0] -> nowhere[0]", "{summary}");
}

#[test]
fn a_plan_that_is_too_large_says_what_to_turn() {
    let folder = tempfile::tempdir().unwrap();
    let job = ENDLESS.replace("\"filter\"", "\"aggregate\"\nkey = \"key\"");
    let aggregates = "aggregates = [\"count(*) AS n\"]";
    let job = job.replace("where = \"id % 2 = 0\"", aggregates);
    let little = format!("{job}\n[job]\nmemory_max = \"1GiB\"\n");
    let path = job_file(folder.path(), &little);
    let args = ["check", path.to_str().unwrap(), "--parallelism"];
    assert_eq!(run(&[&args[..], &["16"]].concat()).status.code(), Some(0));
    let output = run(&[&args[..], &["128"]].concat());
    assert_eq!(output.status.code(), Some(2));
    for part in ["`memory_max`", "`edge_bytes_max`", "parallelism"] {
        assert!(errors(&output).contains(part), "{}", errors(&output));
    }
}

/// Ends the endless job by a signal until it has ended within a second, which a busy machine may
/// now and then not let it.
fn soon_ended_by(name: Signal, args: &[&str], is_right: impl Fn(&Output)) {
    let mut took = Vec::new();
    while took.len() < 10 {
        let folder = tempfile::tempdir().unwrap();
        let running = endless(folder.path(), args);
        signal(&running, name);
        let (output, this) = ended(running);
        is_right(&output);
        if this < Duration::from_secs(1) {
            return;
        }
        took.push(this);
    }
    panic!("never within a second: {took:?}");
}

#[test]
fn ctrl_c_cancels_within_a_second_and_reports_what_was_done() {
    for (name, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        soon_ended_by(name, &[], |output| {
            assert_eq!(output.status.code(), Some(code), "{}", errors(output));
            let summary = json(output);
            assert_eq!(summary["outcome"], "cancelled");
            let rows_in = summary["rows_in"].as_u64();
            assert!(rows_in.is_some_and(|rows| rows > 0), "{summary}");
        });
    }
}

#[test]
fn with_drain_ctrl_c_ends_the_sources_and_everything_read_is_processed() {
    soon_ended_by(Signal::INT, &["--drain"], |output| {
        assert_eq!(output.status.code(), Some(0), "{}", errors(output));
        let summary = json(output);
        assert_eq!(
            (&summary["outcome"], &summary["drained"]),
            (&"ended".into(), &true.into())
        );
        let rows_in = summary["rows_in"].as_u64().unwrap();
        assert!(rows_in > 0);
        assert_eq!(summary["rows_out"], rows_in.div_ceil(2));
    });
}

#[test]
fn a_job_can_be_told_when_to_drain() {
    let folder = tempfile::tempdir().unwrap();
    let path = job_file(folder.path(), ENDLESS);
    let output = run(&[
        "run",
        path.to_str().unwrap(),
        "--json",
        "--drain-after",
        "300ms",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    assert_eq!(json(&output)["drained"], true);
}

#[test]
fn rows_on_standard_output_are_not_mixed_with_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let job = ENDLESS
        .replace("blackhole", "stdout")
        .replace("rate = 100000", "rows = 10");
    let path = job_file(folder.path(), &job);
    let output = run(&["run", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", errors(&output));
    let text = std::str::from_utf8(&output.stdout).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(
        text.lines()
            .all(|line| line.starts_with("{\"event_time\":")),
        "{text}"
    );
    assert!(errors(&output).contains("endless ended after"));
}

#[test]
fn help_has_examples_and_every_exit_code() {
    let text = String::from_utf8(run(&["--help"]).stdout).unwrap();
    for part in [
        "ringway run docs/examples/flights.toml",
        "Exit codes",
        "130",
        "143",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = String::from_utf8(run(&["run", "--help"]).stdout).unwrap();
    for part in ["--drain", "RINGWAY_CORES", "--host", "Examples"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
