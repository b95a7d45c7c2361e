//! What a case says about the bytes that ours copies. Goal: `copied_share` tells what
//! `docs/PERFORMANCE.md` promises of it. Method: a few cases of each transport, at a size that is
//! only checked, in a process that starts the receiver as a further one of its kind.

use std::process::Command;

use ringway_bench::{Case, Report};

fn cases(words: &str) -> Vec<Case> {
    let output = Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
        .args(words.split_whitespace())
        .args(["--smoke", "--json", "--runs", "1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    report.cases
}

fn share(cases: &[Case], name: &str) -> f64 {
    let case = cases.iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("{name} was measured"));
    case.copied_share.unwrap_or_else(|| panic!("{case:?}"))
}

#[test]
fn over_a_socket_small_batches_are_copied_and_large_ones_are_not() {
    let cases = cases("edge --transport socket --only int64/ --against raw");
    assert!(cases.iter().all(|case| case.copied_share.is_some()));
    let (one, many) = (
        share(&cases, "edge/socket/int64/1"),
        share(&cases, "edge/socket/int64/65536"),
    );
    assert!(
        one >= 2.0,
        "a row is gathered with what is said about it, and taken out of a chunk"
    );
    assert!(many < 0.1, "no more than the beginning of each: {many}");
}

#[test]
fn over_shared_memory_everything_is_copied_once_into_the_segment() {
    let cases = cases("edge --transport shared --only shared/ --against memfd");
    let whole = share(&cases, "edge/shared/int64/8192");
    assert!((1.0..1.01).contains(&whole), "{whole}");
    let heads = share(&cases, "edge/shared/int64/1");
    assert!(heads > whole, "what is said about a row goes there too");
    assert_eq!(share(&cases, "edge/shared/raw64"), 1.0);
}

#[test]
fn within_a_process_nothing_is_copied() {
    let cases = cases("edge --transport local");
    assert!(cases.iter().all(|case| case.copied_share == Some(0.0)));
}

#[test]
fn what_is_copied_is_a_column_of_the_table() {
    let output = Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
        .args("edge --transport local --only local/row --smoke --runs 1".split_whitespace())
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let cells = |line: &str| {
        let cells = line.split('|').map(|cell| cell.trim().to_owned());
        cells.collect::<Vec<_>>()
    };
    let mut lines = table.lines().map(cells);
    let head = lines.next().unwrap();
    let at = head.iter().position(|cell| cell == "copied").unwrap();
    assert_eq!(lines.nth(1).unwrap()[at], "0.00", "{table}");
}
