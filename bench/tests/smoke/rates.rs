//! What is measured over a range: of sizes, of loads, of edges, and of kinds of data.

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use ringway_bench::Report;

use super::running::{
    assert_keys, beside, print, smoke, smoke_in_a_process, smoke_over_each_transport,
};

#[test]
fn throughput_is_measured_over_the_bytes_of_a_row() {
    let cases = smoke_over_each_transport("sizes");
    let mut expected = Vec::new();
    for (transport, baseline) in [
        ("local", "bare ring"),
        ("shared", "memfd ring"),
        ("socket", "raw tcp"),
    ] {
        for bytes in [8, 16, 64, 256, 1024, 16_384] {
            expected.push((format!("sizes/{transport}/bytes/{bytes}"), baseline));
        }
    }
    assert_keys(&cases, &expected);
    assert!(cases.iter().all(|case| case.unit == "bytes/s"));
}

#[test]
fn latency_is_measured_against_the_load_that_is_offered() {
    let cases = smoke_over_each_transport("load");
    let mut expected = Vec::new();
    for (transport, baseline) in [
        ("local", "rtrb"),
        ("shared", "memfd ring"),
        ("socket", "raw tcp"),
    ] {
        for idle in ["spin", "adaptive", "park"] {
            for rate in [1_000, 5_000] {
                expected.push((format!("load/{transport}/{idle}/{rate}"), baseline));
            }
        }
    }
    assert_keys(&cases, &expected);
    for case in &cases {
        assert!(!case.percentiles.is_empty(), "{case:?}");
        assert!(case.held_share.is_some() && case.baseline_held_share.is_some());
    }
}

#[test]
fn latencies_of_every_run_are_logged_for_other_tools() {
    let path = std::env::temp_dir().join(format!("ringway-smoke-{}.hlog", std::process::id()));
    let text = print(&format!(
        "ringway-bench load --transport local --only /spin/ --smoke --json --runs 1 --hdr-log {}",
        path.display()
    ));
    let cases = serde_json::from_str::<Report>(&text).unwrap().cases;
    let log = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut tags = Vec::new();
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            tags.push(interval.tag().unwrap().as_str().to_owned());
            // In milliseconds.
            assert!(interval.max() > 0.0);
        }
    }
    tags.sort();
    let mut expected: Vec<String> = cases
        .iter()
        .flat_map(|case| ["ours", "rtrb"].map(|who| format!("{}={who}", case.name)))
        .collect();
    expected.sort();
    assert_eq!(tags, expected);
}

#[test]
fn latencies_of_local_edges_are_measured_beside_rtrb_and_a_futex() {
    let cases = smoke("latency --transport local");
    let mut expected = Vec::new();
    for (idle, baseline) in [("spin", "rtrb"), ("adaptive", "rtrb"), ("park", "futex")] {
        for percentile in ["p50", "p99", "p999"] {
            expected.push((format!("latency/local/row/{idle}/{percentile}"), baseline));
        }
    }
    assert_keys(&cases, &expected);
}

#[test]
fn throughput_is_measured_over_the_number_of_edges_and_in_shuffles() {
    let cases = smoke_over_each_transport("scale");
    let mut expected = Vec::new();
    for transport in ["local", "shared", "socket"] {
        for edges in [1, 10] {
            expected.push((format!("scale/{transport}/edges/{edges}"), "one edge"));
        }
        for shuffle in ["1x1", "2x2", "4x4", "8x8", "1x8"] {
            expected.push((format!("scale/{transport}/shuffle/{shuffle}"), "1x1"));
        }
    }
    assert_keys(&cases, &expected);
}

#[test]
fn memory_is_measured_over_the_number_of_edges() {
    let cases = smoke_in_a_process("memory");
    let mut expected = Vec::new();
    for transport in ["local", "shared", "socket"] {
        for edges in [1, 10] {
            expected.push((format!("memory/{transport}/edges/{edges}"), "limit"));
            expected.push((format!("memory/{transport}/used/{edges}"), "idle"));
            if transport == "shared" {
                expected.push((format!("memory/shared/segment/{edges}"), "arena"));
            }
        }
    }
    assert_keys(&cases, &expected);
}

#[test]
fn data_as_it_is_is_moved_over_each_transport() {
    let cases = smoke_over_each_transport("data");
    let transports: [(&str, &[&str]); 3] = [
        ("local", &["bare ring"]),
        ("shared", &["memfd ring", "socket"]),
        ("socket", &["raw tcp", "tokio coalesced", "arrow-flight"]),
    ];
    let sets = [
        "nexmark-bids",
        "nexmark-people",
        "lineitem",
        "flights",
        "strings",
        "decimals",
        "lists",
        "dictionaries",
        "nulls",
    ];
    let mut expected = Vec::new();
    for (transport, baselines) in transports {
        let names = sets.map(|set| format!("data/{transport}/{set}"));
        expected.extend(beside(&names, baselines));
    }
    assert_keys(&cases, &expected);
}
