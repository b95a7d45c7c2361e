//! The command lines that measure the same again.

use crate::cli::{Bench, CommonArgs, SECONDS};

const PROGRAM: &str = "ringway-bench";

/// The command line that measures all of it again.
pub(crate) fn of_all(bench: &Bench, common: &CommonArgs) -> String {
    let mut words = bench.words();
    words.extend(arguments(common));
    line(&words)
}

/// The command line that measures this pair again, and nothing else.
pub(crate) fn of_pair(
    bench: &Bench,
    common: &CommonArgs,
    name: &str,
    baseline_name: &str,
) -> String {
    let mut words = bench.words();
    words.extend(["--only".to_owned(), name.to_owned()]);
    words.extend(["--against".to_owned(), baseline_name.to_owned()]);
    words.push("--exact".to_owned());
    words.extend(conditions(common));
    line(&words)
}

/// The command line that measures a part of a report, which is these words of one.
pub(crate) fn line_of_part(part: &str, common: &CommonArgs) -> String {
    let mut words: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
    words.extend(arguments(common));
    line(&words)
}

/// The arguments by which another process of this program measures the same cases, in the same
/// way.
pub(crate) fn arguments(common: &CommonArgs) -> Vec<String> {
    let mut words = selection(common);
    words.extend(conditions(common));
    words
}

/// Which cases.
fn selection(common: &CommonArgs) -> Vec<String> {
    let mut words = Vec::new();
    for (flag, text) in [("--only", &common.only), ("--against", &common.against)] {
        if let Some(text) = text {
            words.extend([flag.to_owned(), text.clone()]);
        }
    }
    if common.exact {
        words.push("--exact".to_owned());
    }
    words
}

/// How they are measured, as far as it is not the default.
fn conditions(common: &CommonArgs) -> Vec<String> {
    let mut words = Vec::new();
    if common.smoke {
        words.push("--smoke".to_owned());
    }
    if common.seconds.to_bits() != SECONDS.to_bits() {
        words.extend(["--seconds".to_owned(), common.seconds.to_string()]);
    }
    if let Some(runs) = common.runs {
        words.extend(["--runs".to_owned(), runs.to_string()]);
    }
    if let Some(cpus) = common.cpus {
        words.extend(["--cpus".to_owned(), cpus.to_string()]);
    }
    if let Some(data) = &common.data {
        words.extend(["--data".to_owned(), data.display().to_string()]);
    }
    words
}

/// A command line of this program, as a shell reads it.
pub(crate) fn line(words: &[String]) -> String {
    let words = words.iter().map(|word| quoted(word));
    let words: Vec<String> = std::iter::once(PROGRAM.to_owned()).chain(words).collect();
    words.join(" ")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parsed(words: &[&str]) -> Cli {
        Cli::try_parse_from(words).unwrap()
    }

    fn bench(cli: &Cli) -> &Bench {
        match &cli.command {
            Command::Bench(bench) => bench,
            other => panic!("{other:?} measures nothing"),
        }
    }

    #[test]
    fn a_case_is_measured_again_alone_and_in_the_same_way() {
        let words = "ringway-bench edge --transport socket --only int64 --runs 3 --seconds 0.25";
        let cli = parsed(&words.split(' ').collect::<Vec<_>>());
        let (name, baseline_name) = ("edge/socket/int64/1", "raw tcp");
        assert_eq!(
            of_pair(bench(&cli), &cli.common, name, baseline_name),
            "ringway-bench edge --transport socket --only edge/socket/int64/1 --against 'raw tcp' \
             --exact --seconds 0.25 --runs 3"
        );
        assert_eq!(
            of_all(bench(&cli), &cli.common),
            "ringway-bench edge --transport socket --only int64 --seconds 0.25 --runs 3"
        );
    }

    #[test]
    fn what_was_measured_over_every_transport_is_so_again() {
        for words in [
            "ringway-bench load",
            "ringway-bench sizes --transport shared",
        ] {
            let cli = parsed(&words.split(' ').collect::<Vec<_>>());
            assert_eq!(of_all(bench(&cli), &cli.common), words);
        }
    }

    #[test]
    fn arguments_are_read_as_what_they_were_made_of() {
        let words = [
            "ringway-bench",
            "ring",
            "--only",
            "a b'c",
            "--against",
            "",
            "--exact",
            "--smoke",
            "--cpus",
            "0,1",
            "--data",
            "some where",
        ];
        let cli = parsed(&words);
        let mut again = vec!["ringway-bench".to_owned(), "ring".to_owned()];
        again.extend(arguments(&cli.common));
        let again: Vec<&str> = again.iter().map(String::as_str).collect();
        assert_eq!(parsed(&again).common, cli.common);
    }

    #[test]
    fn a_word_with_a_space_or_a_quote_is_one_word_of_a_shell() {
        assert_eq!(quoted("edge/socket-v1/int64"), "edge/socket-v1/int64");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
