//! The output of the harness.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// What one subcommand measured: `{"cases": [...]}` with `--json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// When the measurement ended, in UTC as of RFC 3339; empty where it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The version of Ringway; empty where it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The command line that measures all of it again; empty where it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The cases, in the order in which they were measured.
    pub cases: Vec<Case>,
    /// What was to be measured and failed, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// What could not be measured here, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// What failed: a result was wrong, or something that is needed is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// As in [`Case`]; of a whole part of a report, its words.
    pub name: String,
    /// As in [`Case`]; empty of a whole part.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub baseline_name: String,
    /// What was wrong.
    pub why: String,
    /// The command line that tries again, and measures nothing else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rerun: String,
}

impl Failed {
    /// Its name, in words.
    pub(crate) fn what(&self) -> String {
        match self.baseline_name.as_str() {
            "" => self.name.clone(),
            baseline_name => format!("{} against {baseline_name}", self.name),
        }
    }
}

/// A pair that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// As in [`Case`].
    pub name: String,
    /// As in [`Case`].
    pub baseline_name: String,
    /// What is missing, and what to do to have it.
    pub why: String,
}

/// One pair of ours and a baseline. The pair is its key: a name may come with several baselines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// What was measured, such as `ring/u64/single`.
    pub name: String,
    /// The unit of `ours`, `baseline`, `min` and `max`.
    pub unit: String,
    /// The median over the runs of ours.
    pub ours: f64,
    /// What ours is compared with, such as `rtrb`; `limit` where it is held to a number.
    pub baseline_name: String,
    /// The median over the runs of the baseline.
    pub baseline: f64,
    /// Of rates, ours divided by the baseline: bigger is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Of latencies and costs, ours divided by the baseline: smaller is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ratio: Option<f64>,
    /// Runs of each of the two that the medians are over.
    pub runs: usize,
    /// The least of the runs of ours.
    pub min: f64,
    /// The greatest of the runs of ours.
    pub max: f64,
    /// The value of each run of ours, in the order of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_ours: Vec<f64>,
    /// The same of the baseline. Where there are as many, those at one place were a pair.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_baseline: Vec<f64>,
    /// The command line that measures this pair again, and nothing else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rerun: String,
    /// CPU seconds that ours takes to move 10^9 bytes, where bytes move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gb: Option<f64>,
    /// The same of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_cpu_s_per_gb: Option<f64>,
    /// Context switches a second, of all threads and processes that ours takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches_per_s: Option<f64>,
    /// The same of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_switches_per_s: Option<f64>,
    /// Bytes that ours copies for each byte that it moves, where they are counted: those of the
    /// sender and of the receiver, heads included. What the kernel copies is not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_share: Option<f64>,
    /// The distribution of latencies over all runs, in microseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<Percentile>,
    /// Latencies of ours and of the baseline that were longer than can be told apart, and count
    /// as the longest that can.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub beyond: u64,
    /// Where ours was offered a rate, the share of it that came through: below 0.95 it is
    /// saturated, and its latencies are those of a queue that grows as long as the run lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_share: Option<f64>,
    /// The same of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_held_share: Option<f64>,
    /// Why the figures can't be trusted; absent where nothing speaks against them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noisy: Option<String>,
    /// How far apart the two cores were, where the case uses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_ns: Option<Line>,
    /// The placement that follows from it. Figures are compared only at equal placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

/// A point of a distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// Of a hundred, from 0 to 100.
    pub percentile: f64,
    /// So many of ours took at most this.
    pub ours: f64,
    /// The same of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
}

/// The time that a cache line takes from one core to the other and back, in nanoseconds: the
/// medians of the probes right before and right after the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Before the runs.
    pub before: f64,
    /// After the runs.
    pub after: f64,
}

/// How far apart two cores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// They share a cache.
    Near,
    /// They don't.
    Far,
    /// There is one CPU only, and both parties take turns on it.
    SameCpu,
}

/// Round trips of a cache line up to this long are near, in nanoseconds. Cores that share a
/// cache take 60 to 120, others 320 and more.
const NEAR_NS_MAX: f64 = 200.0;

impl Placement {
    pub(crate) fn of_line_ns(line_ns: f64) -> Self {
        if line_ns <= NEAR_NS_MAX {
            Self::Near
        } else {
            Self::Far
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::SameCpu => "one CPU",
        }
    }
}

impl Case {
    /// A figure that is held to a limit instead of a baseline: smaller is better.
    pub(crate) fn against_limit(name: &str, unit: &str, samples: &[f64], limit: f64) -> Self {
        assert!(!samples.is_empty(), "a case has runs");
        let ours = median(samples);
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            ours,
            baseline_name: "limit".to_owned(),
            baseline: limit,
            ratio: None,
            latency_ratio: Some(ours / limit),
            runs: samples.len(),
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs_ours: samples.to_vec(),
            runs_baseline: Vec::new(),
            rerun: String::new(),
            cpu_s_per_gb: None,
            baseline_cpu_s_per_gb: None,
            switches_per_s: None,
            baseline_switches_per_s: None,
            copied_share: None,
            percentiles: Vec::new(),
            beyond: 0,
            held_share: None,
            baseline_held_share: None,
            noisy: None,
            line_ns: None,
            placement: None,
        }
    }

    /// The runs of ours, or their bounds where the file has no more.
    pub(crate) fn runs_or_bounds(&self) -> Vec<f64> {
        match self.runs_ours.is_empty() {
            true => vec![self.min, self.max],
            false => self.runs_ours.clone(),
        }
    }

    /// Ours divided by the baseline, of each pair of runs. Where runs are no pairs, ours is
    /// divided by the median of the baseline.
    pub(crate) fn ratios(&self) -> Vec<f64> {
        if self.runs_ours.is_empty() || self.runs_ours.len() != self.runs_baseline.len() {
            let runs = self.runs_or_bounds().into_iter();
            return runs.map(|ours| ours / self.baseline).collect();
        }
        let pairs = self.runs_ours.iter().zip(&self.runs_baseline);
        pairs.map(|(ours, baseline)| ours / baseline).collect()
    }
}

// Where serde asks, it gives a reference.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The middle value, or the mean of the two in the middle; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn what_does_not_apply_is_not_in_the_output() {
        let case = Case::against_limit("idle", "%", &[1.0, 3.0, 2.0], 4.0);
        let text = serde_json::to_string(&case).unwrap();
        assert!(text.contains("\"latency_ratio\":0.5"), "{text}");
        for absent in [
            "\"ratio\"",
            "noisy",
            "line_ns",
            "cpu_s_per_gb",
            "percentiles",
            "beyond",
        ] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
        assert_eq!(serde_json::from_str::<Case>(&text).unwrap(), case);
    }

    #[test]
    fn a_file_of_an_earlier_version_is_still_read() {
        let text = r#"{"cases": [{"name": "ring/u64/single", "unit": "elements/s", "ours": 2.0,
            "baseline_name": "rtrb", "baseline": 1.0, "ratio": 2.0, "runs": 5, "min": 1.5,
            "max": 2.5}]}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        assert!(report.host.is_none() && report.date.is_empty() && report.failed.is_empty());
        assert!(report.cases[0].runs_ours.is_empty() && report.cases[0].rerun.is_empty());
    }

    #[test]
    fn cores_that_share_a_cache_are_near() {
        assert_eq!(Placement::of_line_ns(90.0), Placement::Near);
        assert_eq!(Placement::of_line_ns(400.0), Placement::Far);
    }
}
