//! Latencies that two processes have measured. Goal: a case has those of both, and its log tells
//! them apart. Method: the case in which each of two processes sends and measures, at a size that
//! is only checked, and its log read as other tools do.

use std::collections::BTreeMap;
use std::process::Command;

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use ringway_bench::Report;

#[test]
fn latencies_of_two_processes_are_merged_and_logged_one_by_one() {
    let path = std::env::temp_dir().join(format!("ringway-merged-{}.hlog", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
        .args("latency --transport socket --only both/p50 --smoke --json --runs 1".split(' '))
        .arg("--hdr-log")
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let case = &report.cases[0];
    assert_eq!(case.name, "latency/socket/both/p50");
    let log = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut longest_ms = BTreeMap::new();
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let tag = interval.tag().unwrap().as_str().to_owned();
            longest_ms.insert(tag, interval.max());
        }
    }
    let tags: Vec<&str> = longest_ms.keys().map(String::as_str).collect();
    let expected = [
        "latency/socket/both/p50=ours/first",
        "latency/socket/both/p50=ours/second",
        "latency/socket/both/p50=raw-tcp/first",
        "latency/socket/both/p50=raw-tcp/second",
    ];
    assert_eq!(tags, expected);
    let longest_us = 1e3 * longest_ms[tags[0]].max(longest_ms[tags[1]]);
    let of_case_us = case.percentiles.last().unwrap().ours;
    assert!((of_case_us / longest_us - 1.0).abs() < 0.01, "{case:?}");
}
