//! What a user of the program sees who asks for what is not there. Goal: a mistake is told at once, with what
//! would have been right, and has an exit code of its own. Method: the program is run.

use std::process::{Command, Output};

fn run(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringway-bench"))
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

/// What it says on stderr of a command line that makes no sense.
fn refused(words: &str) -> String {
    let output = run(words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{words}: {said}");
    assert!(output.stdout.is_empty(), "{words}");
    said
}

#[test]
fn a_name_that_no_case_has_is_an_error_that_tells_names_near_it() {
    let said = refused("ring --smoke --only ring/u65/single");
    assert!(said.contains("--only \"ring/u65/single\""), "{said}");
    assert!(said.contains("near it: ring/u64/single"), "{said}");
    let said = refused("ring --smoke --only ring/u64/single --against rtbr");
    assert!(said.contains("rtrb"), "{said}");
}

#[test]
fn a_folder_without_the_flights_is_an_error_that_says_where_they_should_be() {
    let said = refused("job --smoke --only job/flights --data /nowhere/at/all");
    assert!(said.contains("/nowhere/at/all/flights.parquet"), "{said}");
    assert!(said.contains("--data"), "{said}");
}

#[test]
fn cpus_that_may_not_be_used_are_an_error_that_tells_those_that_may() {
    let said = refused("ring --smoke --cpus 0,100000");
    assert!(said.contains("CPU 100000 is not allowed"), "{said}");
    assert!(said.contains("allowed: "), "{said}");
}

#[test]
fn words_that_are_not_understood_have_the_same_code() {
    refused("ring --seconds 0");
    refused("rings");
}

#[test]
fn the_help_shows_examples_and_exit_codes() {
    let help = String::from_utf8(run("--help").stdout).unwrap();
    assert!(
        help.contains("Exit codes:") && help.contains("Examples:"),
        "{help}"
    );
    for subcommand in [
        "ring", "edge", "latency", "columnar", "job", "idle", "host", "table",
    ] {
        let help = String::from_utf8(run(&format!("{subcommand} --help")).stdout).unwrap();
        assert!(
            help.contains(&format!("  ringway-bench {subcommand}")),
            "{help}"
        );
    }
}
