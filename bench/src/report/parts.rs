//! The parts of a report: every subcommand, each in a process of its own.
//!
//! So one that fails or that leaves memory in disorder does not touch the others.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;

use crate::case::Report;
use crate::cli::CommonArgs;
use crate::error::BenchError;
use crate::progress::{LINES, Progress};
use crate::rerun;

/// All parts, in their order.
const PARTS: &[&str] = &[
    "ring",
    "edge --transport local",
    "edge --transport socket",
    "edge --transport shared",
    "latency --transport socket",
    "latency --transport shared",
    "latency --transport local",
    "load",
    "sizes",
    "scale",
    "memory",
    "data",
    "columnar",
    "job",
    "peers",
    "idle",
];

/// What this program says of an error on stderr begins with this.
const ERROR: &str = "ringway-bench: ";

/// The parts that begin with some of these words; all of them if there is none.
pub(crate) fn chosen(words: &[String]) -> Result<Vec<&'static str>, BenchError> {
    for words in words {
        if !PARTS.iter().any(|part| begins_with(part, words)) {
            return Err(BenchError::new(format!(
                "--part: no part begins with {words:?}; the parts are: {}",
                PARTS.join(", ")
            )));
        }
    }
    let wanted =
        |part: &&str| words.is_empty() || words.iter().any(|words| begins_with(part, words));
    Ok(PARTS.iter().copied().filter(wanted).collect())
}

fn begins_with(part: &str, words: &str) -> bool {
    let mut of_part = part.split_whitespace();
    words
        .split_whitespace()
        .all(|word| of_part.next() == Some(word))
}

/// Which part it is, and when the last will be over if it goes on at this pace.
pub(crate) fn progress_line(index: usize, count: usize, part: &str, passed_s: f64) -> String {
    let left = match index {
        0 => String::new(),
        done => {
            let left_s = passed_s / done as f64 * (count - done) as f64;
            format!(
                ", {} passed, about {} left",
                minutes(passed_s),
                minutes(left_s)
            )
        }
    };
    format!("part {} of {count}: {part}{left}", index + 1)
}

fn minutes(seconds: f64) -> String {
    match seconds < 90.0 {
        true => format!("{seconds:.0} s"),
        false => format!("{:.0} min", seconds / 60.0),
    }
}

/// Measures one part in a process of its own.
///
/// # Errors
/// When the process can't be started, fails, or prints no report: in its own words.
pub(crate) fn measure(
    part: &str,
    common: &CommonArgs,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(part.split_whitespace())
        .args(rerun::arguments(common))
        .arg("--json")
        .env(LINES, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take();
    // What it prints comes at its end, and may be more than a pipe holds.
    let printed = thread::spawn(move || {
        let mut text = String::new();
        stdout.map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut text))?;
        Ok::<String, std::io::Error>(text)
    });
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines() {
            let line = line?;
            progress.tell(&line);
            said.push(line);
        }
    }
    let status = child.wait()?;
    let printed = printed.join();
    if !status.success() {
        return Err(BenchError::new(reason(&said, &status.to_string())));
    }
    let printed = printed.map_err(|_| BenchError::new("its output could not be read"))??;
    serde_json::from_str(&printed)
        .map_err(|error| BenchError::new(format!("what it printed is no report: {error}")))
}

/// Why a process failed: what it said of that, or else the last that it said, and how it ended.
fn reason(said: &[String], status: &str) -> String {
    let error = said.iter().rev().find_map(|line| line.strip_prefix(ERROR));
    if let Some(error) = error {
        return error.to_owned();
    }
    let last = said.iter().rev().find(|line| !line.trim().is_empty());
    match last {
        Some(last) => format!("{status}: {last}"),
        None => status.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_part_is_a_command_line() {
        for part in chosen(&[]).unwrap() {
            let words = format!("ringway-bench {part} --json");
            assert!(Cli::try_parse_from(words.split(' ')).is_ok(), "{part}");
        }
    }

    #[test]
    fn every_subcommand_that_measures_is_a_part() {
        let others = ["host", "table", "report", "compare"];
        for subcommand in Cli::command().get_subcommands() {
            let name = subcommand.get_name();
            if !subcommand.is_hide_set() && !others.contains(&name) {
                assert!(chosen(&[name.to_owned()]).is_ok(), "{name} is in no report");
            }
        }
    }

    #[test]
    fn parts_are_chosen_by_the_words_that_they_begin_with() {
        let edges = chosen(&["edge".to_owned()]).unwrap();
        assert_eq!(edges.len(), 3, "{edges:?}");
        let two = chosen(&["job".to_owned(), "edge --transport socket".to_owned()]);
        assert_eq!(two.unwrap(), ["edge --transport socket", "job"]);
        let error = chosen(&["jo".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("columnar"),
            "it names those that there are: {error}"
        );
    }

    #[test]
    fn what_is_left_is_told_once_something_is_done() {
        assert_eq!(progress_line(0, 4, "ring", 0.2), "part 1 of 4: ring");
        assert_eq!(
            progress_line(1, 4, "job", 60.0),
            "part 2 of 4: job, 60 s passed, about 3 min left"
        );
    }

    #[test]
    fn a_failure_is_told_in_the_words_of_the_process() {
        let said = ["a warning", "ringway-bench: a row was lost", "and more"].map(String::from);
        assert_eq!(reason(&said, "exit status: 1"), "a row was lost");
        assert_eq!(reason(&said[..1], "signal: 9"), "signal: 9: a warning");
        assert_eq!(reason(&[], "signal: 9"), "signal: 9");
    }
}
