//! How a subcommand is run, and what holds of the cases of each.

use std::process::Command;

use clap::Parser;
use ringway_bench::{Case, Cli, Report, run};

/// What the program says.
pub(crate) fn print(words: &str) -> String {
    let cli = Cli::try_parse_from(words.split_whitespace()).unwrap();
    let answer = run(&cli).unwrap();
    assert!(answer.is_good, "{}", answer.text);
    answer.text
}

/// The cases of a subcommand, at smoke size.
pub(crate) fn smoke(subcommand: &str) -> Vec<Case> {
    let text = print(&format!(
        "ringway-bench {subcommand} --smoke --json --runs 1"
    ));
    assert_eq!(text.lines().count(), 1, "one object on one line");
    checked(serde_json::from_str(&text).unwrap(), subcommand)
}

/// As [`smoke`], in a process of its own: it starts further ones of its kind.
pub(crate) fn smoke_in_a_process(subcommand: &str) -> Vec<Case> {
    checked(report_of_a_process(subcommand), subcommand)
}

/// As [`smoke`], with each transport in turn.
pub(crate) fn smoke_over_each_transport(subcommand: &str) -> Vec<Case> {
    let mut cases = smoke(&format!("{subcommand} --transport local"));
    for transport in ["shared", "socket"] {
        let subcommand = format!("{subcommand} --transport {transport}");
        cases.extend(smoke_in_a_process(&subcommand));
    }
    cases
}

/// What a process of its own has measured.
pub(crate) fn report_of_a_process(subcommand: &str) -> Report {
    let words = format!("{subcommand} --smoke --json --runs 1");
    let output = Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
        .args(words.split_whitespace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The cases of a report, each of which holds what is said of every case.
pub(crate) fn checked(report: Report, subcommand: &str) -> Vec<Case> {
    report.cases.iter().for_each(check);
    for case in &report.cases {
        check_rerun(case, &report.cases, subcommand);
    }
    let host = report.host.as_ref().unwrap();
    assert_eq!(report.version, host.version);
    assert!(report.date.ends_with('Z'), "{}", report.date);
    let again = parsed(&report.command);
    assert_eq!(
        format!("{again:?}"),
        format!("{:?}", parsed(&words(subcommand)))
    );
    report.cases
}

/// Of all cases of the subcommand, the line selects this one.
fn check_rerun(case: &Case, all: &[Case], subcommand: &str) {
    let cli = parsed(&case.rerun);
    let original = parsed(&words(subcommand));
    assert_eq!(
        format!("{:?}", cli.command),
        format!("{:?}", original.command),
        "{}",
        case.rerun
    );
    let selected: Vec<&Case> = all
        .iter()
        .filter(|one| cli.selects(&one.name, &one.baseline_name))
        .collect();
    assert_eq!(selected, [case], "{}", case.rerun);
}

fn words(subcommand: &str) -> String {
    format!("ringway-bench {subcommand} --smoke --runs 1")
}

/// A command line as a shell splits it: at spaces that are not between quotes.
fn parsed(line: &str) -> Cli {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    Cli::try_parse_from(words).unwrap()
}

fn check(case: &Case) {
    let ratio = case.ratio.or(case.latency_ratio).unwrap();
    assert!(ratio.is_finite(), "{case:?}");
    assert!(
        case.ratio.is_none() || case.latency_ratio.is_none(),
        "bigger or smaller is better, not both: {case:?}"
    );
    for value in [case.ours, case.baseline, case.min, case.max] {
        assert!(value.is_finite(), "{case:?}");
    }
    assert!(case.min <= case.ours && case.ours <= case.max, "{case:?}");
    assert!(case.runs >= 1, "{case:?}");
    assert_eq!(case.runs_ours.len(), case.runs, "{case:?}");
    let limit = case.baseline_name == "limit";
    assert!(limit || case.runs_baseline.len() == case.runs, "{case:?}");
}

/// Names and baselines.
pub(crate) fn keys(cases: &[Case]) -> Vec<(&str, &str)> {
    let keys = cases.iter();
    keys.map(|case| (case.name.as_str(), case.baseline_name.as_str()))
        .collect()
}

/// The cases are these, by name and baseline, in this order.
pub(crate) fn assert_keys(cases: &[Case], expected: &[(String, &str)]) {
    let expected = expected.iter();
    let expected = expected.map(|(name, baseline)| (name.as_str(), *baseline));
    assert_eq!(keys(cases), expected.collect::<Vec<_>>());
}

/// Each of these names beside each of these baselines.
pub(crate) fn beside<'a>(names: &[String], baselines: &[&'a str]) -> Vec<(String, &'a str)> {
    let pairs = |name: &String| {
        let name = name.clone();
        baselines
            .iter()
            .map(move |baseline| (name.clone(), *baseline))
    };
    names.iter().flat_map(pairs).collect()
}
