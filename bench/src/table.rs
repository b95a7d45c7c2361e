//! Results as Markdown, for people.

use std::fmt::Write;

use crate::case::{Case, Report};

const HEAD: [&str; 12] = [
    "case",
    "baseline",
    "unit",
    "ours",
    "baseline's",
    "ratio",
    "ours, min to max",
    "runs",
    "CPU s/GB",
    "copied",
    "line ns",
    "noisy",
];

/// The cases as a table whose columns are aligned in plain text too.
pub(crate) fn markdown(report: &Report) -> String {
    of_cases(report.cases.iter())
}

/// The same of some of the cases.
pub(crate) fn of_cases<'a>(cases: impl Iterator<Item = &'a Case>) -> String {
    aligned(&HEAD, cases.map(|case| row(case).to_vec()).collect())
}

/// A table whose columns are aligned in plain text too.
pub(crate) fn aligned(head: &[&str], mut rows: Vec<Vec<String>>) -> String {
    rows.insert(0, head.iter().map(|cell| (*cell).to_owned()).collect());
    let mut widths = vec![0; head.len()];
    for row in &mut rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            // What would end the cell or the row there is shown by what it looks like.
            *cell = cell.replace('|', "\\|").replace('\n', " ");
            *width = (*width).max(cell.chars().count());
        }
    }
    rows.insert(1, widths.iter().map(|width| "-".repeat(*width)).collect());
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            write!(text, "| {cell:width$} ").expect("text takes text");
        }
        text.push_str("|\n");
    }
    text
}

fn row(case: &Case) -> [String; HEAD.len()] {
    let ratio = match (case.ratio, case.latency_ratio) {
        (Some(ratio), _) => format!("{ratio:.2}"),
        (None, Some(ratio)) => format!("{ratio:.2} (less is better)"),
        (None, None) => String::new(),
    };
    let line = match (case.line_ns, case.placement) {
        (Some(line), Some(placement)) => {
            format!("{:.0}/{:.0} {}", line.before, line.after, placement.name())
        }
        _ => String::new(),
    };
    let cpu = match (case.cpu_s_per_gb, case.baseline_cpu_s_per_gb) {
        (Some(ours), Some(baseline)) => format!("{} / {}", short(ours), short(baseline)),
        _ => String::new(),
    };
    [
        case.name.clone(),
        case.baseline_name.clone(),
        case.unit.clone(),
        short(case.ours),
        short(case.baseline),
        ratio,
        format!("{} to {}", short(case.min), short(case.max)),
        case.runs.to_string(),
        cpu,
        case.copied_share.map(short).unwrap_or_default(),
        line,
        case.noisy.clone().unwrap_or_default(),
    ]
}

/// A number with three or four digits that mean something.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{:.2} G", value / 1e9),
        size if size >= 1e6 => format!("{:.2} M", value / 1e6),
        size if size >= 1e4 => format!("{:.1} k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_in_a_cell_does_not_end_it() {
        let text = aligned(&["a"], vec![vec!["b|c".to_owned()]]);
        assert!(text.ends_with("| b\\|c |\n"), "{text}");
    }

    #[test]
    fn every_line_of_a_table_has_the_same_width() {
        let cases = vec![
            Case::against_limit("idle/a", "%", &[1.0], 2.0),
            Case::against_limit("idle/a longer name", "bytes", &[123_456_789.0], 2.0),
        ];
        let text = markdown(&Report {
            cases,
            ..Report::default()
        });
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 4);
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        assert!(text.contains("123.46 M"), "{text}");
    }
}
