//! Jobs over several processes, as their users run them.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::command::{
    ENDLESS, errors, job_file, json, ringway, run, started, until_rows_flow, written,
};
use crate::example::Example;
use crate::running::{Running, ended, signal};

/// `count` places on this host at which nobody listens.
fn free_hosts(count: usize) -> String {
    let bind = |_| TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let held: Vec<TcpListener> = (0..count).map(bind).collect();
    let address = |held: &TcpListener| held.local_addr().expect("it is bound").to_string();
    held.iter().map(address).collect::<Vec<_>>().join(",")
}

/// Starts process `process` of a job.
fn process(job: &str, hosts: &str, process: usize, args: &[&str]) -> Running {
    let number = process.to_string();
    let mut command = ringway(&["run", job, "--hosts", hosts, "--process", &number, "--json"]);
    started(command.args(args))
}

/// Starts all processes of a job.
fn all(job: &str, hosts: &str, args: &[&str]) -> Vec<Running> {
    let count = hosts.split(',').count();
    (0..count)
        .map(|number| process(job, hosts, number, args))
        .collect()
}

fn endless(folder: &Path) -> String {
    job_file(folder, &written(&spread(ENDLESS)))
        .display()
        .to_string()
}

/// A job at parallelism 2, with an exchange in front of its filter.
fn spread(job: &str) -> String {
    let filter = job.lines().find(|line| line.starts_with("where = "));
    let filter = filter.expect("it has a filter");
    job.replace("[sources", "[job]\nparallelism = 2\n\n[sources")
        .replace(filter, &format!("{filter}\nexchange = \"rebalance\""))
}

fn code_and_summary(child: Running) -> (Option<i32>, Value, String) {
    let (output, _) = ended(child);
    (output.status.code(), json(&output), errors(&output))
}

#[test]
fn the_flights_job_gives_the_same_rows_in_several_processes_as_in_one() {
    for (processes, parallelism, driver, transport, expected) in [
        ("2", "1", "auto", "socket", "socket"),
        ("2", "4", "epoll", "shared", "shared"),
        ("4", "4", "auto", "shared", "shared"),
        ("4", "4", "epoll", "socket", "socket"),
        ("2", "2", "auto", "auto", "shared"),
    ] {
        let flights = Example::in_folder_of_its_own();
        let job = flights.job();
        let options = [
            "--processes",
            processes,
            "--parallelism",
            parallelism,
            "--driver",
            driver,
            "--transport",
            transport,
        ];
        let output = run(&[&["run", job, "--json"], &options[..]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        flights.assert_outputs();
        let summary = json(&output);
        assert_eq!(summary["outcome"], "ended");
        assert_eq!(summary["rows_in"], 336_776 + 26_115);
        assert_eq!(summary["rows_out"], 115_205 + 47_488 + 45_545);
        assert_eq!(summary["discarded_rows"], 0);
        let members = summary["processes"].as_array().expect("a list");
        assert_eq!(members.len().to_string(), processes);
        assert!(members.iter().all(|member| member["outcome"] == "ended"));
        let edges = summary["edges"].as_array().expect("a list");
        let by = |transport: &str| edges.iter().filter(|e| e["transport"] == transport).count();
        assert!(by(expected) > 0, "{summary}");
        assert_eq!(by(expected) + by("local"), edges.len(), "{summary}");
        let read: u64 = summary["sources"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|source| source["rows"].as_u64().expect("a number"))
            .sum();
        assert_eq!(read, 336_776 + 26_115);
    }
}

#[test]
fn processes_that_are_started_by_hand_find_each_other_in_any_order() {
    let flights = Example::in_folder_of_its_own();
    let hosts = free_hosts(2);
    let args = ["--parallelism", "2"];
    let second = process(flights.job(), &hosts, 1, &args);
    std::thread::sleep(Duration::from_millis(400));
    let first = process(flights.job(), &hosts, 0, &args);
    for (number, child) in [first, second].into_iter().enumerate() {
        let (code, summary, errors) = code_and_summary(child);
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(summary["process"], number);
    }
    flights.assert_outputs();
}

#[test]
fn a_process_needs_the_one_port_that_is_its_own() {
    let flights = Example::in_folder_of_its_own();
    let hosts = free_hosts(2);
    let ports: Vec<u16> = hosts
        .split(',')
        .map(|host| host.rsplit(':').next().unwrap().parse().unwrap())
        .collect();
    // The ports behind them are taken, those that can be.
    let behind = ports.iter().filter_map(|port| port.checked_add(1));
    let behind = behind.filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    let _taken: Vec<TcpListener> = behind
        .filter(|held| {
            let port = held.local_addr().unwrap().port();
            !ports.contains(&port)
        })
        .collect();
    for child in all(flights.job(), &hosts, &["--parallelism", "2"]) {
        let (code, summary, errors) = code_and_summary(child);
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(summary["outcome"], "ended");
    }
    flights.assert_outputs();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    for taken in 0..2 {
        let hosts = free_hosts(2);
        let at = hosts.split(',').nth(taken).unwrap();
        let _held = TcpListener::bind(at).unwrap();
        let (code, _, errors) = code_and_summary(process(&job, &hosts, taken, &[]));
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(&format!("{at} is in use")), "{errors}");
    }
}

#[test]
fn one_that_comes_when_all_are_there_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    let hosts = free_hosts(2);
    let children = all(&job, &hosts, &[]);
    until_rows_flow(folder.path());
    let args = ["--connect-timeout", "1s"];
    let elsewhere = format!("{},127.0.0.1:0", hosts.split(',').next().unwrap());
    let (code, _, errors) = code_and_summary(process(&job, &elsewhere, 1, &args));
    assert_eq!(code, Some(2), "{errors}");
    let told = ["runs already", "does not answer", "has ended"];
    assert!(told.iter().any(|words| errors.contains(words)), "{errors}");
    signal(&children[0], Signal::INT);
    for child in children {
        assert_eq!(code_and_summary(child).0, Some(130), "the job went on");
    }
}

#[test]
fn standard_streams_of_a_process_that_has_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = ENDLESS.replace(
        "connector = \"blackhole\"",
        "connector = \"stdout\"\nprocess = 1",
    );
    assert!(text.contains("process = 1"), "{text}");
    let sink = job_file(folder.path(), &text).display().to_string();
    let other = tempfile::tempdir().unwrap();
    let text = r#"
[sources.lines]
connector = "stdin"
schema = [{ name = "id", type = "int64" }]
process = 1

[sinks.nowhere]
connector = "blackhole"
input = "lines"
"#;
    let source = job_file(other.path(), text).display().to_string();
    for (job, words) in [
        (
            &sink,
            "nowhere is to run in process 1, but the sink writes standard output",
        ),
        (
            &source,
            "lines is to run in process 1, but the source reads standard input",
        ),
    ] {
        for command in ["run", "check"] {
            let output = run(&[command, job, "--processes", "2"]);
            let said = errors(&output);
            assert_eq!(output.status.code(), Some(2), "{command}: {said}");
            assert!(said.contains(words), "{command}: {said}");
            assert!(said.contains("leave its key `process` out"), "{said}");
        }
        // Whoever starts process 1 gives it both, and in one process all is here.
        for places in [&["--hosts", "a:1,b:1"][..], &["--processes", "1"]] {
            let output = run(&[&["check", job], places].concat());
            assert!(output.status.success(), "{}", errors(&output));
        }
    }
}

#[test]
fn a_process_that_is_killed_fails_the_job_and_is_named() {
    for killed in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let job = endless(folder.path());
        // Far above the limit below, so that it is not silence that gives it away.
        let mut children = all(&job, &free_hosts(2), &["--lost-after", "10m"]);
        until_rows_flow(folder.path());
        let mut victim = children.remove(killed);
        victim.kill().unwrap();
        victim.wait().unwrap();
        let (code, summary, errors) = code_and_summary(children.remove(0));
        assert_eq!(code, Some(1), "{errors}");
        assert_eq!(summary["outcome"], "failed");
        let error = summary["error"].as_str().unwrap();
        assert!(
            error.starts_with(&format!("process {killed} (127.0.0.1:")),
            "{error}"
        );
        assert!(error.contains("died or was killed"), "{error}");
    }
}

#[test]
fn a_process_that_hangs_fails_the_job_within_its_time_and_is_named() {
    for stopped in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let job = endless(folder.path());
        let mut children = all(&job, &free_hosts(2), &["--lost-after", "3s"]);
        until_rows_flow(folder.path());
        let victim = children.remove(stopped);
        signal(&victim, Signal::STOP);
        let (code, summary, errors) = code_and_summary(children.remove(0));
        assert_eq!(code, Some(1), "{errors}");
        let error = summary["error"].as_str().unwrap();
        assert!(error.starts_with(&format!("process {stopped} ")), "{error}");
        // How long that was, which is longer on a machine that has others to run.
        let (_, silent) = error.split_once("has said nothing for ").expect(error);
        let seconds: u32 = silent.split(' ').next().unwrap().parse().expect(error);
        assert!(seconds >= 3, "{error}");
        signal(&victim, Signal::CONT);
        let (code, summary, _) = code_and_summary(victim);
        assert_eq!(
            (code, &summary["outcome"]),
            (Some(1), &Value::from("failed"))
        );
    }
}

#[test]
fn a_signal_to_any_process_cancels_all_with_the_code_of_the_signal() {
    for (signalled, sent, code) in [(0, Signal::INT, 130), (1, Signal::TERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let job = endless(folder.path());
        let children = all(&job, &free_hosts(2), &[]);
        until_rows_flow(folder.path());
        signal(&children[signalled], sent);
        for child in children {
            let (exit, summary, errors) = code_and_summary(child);
            assert_eq!(exit, Some(code), "{errors}");
            assert_eq!(summary["outcome"], "cancelled");
        }
    }
}

#[test]
fn a_drain_reaches_the_sources_of_all_processes_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // Every row passes, so that all that came in goes out, however many each subtask has made.
    let job = written(&spread(&ENDLESS.replace("id % 2 = 0", "id >= 0")));
    let job = job_file(folder.path(), &job).display().to_string();
    let children = all(&job, &free_hosts(2), &["--drain"]);
    until_rows_flow(folder.path());
    signal(&children[1], Signal::INT);
    let mut summaries = Vec::new();
    for child in children {
        let (code, summary, errors) = code_and_summary(child);
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(summary["outcome"], "ended");
        summaries.push(summary);
    }
    let rows = |name: &str| summaries[0][name].as_u64().unwrap();
    assert!(rows("rows_in") > 0);
    assert_eq!(rows("rows_in"), rows("rows_out"), "{}", summaries[0]);
    assert!(summaries.iter().all(|summary| summary["drained"] == true));
}

#[test]
fn processes_that_this_one_started_end_with_it_and_say_who_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    let mut command = ringway(&["run", &job, "--processes", "3", "--json"]);
    let child = started(&mut command);
    until_rows_flow(folder.path());
    signal(&child, Signal::INT);
    let (code, summary, said) = code_and_summary(child);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(summary["processes"].as_array().unwrap().len(), 3);

    let failing = ENDLESS.replace("id % 2 = 0", "1 / (id - 50000) > 0");
    let failing = failing.replace("[sources", "[job]\nparallelism = 2\n\n[sources");
    let job = job_file(folder.path(), &failing).display().to_string();
    let output = run(&["run", &job, "--processes", "2", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(json(&output)["error"].as_str().unwrap().contains("even["));
    assert!(
        errors(&output).contains("[1] error: "),
        "{}",
        errors(&output)
    );
}

#[test]
fn a_process_that_never_comes_is_named_and_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    let hosts = free_hosts(3);
    let args = ["--connect-timeout", "1s"];
    let first = process(&job, &hosts, 0, &args);
    let third = process(&job, &hosts, 2, &args);
    for child in [first, third] {
        let (code, summary, errors) = code_and_summary(child);
        assert_eq!(code, Some(2), "{errors}");
        assert_eq!(summary["outcome"], "invalid");
        let missing = hosts.split(',').nth(1).unwrap();
        let named = format!("process 1 ({missing}) did not come");
        assert!(errors.contains(&named), "{errors}");
    }
    let (code, summary, errors) = code_and_summary(process(&job, &hosts, 1, &args));
    assert_eq!(
        (code, &summary["outcome"]),
        (Some(2), &Value::from("invalid"))
    );
    assert!(errors.contains("process 0 does not answer"), "{errors}");
}

#[test]
fn a_process_with_another_plan_is_refused_with_both_plans() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    let hosts = free_hosts(2);
    let first = process(&job, &hosts, 0, &["--connect-timeout", "3s"]);
    let second = process(&job, &hosts, 1, &["--parallelism", "3"]);
    for child in [second, first] {
        let (code, _, errors) = code_and_summary(child);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("process 0 has the plan"), "{errors}");
        assert!(errors.contains("process 1 has"), "{errors}");
    }
}

#[test]
fn a_command_line_that_does_not_say_which_process_it_is_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    for (args, words) in [
        (&["--hosts", "a:1,b:1"][..], "--process"),
        (
            &["--hosts", "a:1,b:1", "--process", "2"],
            "no process 2 among 2",
        ),
        (&["--process", "0"], "--hosts"),
        (&["--processes", "0"], "1 to 1024"),
        (&["--processes", "2", "--lost-after", "0s"], "100 ms"),
        (&["--processes", "2", "--lost-after", "99ms"], "100 ms"),
        (
            &["--processes", "2", "--connect-timeout", "0s"],
            "more than 0",
        ),
        (
            &["--hosts", "a:1,b:1", "--processes", "2"],
            "cannot be used with",
        ),
        (
            &["--hosts", "nowhere.txt", "--process", "0"],
            "cannot be read",
        ),
    ] {
        let output = run(&[&["run", &job], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            errors(&output).contains(words),
            "{args:?}: {}",
            errors(&output)
        );
    }
}

#[test]
fn check_shows_which_process_runs_what_and_what_goes_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    let output = run(&["check", &job, "--processes", "2", "--json"]);
    let plan = json(&output);
    assert_eq!(plan["processes"], 2);
    assert_eq!(plan["chains"][0]["processes"], serde_json::json!([0, 1]));
    let link = &plan["links"][0];
    assert_eq!(
        (&link["transport"], &link["edges"], &link["edges_between"]),
        (
            &Value::from("shared or socket"),
            &Value::from(4),
            &Value::from(2)
        )
    );
    for transport in ["shared", "socket"] {
        let args = [
            "check",
            &job,
            "--processes",
            "2",
            "--json",
            "--transport",
            transport,
        ];
        let forced = json(&run(&args));
        assert_eq!(forced["links"][0]["transport"], transport);
        assert_ne!(
            forced["plan_hash"], plan["plan_hash"],
            "all must want the same"
        );
    }
    let hash = plan["plan_hash"].as_str().unwrap().to_owned();
    let again = run(&[
        "check", &job, "--hosts", "a:1,b:1", "--cores", "1", "--json",
    ]);
    assert_eq!(json(&again)["plan_hash"], Value::from(hash));
    let text = std::fs::read_to_string(&job).unwrap();
    let placed = text.replace("[sinks.nowhere]", "[sinks.nowhere]\nprocess = 1");
    let placed = job_file(folder.path(), &placed).display().to_string();
    let output = run(&["check", &placed, "--processes", "2", "--json"]);
    let chains = json(&output)["chains"].clone();
    assert_eq!(
        chains[2]["processes"],
        serde_json::json!([1, 1]),
        "{chains}"
    );
    let output = run(&["check", &placed, "--hosts", "a:1", "--json"]);
    assert!(output.status.success(), "one process runs everything");
    let alone = text.replace("[sinks.nowhere]", "[sinks.nowhere]\nprocess = 2");
    let alone = job_file(folder.path(), &alone).display().to_string();
    let output = run(&["check", &alone, "--processes", "2"]);
    assert!(
        errors(&output).contains("key sinks.nowhere: nowhere is to run in process 2"),
        "{}",
        errors(&output)
    );
    let job = job_file(folder.path(), &text).display().to_string();
    let text = run(&["check", &job, "--processes", "2"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("process/worker 0/0, 1/0"), "{text}");
    let between = "rebalance, 2 by shared or socket, 4 of";
    assert!(text.contains(between), "{text}");
}

#[test]
fn shared_memory_that_is_switched_off_is_said_of_each_edge() {
    let flights = Example::in_folder_of_its_own();
    let job = flights.job();
    let args = [
        "run",
        job,
        "--json",
        "--processes",
        "2",
        "--parallelism",
        "2",
    ];
    let mut command = ringway(&args);
    command.env("RINGWAY_DISABLE_SHARED", "1");
    let (code, summary, errors) = code_and_summary(started(&mut command));
    assert_eq!(code, Some(0), "{errors}");
    flights.assert_outputs();
    let edges = summary["edges"].as_array().expect("a list");
    let mut between = 0;
    for edge in edges.iter().filter(|edge| edge["transport"] != "local") {
        assert_eq!(edge["transport"], "socket");
        let why = edge["not_shared"].as_str().expect("a reason");
        assert!(why.contains("RINGWAY_DISABLE_SHARED"), "{why}");
        between += 1;
    }
    assert!(between > 0, "{summary}");
}

#[test]
fn a_transport_that_can_not_be_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let job = endless(folder.path());
    let refused = |args: &[&str], words: &str| {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        assert!(errors(&output).contains(words), "{}", errors(&output));
    };
    let args = ["check", &job, "--processes", "2", "--transport", "local"];
    refused(&args, "its transport is `local`");
    refused(
        &["check", &job, "--transport", "pipe"],
        "there is no transport `pipe`",
    );
    let output = run(&["check", &job, "--transport", "shared"]);
    assert!(output.status.success(), "{}", errors(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the job runs in one"), "{text}");
    let text = std::fs::read_to_string(&job).unwrap();
    let exchange = "exchange = \"rebalance\"";
    let shared = text.replace(exchange, &format!("{exchange}\ntransport = \"shared\""));
    let shared = job_file(folder.path(), &shared).display().to_string();
    refused(
        &["check", &shared],
        "none of its edges is between processes",
    );
    let output = run(&["check", &shared, "--processes", "2", "--json"]);
    assert_eq!(json(&output)["links"][0]["transport"], "shared");
}

/// Kills a process of the job at a random time, `rounds` times. What says that it ended must
/// have given all rows.
fn kill_rounds(rounds: u64, mut random: u64, transport: &str) {
    let mut killed_while_running = 0;
    let begun = Instant::now();
    let flights = Example::in_folder_of_its_own();
    let whole = run(&[
        "run",
        flights.job(),
        "--processes",
        "2",
        "--parallelism",
        "2",
    ]);
    assert!(whole.status.success(), "{}", errors(&whole));
    let usual = begun.elapsed();
    for round in 0..rounds {
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let flights = Example::in_folder_of_its_own();
        let processes = 2 + next(3) as usize;
        // One that is killed before it has come is waited for.
        let args = [
            "--parallelism",
            "2",
            "--connect-timeout",
            "5s",
            "--transport",
            transport,
        ];
        let mut children = all(flights.job(), &free_hosts(processes), &args);
        let after = Duration::from_micros(next(usual.as_micros() as u64 * 5 / 4));
        std::thread::sleep(after);
        let victim = next(processes as u64) as usize;
        children[victim].kill().unwrap();
        let codes = children
            .into_iter()
            .map(|child| ended(child).0.status.code());
        let codes: Vec<_> = codes.collect();
        let number = round + 1;
        println!(
            "round {number} of {rounds}: killed {victim} of {processes} after {after:?}: {codes:?}"
        );
        if codes.contains(&Some(0)) {
            flights.assert_outputs();
        } else {
            killed_while_running += 1;
        }
        let survivors = codes
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != victim);
        for (number, code) in survivors {
            assert!(
                code.is_some_and(|code| code <= 2),
                "process {number}: {code:?}"
            );
        }
    }
    println!("{rounds} rounds; the job failed in {killed_while_running}, and else was whole");
    assert!(killed_while_running > 0, "no kill came in time");
}

#[test]
fn a_job_whose_processes_are_killed_never_says_that_it_ended_with_rows_missing() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
    };
    let seed = number("RINGWAY_SEED").unwrap_or_else(|| std::process::id().into());
    let rounds = number("RINGWAY_KILL_ROUNDS").unwrap_or(10);
    println!("RINGWAY_SEED={seed}");
    let transport = std::env::var("RINGWAY_KILL_TRANSPORT");
    kill_rounds(rounds, seed, transport.as_deref().unwrap_or("auto"));
}
