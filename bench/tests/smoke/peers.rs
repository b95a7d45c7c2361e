//! What people would pick instead: every contender gives right results, and one that is not built
//! in is left out with the reason.

use super::running::{checked, report_of_a_process};

/// The cases that were measured and those that were left out, as names and baselines.
fn peers(group: &str) -> (Vec<(String, String)>, Vec<(String, String)>) {
    let words = format!("peers --only peers/{group}/");
    let report = report_of_a_process(&words);
    let mut left_out = Vec::new();
    for one in &report.left_out {
        assert!(one.why.contains("--features"), "{one:?}");
        left_out.push((one.name.clone(), one.baseline_name.clone()));
    }
    let cases = checked(report, &words).into_iter();
    let mut measured: Vec<_> = cases.map(|case| (case.name, case.baseline_name)).collect();
    measured.sort();
    left_out.sort();
    (measured, left_out)
}

/// Cases of these names and baselines are measured where they are built in, and else left out.
fn are_measured(group: &str, expected: &[(&str, &[&str])]) {
    let is_built = |baseline: &str| {
        let features = [
            ("crossbeam-channel", cfg!(feature = "crossbeam-channel")),
            ("flume", cfg!(feature = "flume")),
            ("iceoryx2", cfg!(feature = "iceoryx2")),
            ("timely", cfg!(feature = "timely")),
            ("zeromq", cfg!(feature = "zeromq")),
            ("aeron", cfg!(feature = "aeron")),
        ];
        let mut of_it = features
            .iter()
            .filter(|(name, _)| baseline.starts_with(name));
        of_it.all(|(_, is_built)| *is_built)
    };
    let all = expected.iter().flat_map(|(name, baselines)| {
        let pair = |baseline: &&str| ((*name).to_owned(), (*baseline).to_owned());
        baselines.iter().map(pair).collect::<Vec<_>>()
    });
    let (mut wanted, mut missing): (Vec<_>, Vec<_>) = all.partition(|(_, one)| is_built(one));
    // A crate that is missing is named once a case, whatever its forms.
    for (_, baseline) in &mut missing {
        *baseline = baseline.trim_end_matches(" blocking").to_owned();
    }
    wanted.sort();
    missing.sort();
    missing.dedup();
    let (measured, left_out) = peers(group);
    assert_eq!(measured, wanted);
    assert_eq!(left_out, missing);
}

#[test]
fn queues_within_a_process_are_measured_beside_the_ring() {
    let polled = [
        "rtrb",
        "std sync_channel",
        "tokio mpsc",
        "tokio mpsc tasks",
        "crossbeam-channel",
        "flume",
    ];
    let mut single = polled.to_vec();
    single.extend(["mutex+condvar", "mutex+condvar on edge"]);
    let asleep = [
        "std sync_channel blocking",
        "crossbeam-channel blocking",
        "flume blocking",
    ];
    single.extend(asleep);
    let mut parked = asleep.to_vec();
    parked.extend(["mutex+condvar", "tokio mpsc tasks"]);
    let spinning = [
        "rtrb",
        "std sync_channel",
        "tokio mpsc",
        "crossbeam-channel",
        "flume",
    ];
    are_measured(
        "process",
        &[
            ("peers/process/u64/single", &single),
            ("peers/process/u64/chunk", &polled),
            ("peers/process/64B/single", &single),
            ("peers/process/64B/chunk", &polled),
            ("peers/process/record_batch/single", &single),
            ("peers/process/record_batch/chunk", &polled),
            ("peers/process/rtt/spin", &spinning),
            ("peers/process/rtt/park", &parked),
        ],
    );
}

#[test]
fn ways_between_processes_are_measured_beside_the_link() {
    let streams = ["iceoryx2", "aeron", "unix stream", "pipe"];
    are_measured(
        "host",
        &[
            ("peers/host/64B", &streams),
            ("peers/host/16KiB", &streams),
            ("peers/host/256KiB", &streams),
            ("peers/host/rtt/spin", &["iceoryx2", "aeron"]),
            ("peers/host/rtt/park", &["unix stream", "pipe"]),
        ],
    );
}

#[test]
fn ways_over_tcp_are_measured_beside_the_edge() {
    let streams = [
        "raw tcp",
        "raw tcp polled",
        "tokio coalesced",
        "tokio framed",
        "arrow-flight",
        "arrow-flight exchange",
        "zeromq",
    ];
    let trips = ["raw tcp", "tokio framed", "arrow-flight exchange", "zeromq"];
    are_measured(
        "tcp",
        &[
            ("peers/tcp/int64/1", &streams),
            ("peers/tcp/int64/1024", &streams),
            ("peers/tcp/int64/65536", &streams),
            ("peers/tcp/string100/1024", &streams),
            ("peers/tcp/row/spin/p50", &["raw tcp polled"]),
            ("peers/tcp/row/spin/p99", &["raw tcp polled"]),
            ("peers/tcp/row/adaptive/p50", &trips),
            ("peers/tcp/row/adaptive/p99", &trips),
        ],
    );
}

#[test]
fn the_exchange_of_another_engine_is_measured_beside_ours() {
    are_measured(
        "engine",
        &[
            ("peers/engine/exchange", &["timely"]),
            ("peers/engine/exchange/rows", &["timely"]),
            ("peers/engine/exchange/2processes", &["timely"]),
        ],
    );
}
