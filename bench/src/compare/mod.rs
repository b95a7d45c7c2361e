//! Two files with results, side by side: did anything become slower?

mod verdict;

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::answer::Answer;
use crate::case::{Case, Report};
use crate::error::BenchError;
use crate::selection::Selection;
use crate::{results, table};

use verdict::{By, Judged, Verdict, judge};

const HEAD: [&str; 9] = [
    "case", "baseline", "unit", "ours, A", "ours, B", "ratio, A", "ratio, B", "change", "verdict",
];

const EXAMPLES: &str = "\
A case counts as slower if it is worse by more than the threshold, and each of the two medians
lies outside of all runs of the other. Ratios to the baseline are compared, since the machine may
have changed for both; a figure that is held to a limit is compared by itself. Cases that are
marked noisy, or were measured at different placements, are shown and never count.

Examples:
  ringway-bench ring --json >before.json            (then change something, build, and)
  ringway-bench ring --json >after.json
  ringway-bench compare before.json after.json
  ringway-bench compare A.json B.json --threshold 10 --only edge/ --json

Exit codes:
  0    nothing became slower
  1    something became slower
  2    the command line or a file can't be used";

/// What to compare.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Earlier results: what --json printed, or the report.json of a report.
    #[arg(value_name = "A.json")]
    pub a: PathBuf,
    /// Later results.
    #[arg(value_name = "B.json")]
    pub b: PathBuf,
    /// Changes up to this are none, in percent.
    #[arg(long, value_name = "PCT", default_value_t = 5.0, value_parser = percent)]
    pub threshold: f64,
}

/// All rows, for programs.
#[derive(Clone, Debug, Serialize)]
struct Comparison {
    threshold_percent: f64,
    slower: usize,
    faster: usize,
    rows: Vec<Row>,
}

/// One case of either file.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    name: String,
    baseline_name: String,
    unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_a: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ours_b: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_a: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_b: Option<f64>,
    /// Whether less is better in `ours` and `ratio`.
    less_is_better: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared_by: Option<By>,
    /// More than 0 is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    change_percent: Option<f64>,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Compares two files, and says whether something became slower.
///
/// # Errors
/// When a file can't be read.
pub(crate) fn run(
    args: &CompareArgs,
    selection: &Selection,
    json: bool,
) -> Result<Answer, BenchError> {
    let (a, b) = (results::read(&args.a)?, results::read(&args.b)?);
    let comparison = compare(&a, &b, selection, args.threshold);
    let text = match json {
        true => serde_json::to_string(&comparison)? + "\n",
        false => text(&comparison, &a, &b),
    };
    Ok(Answer {
        text,
        is_good: comparison.slower == 0,
    })
}

fn compare(a: &Report, b: &Report, selection: &Selection, threshold_percent: f64) -> Comparison {
    let wanted = |case: &&Case| selection.takes(&case.name, &case.baseline_name);
    let key = |case: &Case| (case.name.clone(), case.baseline_name.clone());
    let in_b: HashMap<_, &Case> = b.cases.iter().map(|case| (key(case), case)).collect();
    let in_a: HashMap<_, &Case> = a.cases.iter().map(|case| (key(case), case)).collect();
    let mut rows: Vec<Row> = a
        .cases
        .iter()
        .filter(wanted)
        .map(|case| match in_b.get(&key(case)) {
            Some(later) => Row::of_both(case, later, threshold_percent),
            None => Row::of_one(case, Verdict::OnlyInA),
        })
        .collect();
    let new = b.cases.iter().filter(wanted);
    let new = new.filter(|case| !in_a.contains_key(&key(case)));
    rows.extend(new.map(|case| Row::of_one(case, Verdict::OnlyInB)));
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    Comparison {
        threshold_percent,
        slower: count(Verdict::Slower),
        faster: count(Verdict::Faster),
        rows,
    }
}

impl Row {
    fn of_both(a: &Case, b: &Case, threshold_percent: f64) -> Self {
        let Judged {
            verdict,
            by,
            change_percent,
            why,
        } = judge(a, b, threshold_percent);
        Self {
            ours_b: Some(b.ours),
            ratio_b: b.ratio.or(b.latency_ratio),
            compared_by: Some(by),
            change_percent: change_percent.is_finite().then_some(change_percent),
            why,
            ..Self::of_one(a, Verdict::OnlyInA)
        }
        .with(verdict)
    }

    fn of_one(case: &Case, verdict: Verdict) -> Self {
        let row = Self {
            name: case.name.clone(),
            baseline_name: case.baseline_name.clone(),
            unit: case.unit.clone(),
            ours_a: Some(case.ours),
            ours_b: None,
            ratio_a: case.ratio.or(case.latency_ratio),
            ratio_b: None,
            less_is_better: case.latency_ratio.is_some(),
            compared_by: None,
            change_percent: None,
            verdict,
            why: None,
        };
        match verdict {
            Verdict::OnlyInB => Self {
                ours_a: None,
                ours_b: row.ours_a,
                ratio_a: None,
                ratio_b: row.ratio_a,
                ..row
            },
            _ => row,
        }
    }

    fn with(self, verdict: Verdict) -> Self {
        Self { verdict, ..self }
    }

    fn cells(&self) -> Vec<String> {
        let figure = |value: Option<f64>| value.map(table::short).unwrap_or_default();
        let change = self.change_percent.zip(self.compared_by);
        let change = change.map(|(percent, by)| format!("{percent:+.1} % of {}", by.name()));
        let why = self.why.iter().map(|why| format!(" ({why})"));
        vec![
            self.name.clone(),
            self.baseline_name.clone(),
            self.unit.clone(),
            figure(self.ours_a),
            figure(self.ours_b),
            figure(self.ratio_a),
            figure(self.ratio_b),
            change.unwrap_or_default(),
            self.verdict.name().to_owned() + &why.collect::<String>(),
        ]
    }
}

fn text(comparison: &Comparison, a: &Report, b: &Report) -> String {
    let rows = comparison.rows.iter().map(Row::cells).collect();
    let mut text = table::aligned(&HEAD, rows);
    let counts = Verdict::ALL.map(|verdict| {
        let of_it = comparison.rows.iter().filter(|row| row.verdict == verdict);
        format!("{} {}", of_it.count(), verdict.name())
    });
    let said = writeln!(
        text,
        "\n{}. A change above 0 is for the better; up to {} % it is none.",
        counts.join(", "),
        comparison.threshold_percent
    );
    said.expect("text takes text");
    for difference in differences(a, b) {
        writeln!(text, "{difference}").expect("text takes text");
    }
    text
}

/// What is not the same about the machines that the two were measured on.
fn differences(a: &Report, b: &Report) -> Vec<String> {
    let (Some(a), Some(b)) = (&a.host, &b.host) else {
        return Vec::new();
    };
    let pairs = [
        ("processor", &a.processor, &b.processor),
        ("kernel", &a.kernel, &b.kernel),
        ("governor", &a.governor, &b.governor),
        ("build", &a.build, &b.build),
    ];
    let differ = pairs.into_iter().filter(|(_, a, b)| a != b);
    differ
        .map(|(what, a, b)| format!("The {what} differs: A {a}, B {b}."))
        .collect()
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.parse().ok();
    percent
        .filter(|percent| (0.0..=1_000.0).contains(percent))
        .ok_or_else(|| "must be from 0 to 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cases: &[(&str, f64)]) -> Report {
        let cases = cases.iter().map(|(name, value)| {
            let case = Case::against_limit(name, "ms", &[*value], 100.0);
            Case {
                baseline_name: "by hand".to_owned(),
                ..case
            }
        });
        Report {
            cases: cases.collect(),
            ..Report::default()
        }
    }

    fn verdicts(comparison: &Comparison) -> Vec<(&str, Verdict)> {
        let rows = comparison.rows.iter();
        rows.map(|row| (row.name.as_str(), row.verdict)).collect()
    }

    #[test]
    fn every_case_of_either_file_is_a_row() {
        let a = report(&[("same", 1.0), ("slower", 1.0), ("gone", 1.0)]);
        let b = report(&[("new", 1.0), ("slower", 2.0), ("same", 1.0)]);
        let comparison = compare(&a, &b, &Selection::default(), 5.0);
        let expected = [
            ("same", Verdict::Same),
            ("slower", Verdict::Slower),
            ("gone", Verdict::OnlyInA),
            ("new", Verdict::OnlyInB),
        ];
        assert_eq!(verdicts(&comparison), expected);
        assert_eq!((comparison.slower, comparison.faster), (1, 0));
        let new = &comparison.rows[3];
        assert_eq!((new.ours_a, new.ours_b), (None, Some(1.0)));
        let text = text(&comparison, &a, &b);
        assert!(
            text.contains("0 faster, 1 slower, 1 same, 0 noisy, 1 only in A"),
            "{text}"
        );
        assert!(text.contains("-50.0 % of ratio"), "{text}");
    }

    #[test]
    fn only_what_is_selected_is_compared() {
        let selection = Selection {
            only: "same".to_owned(),
            ..Selection::default()
        };
        let a = report(&[("same", 1.0), ("slower", 1.0)]);
        let b = report(&[("same", 1.0), ("slower", 2.0), ("new", 1.0)]);
        let comparison = compare(&a, &b, &selection, 5.0);
        assert_eq!(verdicts(&comparison), [("same", Verdict::Same)]);
    }
}
