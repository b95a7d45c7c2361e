//! The report as Markdown.

use std::fmt::Write;

use crate::case::Report;
use crate::table;

use super::cells;

/// The whole report, without its plots.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = "# Ringway beside what one would pick instead\n".to_owned();
    let about = [
        ("Measured", &report.date),
        ("Version", &report.version),
        ("Again", &report.command),
    ];
    let about = about.into_iter().filter(|(_, value)| !value.is_empty());
    let about: Vec<Vec<String>> = about
        .map(|(name, value)| vec![name.to_owned(), value.clone()])
        .collect();
    if !about.is_empty() {
        section(&mut text, None, &["", ""], about);
    }
    let failed = report.failed.iter();
    let failed = failed.map(|failed| vec![failed.what(), failed.why.clone()]);
    section(
        &mut text,
        Some("Failed"),
        &["what", "why"],
        failed.collect(),
    );
    let left_out = report.left_out.iter().map(|left_out| {
        let (name, baseline) = (&left_out.name, &left_out.baseline_name);
        vec![format!("{name} against {baseline}"), left_out.why.clone()]
    });
    section(
        &mut text,
        Some("Left out"),
        &["what", "why"],
        left_out.collect(),
    );
    for (family, cases) in cells::by_family(report) {
        let table = table::of_cases(cases.into_iter());
        write!(text, "\n## {family}\n\n{table}").expect("text takes text");
    }
    let host = report
        .host
        .as_ref()
        .map(|host| host.rows())
        .unwrap_or_default();
    let host = host
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value]);
    section(&mut text, Some("The machine"), &["", ""], host.collect());
    text.push_str(
        "\nWhat is claimed are ratios, of pairs that are not marked noisy. docs/PERFORMANCE.md of the \
         sources describes the method and the cases; report.html has the plots, and each row's way \
         to be measured again.\n",
    );
    text
}

/// A table under a title, if it has a row.
fn section(text: &mut String, title: Option<&str>, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    if let Some(title) = title {
        write!(text, "\n## {title}\n").expect("text takes text");
    }
    write!(text, "\n{}", table::aligned(head, rows)).expect("text takes text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, LeftOut};

    #[test]
    fn it_has_every_case_and_what_was_left_out() {
        let text = markdown(&Report {
            cases: vec![
                Case::against_limit("idle/edges", "bytes", &[700.0], 2048.0),
                Case::against_limit("ring/u64/single", "elements/s", &[1.0], 2.0),
            ],
            left_out: vec![LeftOut {
                name: "peers/host/u64".to_owned(),
                baseline_name: "aeron".to_owned(),
                why: "not built | in".to_owned(),
            }],
            ..Report::default()
        });
        for expected in ["## idle\n", "| idle/edges", "## ring\n", r"not built \| in"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(
            !text.contains("## Failed") && !text.contains("## The machine"),
            "{text}"
        );
    }
}
