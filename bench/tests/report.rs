//! Goal: one command leaves a report that has everything, also what failed, in three forms that
//! agree. Method: the program is run on few cases at smoke size, and its files are read back.
//! What a browser makes of the page is looked at by `scripts/report-check`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ringway_bench::Report;

/// A folder of this test, which is not there yet.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be left from an earlier run, or not be there.
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn report(out: &Path, words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
        .args(["report", "--out"])
        .arg(out)
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

fn read(out: &Path, name: &str) -> String {
    std::fs::read_to_string(out.join(name)).unwrap()
}

fn json(out: &Path) -> Report {
    serde_json::from_str(&read(out, "report.json")).unwrap()
}

fn names(report: &Report) -> Vec<(&str, &str)> {
    let cases = report.cases.iter();
    cases
        .map(|case| (case.name.as_str(), case.baseline_name.as_str()))
        .collect()
}

#[test]
fn a_report_has_the_cases_of_all_its_parts_in_three_forms() {
    let out = folder("three-forms");
    let words = "--smoke --runs 1 --part ring --part columnar --only /single";
    let output = report(&out, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("part 2 of 2: columnar"), "{said}");
    let report = json(&out);
    assert_eq!(report.cases.len(), 9, "three loads beside three queues");
    assert!(report.host.is_some() && !report.date.is_empty());
    let command = &report.command;
    for words in [
        "--part ring --part columnar",
        "--only /single",
        "--smoke --runs 1",
    ] {
        assert!(command.contains(words), "{command}");
    }
    let (html, markdown) = (read(&out, "report.html"), read(&out, "report.md"));
    for case in &report.cases {
        assert!(
            case.rerun.starts_with("ringway-bench ring --only ring/"),
            "{}",
            case.rerun
        );
        assert!(html.contains(&format!("<tr data-name=\"{}\"", case.name)));
        assert!(markdown.contains(&case.name));
    }
}

#[test]
fn a_report_is_drawn_again_from_its_file() {
    let (out, again) = (folder("first"), folder("again"));
    let output = report(&out, "--smoke --runs 1 --part columnar");
    assert!(output.status.success());
    let file = out.join("report.json");
    let output = report(&again, &format!("--from {}", file.display()));
    assert!(output.status.success());
    assert_eq!(json(&out), json(&again));
    for name in ["report.html", "report.md"] {
        assert_eq!(read(&out, name), read(&again, name), "{name}");
    }
    let some = folder("some");
    let words = format!("--from {} --only columnar/view --exact", file.display());
    assert!(report(&some, &words).status.success());
    assert_eq!(names(&json(&some)), [("columnar/view", "by hand")]);
}

#[test]
fn a_part_that_fails_is_in_the_report_and_does_not_end_the_others() {
    let out = folder("failed");
    let words = "--smoke --runs 1 --part job --part columnar --only /flights --data there/is/none";
    let output = report(&out, &format!("{words} --part idle"));
    assert_eq!(output.status.code(), Some(1));
    let report = json(&out);
    let [failed] = &report.failed[..] else {
        panic!("one part failed: {report:?}");
    };
    assert_eq!(failed.name, "job");
    assert!(
        failed.why.contains("flights"),
        "in its own words: {}",
        failed.why
    );
    assert!(
        failed.rerun.starts_with("ringway-bench job "),
        "{}",
        failed.rerun
    );
    assert!(read(&out, "report.html").contains("<tr class=\"failed\">"));
    assert!(read(&out, "report.md").contains("## Failed"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 failed"), "{said}");
}

#[test]
fn what_selects_nothing_is_an_error_that_says_what_there_is() {
    let out = folder("nothing");
    let output = report(&out, "--part jobs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("columnar"), "{said}");
    let output = report(&out, "--smoke --part columnar --only there/is/none");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no case was selected"));
}
