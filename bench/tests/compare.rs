//! Goal: a script can tell by the exit code of `compare` whether something became slower.
//! Method: the program is run on files that are written here.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn case(name: &str, ours: f64) -> Value {
    json!({
        "name": name, "unit": "elements/s", "ours": ours, "baseline_name": "rtrb",
        "baseline": 100.0, "ratio": ours / 100.0, "runs": 1, "min": ours, "max": ours,
    })
}

/// A file of this test, with these cases.
fn file(name: &str, cases: &[Value]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, json!({ "cases": cases }).to_string()).unwrap();
    path
}

fn compare(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
        .arg("compare")
        .args(arguments)
        .output()
        .unwrap()
}

fn code_and_text(a: &Path, b: &Path, flags: &[&str]) -> (i32, String) {
    let mut arguments = vec![a.to_str().unwrap(), b.to_str().unwrap()];
    arguments.extend(flags);
    let output = compare(&arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn it_ends_with_0_where_nothing_became_slower_and_with_1_where_something_did() {
    let before = file("before", &[case("a", 100.0), case("b", 100.0)]);
    let after = file("after", &[case("a", 120.0), case("b", 80.0)]);
    let (code, text) = code_and_text(&before, &before, &[]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = code_and_text(&before, &after, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("1 faster, 1 slower"), "{text}");
    assert_eq!(code_and_text(&before, &after, &["--only", "a"]).0, 0);
    assert_eq!(code_and_text(&before, &after, &["--threshold", "30"]).0, 0);
}

#[test]
fn programs_read_the_rows_as_json() {
    let before = file("before-json", &[case("a", 100.0)]);
    let after = file("after-json", &[case("a", 50.0), case("new", 1.0)]);
    let (code, text) = code_and_text(&before, &after, &["--json"]);
    let parsed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &parsed["slower"]), (1, &json!(1)));
    assert_eq!(parsed["rows"][0]["verdict"], "slower");
    assert_eq!(parsed["rows"][0]["change_percent"], -50.0);
    assert_eq!(parsed["rows"][1]["verdict"], "only_in_b");
    assert!(parsed["rows"][1].get("ours_a").is_none());
}

#[test]
fn it_ends_with_2_where_it_cannot_tell() {
    let good = file("good", &[case("a", 1.0)]);
    let bad = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bad");
    std::fs::write(&bad, "no json").unwrap();
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    for arguments in [vec![good, bad], vec![good, "there/is/none"], vec![good]] {
        let output = compare(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
    let said = String::from_utf8(compare(&[good, bad]).stderr).unwrap();
    assert!(said.contains(bad), "the file is named: {said}");
}
