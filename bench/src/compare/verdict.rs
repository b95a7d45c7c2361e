//! Whether a case is faster or slower than it was.

use serde::Serialize;

use crate::case::Case;

/// What a comparison of two results of a case comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Better by more than the threshold and the noise.
    Faster,
    /// Worse by more than the threshold and the noise.
    Slower,
    /// Neither.
    Same,
    /// The figures can't be compared.
    Noisy,
    /// The second file has no such case.
    OnlyInA,
    /// The first file has no such case.
    OnlyInB,
}

/// What is compared: it follows the machine less if it is the ratio to the same baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    /// Ours divided by the baseline that was measured beside it.
    Ratio,
    /// The figure of ours itself.
    Ours,
}

/// Two results of a case, side by side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) by: By,
    /// How much better the second is, in percent of the first; negative where it is worse. Of a
    /// latency too, more than 0 is better.
    pub(crate) change_percent: f64,
    /// Why the verdict is what it is, where figures alone don't say it.
    pub(crate) why: Option<String>,
}

impl Verdict {
    pub(crate) const ALL: [Self; 6] = [
        Self::Faster,
        Self::Slower,
        Self::Same,
        Self::Noisy,
        Self::OnlyInA,
        Self::OnlyInB,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Noisy => "noisy",
            Self::OnlyInA => "only in A",
            Self::OnlyInB => "only in B",
        }
    }
}

impl By {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Ours => "ours",
        }
    }
}

/// How good each run was, whatever the unit: more is better.
struct Goodness {
    median: f64,
    least: f64,
    most: f64,
}

impl Goodness {
    fn of(case: &Case, by: By) -> Self {
        let (median, runs) = match by {
            By::Ours => (case.ours, case.runs_or_bounds()),
            By::Ratio => (case.ours / case.baseline, case.ratios()),
        };
        let good = |value: f64| match case.latency_ratio {
            Some(_) => 1.0 / value,
            None => value,
        };
        let runs = runs.into_iter().map(good);
        let median = good(median);
        let (least, most) = runs.fold((median, median), |(least, most), run| {
            (least.min(run), most.max(run))
        });
        Self {
            median,
            least,
            most,
        }
    }

    fn has(&self, value: f64) -> bool {
        (self.least..=self.most).contains(&value)
    }
}

/// Compares two results of the same case. A change counts if it is above the threshold, and each
/// of the medians lies outside of all runs of the other.
pub(crate) fn judge(a: &Case, b: &Case, threshold_percent: f64) -> Judged {
    let by = match a.baseline_name.as_str() {
        "limit" => By::Ours,
        _ => By::Ratio,
    };
    let (of_a, of_b) = (Goodness::of(a, by), Goodness::of(b, by));
    let change_percent = (of_b.median / of_a.median - 1.0) * 100.0;
    let judged = |verdict, why| Judged {
        verdict,
        by,
        change_percent,
        why,
    };
    if let Some(why) = incomparable(a, b) {
        return judged(Verdict::Noisy, Some(why));
    }
    if !change_percent.is_finite() {
        let why = "a figure of 0 can't be compared".to_owned();
        return judged(Verdict::Noisy, Some(why));
    }
    if change_percent.abs() <= threshold_percent {
        return judged(Verdict::Same, None);
    }
    if of_a.has(of_b.median) || of_b.has(of_a.median) {
        let why = "within the spread of the runs".to_owned();
        return judged(Verdict::Same, Some(why));
    }
    let verdict = match change_percent > 0.0 {
        true => Verdict::Faster,
        false => Verdict::Slower,
    };
    judged(verdict, None)
}

/// Why the two can't be compared, if they can't.
fn incomparable(a: &Case, b: &Case) -> Option<String> {
    if a.unit != b.unit {
        return Some(format!("A is in {}, B in {}", a.unit, b.unit));
    }
    if a.latency_ratio.is_some() != b.latency_ratio.is_some() {
        return Some("more is better in one of them only".to_owned());
    }
    let noisy = [("A", a), ("B", b)].into_iter();
    let noisy =
        noisy.filter_map(|(which, case)| Some(format!("{which}: {}", case.noisy.as_ref()?)));
    let noisy: Vec<String> = noisy.collect();
    if !noisy.is_empty() {
        return Some(noisy.join("; "));
    }
    match (a.placement, b.placement) {
        (Some(a), Some(b)) if a != b => Some(format!("A is {}, B is {}", a.name(), b.name())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Placement;

    /// A rate whose runs of ours are these, against a baseline of 100 in each.
    fn rate(runs: &[f64]) -> Case {
        let case = Case::against_limit("ring/u64/single", "elements/s", runs, 100.0);
        Case {
            baseline_name: "rtrb".to_owned(),
            runs_baseline: vec![100.0; runs.len()],
            ratio: case.latency_ratio,
            latency_ratio: None,
            placement: Some(Placement::Near),
            ..case
        }
    }

    fn latency(runs: &[f64]) -> Case {
        let case = rate(runs);
        Case {
            latency_ratio: case.ratio,
            ratio: None,
            ..case
        }
    }

    fn verdict(a: &Case, b: &Case) -> Verdict {
        judge(a, b, 5.0).verdict
    }

    #[test]
    fn a_change_above_the_threshold_and_the_noise_counts() {
        let (a, b) = (rate(&[99.0, 100.0, 101.0]), rate(&[89.0, 90.0, 91.0]));
        assert_eq!(verdict(&a, &b), Verdict::Slower);
        assert_eq!(verdict(&b, &a), Verdict::Faster);
        assert!((judge(&a, &b, 5.0).change_percent + 10.0).abs() < 1e-9);
    }

    #[test]
    fn less_time_is_faster() {
        let (a, b) = (latency(&[10.0, 10.1]), latency(&[5.0, 5.1]));
        assert_eq!(verdict(&a, &b), Verdict::Faster);
        assert!(judge(&a, &b, 5.0).change_percent > 90.0);
        assert_eq!(verdict(&b, &a), Verdict::Slower);
    }

    #[test]
    fn a_change_below_the_threshold_is_none() {
        let (a, b) = (rate(&[100.0]), rate(&[96.0]));
        assert_eq!(verdict(&a, &b), Verdict::Same);
        assert_eq!(judge(&a, &b, 3.0).verdict, Verdict::Slower);
    }

    #[test]
    fn a_change_within_the_spread_of_either_is_none() {
        let (a, b) = (rate(&[80.0, 100.0, 102.0]), rate(&[88.0, 90.0, 92.0]));
        assert_eq!(verdict(&a, &b), Verdict::Same);
        assert_eq!(verdict(&b, &a), Verdict::Same);
        assert!(judge(&a, &b, 5.0).why.unwrap().contains("spread"));
    }

    #[test]
    fn a_machine_that_became_slower_for_both_is_no_change_of_ours() {
        let a = rate(&[100.0, 101.0]);
        let mut b = rate(&[50.0, 50.5]);
        (b.baseline, b.runs_baseline) = (50.0, vec![50.0, 50.0]);
        assert_eq!(verdict(&a, &b), Verdict::Same);
    }

    #[test]
    fn what_is_held_to_a_limit_is_compared_by_itself() {
        let a = Case::against_limit("idle/edges", "bytes", &[700.0], 2048.0);
        let b = Case::against_limit("idle/edges", "bytes", &[900.0], 4096.0);
        let judged = judge(&a, &b, 5.0);
        assert_eq!((judged.verdict, judged.by), (Verdict::Slower, By::Ours));
    }

    #[test]
    fn noise_and_another_placement_never_make_a_verdict() {
        let (a, mut b) = (rate(&[100.0]), rate(&[10.0]));
        b.placement = Some(Placement::Far);
        assert_eq!(verdict(&a, &b), Verdict::Noisy);
        let mut b = rate(&[10.0]);
        b.noisy = Some("others took 30 % of the CPUs".to_owned());
        assert!(judge(&a, &b, 5.0).why.unwrap().starts_with("B: others"));
        let mut b = rate(&[10.0]);
        b.unit = "bytes/s".to_owned();
        assert_eq!(verdict(&a, &b), Verdict::Noisy);
        assert_eq!(verdict(&rate(&[0.0]), &rate(&[1.0])), Verdict::Noisy);
    }

    #[test]
    fn a_file_without_runs_is_judged_by_their_bounds() {
        let (mut a, mut b) = (rate(&[95.0, 100.0, 105.0]), rate(&[84.0, 85.0, 94.0]));
        for case in [&mut a, &mut b] {
            case.runs_ours.clear();
            case.runs_baseline.clear();
        }
        assert_eq!(verdict(&a, &b), Verdict::Slower);
        b.max = 101.0;
        assert_eq!(verdict(&a, &b), Verdict::Same);
    }
}
