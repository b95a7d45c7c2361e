//! Every subcommand at a size that ends in seconds. Goal: the benches run, their own checks of
//! the results hold, and what they print is what `docs/PERFORMANCE.md` describes. Method: the
//! subcommands are run in this process, and their JSON is read back.

mod peers;
mod rates;
mod running;

use std::path::Path;
use std::process::Command;

use ringway_bench::{Host, Report};
use serde_json::Value;

use running::{assert_keys, beside, keys, print, smoke, smoke_in_a_process};

/// The cases of edges of columns of both kinds.
fn edges(transport: &str) -> Vec<String> {
    let name = |kind, rows: u32| format!("edge/{transport}/{kind}/{rows}");
    let of_kind = |kind| [1, 256, 1024, 8192, 65_536].map(|rows| name(kind, rows));
    ["int64", "string100"].map(of_kind).concat()
}

#[test]
fn rings_are_measured_beside_rtrb_a_locked_queue_and_a_futex() {
    let cases = smoke("ring");
    let mut expected = Vec::new();
    for load in ["u64", "64B", "record_batch"] {
        for mode in ["single", "chunk"] {
            for baseline in ["rtrb", "mutex+condvar", "mutex+condvar on edge"] {
                expected.push((format!("ring/{load}/{mode}"), baseline));
            }
        }
    }
    expected.push(("ring/rtt/spin".to_owned(), "rtrb"));
    expected.push(("ring/rtt/park".to_owned(), "futex"));
    assert_keys(&cases, &expected);
    assert!(cases.iter().all(|case| case.line_ns.is_some()));
    let trips = cases.iter().filter(|case| case.name.contains("/rtt/"));
    assert!(trips.into_iter().all(|case| case.latency_ratio.is_some()));
}

#[test]
fn edges_are_measured_beside_the_bare_ring() {
    let cases = smoke("edge --transport local");
    let mut names = ["edge/local/row", "edge/local/batch1024"]
        .map(String::from)
        .to_vec();
    names.extend(edges("local"));
    assert_keys(&cases, &beside(&names, &["bare ring"]));
    assert!(cases.iter().all(|case| case.cpu_s_per_gb.is_some()));
}

#[test]
fn edges_over_sockets_are_measured_beside_tcp_tokio_and_flight() {
    let cases = smoke_in_a_process("edge --transport socket");
    let mut names = edges("socket");
    names.push("edge/socket-v1/int64/1024".to_owned());
    let baselines = ["raw tcp", "tokio coalesced", "arrow-flight"];
    assert_keys(&cases, &beside(&names, &baselines));
    assert!(cases.iter().all(|case| case.cpu_s_per_gb.is_some()));
}

#[test]
fn edges_over_shared_memory_are_measured_beside_a_bare_ring_sockets_and_iceoryx2() {
    let cases = smoke_in_a_process("edge --transport shared");
    let baselines = ["memfd ring", "socket", "iceoryx2", "unix stream"];
    let mut expected = beside(&edges("shared"), &baselines);
    let raw = ["edge/shared/raw64".to_owned()];
    expected.extend(beside(&raw, &["memfd ring", "iceoryx2"]));
    expected.retain(|(_, baseline)| cfg!(feature = "iceoryx2") || *baseline != "iceoryx2");
    assert_keys(&cases, &expected);
    assert!(cases.iter().all(|case| case.cpu_s_per_gb.is_some()));
    assert!(cases.iter().all(|case| case.placement.is_some()));
}

#[test]
fn latencies_over_shared_memory_are_measured_beside_a_bare_ring_iceoryx2_and_a_futex() {
    let cases = smoke_in_a_process("latency --transport shared");
    let polled: &[&str] = match cfg!(feature = "iceoryx2") {
        true => &["memfd ring", "iceoryx2"],
        false => &["memfd ring"],
    };
    let mut expected = Vec::new();
    for load in ["raw64", "row"] {
        for (mode, baselines) in [("spin", polled), ("adaptive", polled), ("park", &["futex"])] {
            for percentile in ["p50", "p99", "p999"] {
                let name = format!("latency/shared/{load}/{mode}/{percentile}");
                let cases = baselines.iter().map(|baseline| (name.clone(), *baseline));
                expected.extend(cases);
            }
        }
    }
    assert_keys(&cases, &expected);
    assert!(cases.iter().all(|case| case.unit == "us"));
}

#[test]
fn latencies_over_sockets_are_measured_beside_tcp() {
    let cases = smoke_in_a_process("latency --transport socket");
    let mut expected = Vec::new();
    for mode in ["spin", "adaptive", "adaptive-quiet", "park"] {
        for percentile in ["p50", "p99", "p999"] {
            for baseline in ["raw tcp", "raw tcp, two connections"] {
                expected.push((format!("latency/socket/row/{mode}/{percentile}"), baseline));
            }
        }
    }
    for percentile in ["p50", "p99", "p999"] {
        expected.push((format!("latency/socket/both/{percentile}"), "raw tcp"));
    }
    assert_keys(&cases, &expected);
    assert!(cases.iter().all(|case| case.unit == "us"));
}

#[test]
fn the_derive_is_measured_beside_the_same_by_hand() {
    let cases = smoke("columnar");
    let expected = [
        ("columnar/build", "by hand"),
        ("columnar/parse", "by hand"),
        ("columnar/view", "by hand"),
    ];
    assert_eq!(keys(&cases), expected);
    assert!(cases.iter().all(|case| case.unit == "ns/row"));
}

#[test]
fn jobs_give_the_result_of_the_hand_written_loop_with_one_worker_and_with_two() {
    let cases = smoke("job");
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let mut expected = Vec::new();
    for query in [
        "q0",
        "q1",
        "q2",
        "q3",
        "q5",
        "q7",
        "q8",
        "q11",
        "q12",
        "interval_join",
        "flights",
    ] {
        if query == "flights" {
            expected.extend(["job/exchange/batch", "job/exchange/rows"].map(String::from));
        }
        expected.extend([format!("job/{query}"), format!("job/{query}/2workers")]);
    }
    assert_eq!(names, expected);
    let loops = "single-threaded loop";
    let exchanges = "two threads by hand";
    assert!(cases.iter().all(|case| {
        case.baseline_name
            == if case.name.contains("exchange") {
                exchanges
            } else {
                loops
            }
    }));
}

#[test]
fn idle_jobs_and_edges_are_held_to_limits() {
    let cases = smoke("idle");
    assert_eq!(
        keys(&cases)[..2],
        [("idle/edges", "limit"), ("idle/parked_job", "limit")]
    );
}

#[test]
fn fields_that_do_not_apply_are_left_out_of_the_json() {
    let text = print("ringway-bench edge --smoke --json --runs 1");
    let parsed: Value = serde_json::from_str(&text).unwrap();
    let case = parsed["cases"][0].as_object().unwrap();
    let fields: Vec<&str> = case.keys().map(String::as_str).collect();
    for expected in [
        "name",
        "unit",
        "ours",
        "baseline_name",
        "baseline",
        "ratio",
        "runs",
    ] {
        assert!(fields.contains(&expected), "{expected} in {fields:?}");
    }
    assert!(!fields.contains(&"latency_ratio"), "{fields:?}");
    assert!(case["line_ns"]["before"].is_number() && case["line_ns"]["after"].is_number());
    assert!(case["noisy"].is_string(), "a smoke run says that it is one");
}

#[test]
fn the_line_that_a_case_comes_with_measures_that_case() {
    for case in smoke("ring --only ring/u64/single") {
        let text = Command::new("sh")
            .args(["-c", &format!("{} --json", case.rerun)])
            .env("PATH", path_with_this_program())
            .output()
            .unwrap();
        let report: Report = serde_json::from_slice(&text.stdout).unwrap();
        assert_eq!(
            keys(&report.cases),
            [(case.name.as_str(), case.baseline_name.as_str())]
        );
    }
}

fn path_with_this_program() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_ringway-bench")).parent();
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", folder.unwrap().display())
}

#[test]
fn results_are_a_table_for_people_also_later() {
    let shown = print("ringway-bench edge --smoke --runs 1");
    assert!(shown.starts_with("| case "), "{shown}");
    assert!(shown.contains("edge/local/row"), "{shown}");
}

#[test]
fn the_machine_is_described() {
    let text = print("ringway-bench host --json");
    let host: Host = serde_json::from_str(&text).unwrap();
    assert!(!host.kernel.is_empty() && host.line_ns > 0.0, "{host:?}");
    assert!(print("ringway-bench host").contains("clock source"));
}
