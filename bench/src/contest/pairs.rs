//! Pairs of runs, and what they come to at equal placement.

use crate::case::{Case, Line, Placement, median};
use crate::latencies::Latencies;
use crate::noise::spread;

use super::{Contest, Measure, Sample, Settings};

/// Ours and the baseline, one run each, between two probes.
#[derive(Clone, Debug)]
pub(super) struct PairOfRuns {
    pub(super) ours: Sample,
    pub(super) baseline: Sample,
    pub(super) line: Line,
}

impl PairOfRuns {
    /// Where the cores were, unless they moved meanwhile.
    fn placement(&self) -> Option<Placement> {
        let before = Placement::of_line_ns(self.line.before);
        (before == Placement::of_line_ns(self.line.after)).then_some(before)
    }
}

/// The pairs at the placement that most pairs were measured at.
pub(super) fn at_most_common_placement(pairs: &[PairOfRuns]) -> Vec<PairOfRuns> {
    let at = |placement| {
        let at = pairs
            .iter()
            .filter(|pair| pair.placement() == Some(placement));
        at.cloned().collect::<Vec<_>>()
    };
    let (near, far) = (at(Placement::Near), at(Placement::Far));
    if near.len() >= far.len() { near } else { far }
}

/// What the pairs come to. What speaks against them is added to the `reasons` that the machine gave.
pub(super) fn summary(
    settings: &Settings,
    contest: &Contest<'_>,
    pairs: &[PairOfRuns],
    mut reasons: Vec<String>,
) -> Case {
    let mut used = at_most_common_placement(pairs);
    if used.is_empty() || settings.cpus.is_one() {
        used = pairs.to_vec();
    }
    reasons.extend(moved(settings, pairs, used.len()));
    let values = |of: fn(&PairOfRuns) -> f64| used.iter().map(of).collect::<Vec<f64>>();
    let (ours, baseline) = (
        values(|pair| pair.ours.value),
        values(|pair| pair.baseline.value),
    );
    let (our_median, baseline_median) = (median(&ours), median(&baseline));
    reasons.extend(spread("ours", &ours, our_median));
    reasons.extend(spread("the baseline", &baseline, baseline_median));
    if settings.smoke {
        reasons = vec!["smoke size: only the results were checked".to_owned()];
    }
    let line = Line {
        before: median(&values(|pair| pair.line.before)),
        after: median(&values(|pair| pair.line.after)),
    };
    let placement = if settings.cpus.is_one() {
        Placement::SameCpu
    } else {
        Placement::of_line_ns(line.before)
    };
    let ratio = our_median / baseline_median;
    let ours_runs = || used.iter().map(|pair| &pair.ours);
    let baselines = || used.iter().map(|pair| &pair.baseline);
    let latencies = all_latencies(ours_runs()).map(|ours| (ours, all_latencies(baselines())));
    let beyond = latencies
        .iter()
        .map(|(ours, baseline)| ours.beyond() + baseline.as_ref().map_or(0, Latencies::beyond));
    let beyond = beyond.sum();
    Case {
        name: contest.name.clone(),
        unit: contest.unit.to_owned(),
        ours: our_median,
        baseline_name: contest.baseline_name.to_owned(),
        baseline: baseline_median,
        ratio: (contest.measure == Measure::Rate).then_some(ratio),
        latency_ratio: (contest.measure == Measure::Latency).then_some(ratio),
        runs: used.len(),
        min: ours.iter().copied().fold(f64::INFINITY, f64::min),
        max: ours.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        runs_ours: ours,
        runs_baseline: baseline,
        rerun: String::new(),
        cpu_s_per_gb: cpu_s_per_gb(ours_runs()),
        baseline_cpu_s_per_gb: cpu_s_per_gb(baselines()),
        switches_per_s: switches_per_s(ours_runs()),
        baseline_switches_per_s: switches_per_s(baselines()),
        copied_share: copied_share(ours_runs()),
        percentiles: latencies.map_or_else(Vec::new, |(ours, baseline)| {
            ours.percentiles(baseline.as_ref())
        }),
        beyond,
        held_share: held_share(ours_runs()),
        baseline_held_share: held_share(baselines()),
        noisy: (!reasons.is_empty()).then(|| reasons.join("; ")),
        line_ns: Some(line),
        placement: Some(placement),
    }
}

/// What speaks against the placement of the pairs, of which so many are used.
fn moved(settings: &Settings, pairs: &[PairOfRuns], used: usize) -> Option<String> {
    if settings.cpus.is_one() {
        Some("both parties share a CPU".to_owned())
    } else if pairs.iter().all(|pair| pair.placement().is_none()) {
        Some("the cores moved during every pair of runs".to_owned())
    } else if used < settings.runs {
        Some(format!("the cores moved: only {used} pairs are comparable"))
    } else {
        None
    }
}

fn cpu_s_per_gb<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let moved = samples.filter(|sample| sample.bytes > 0);
    median_of(moved.map(|sample| sample.spent.cpu_s / (sample.bytes as f64 / 1e9)))
}

fn switches_per_s<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    median_of(samples.map(|sample| sample.spent.switches as f64 / sample.wall.as_secs_f64()))
}

fn copied_share<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let moved = samples.filter(|sample| sample.bytes > 0);
    median_of(moved.filter_map(|sample| Some(sample.copied_bytes? as f64 / sample.bytes as f64)))
}

fn held_share<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    median_of(samples.filter_map(|sample| sample.held_share))
}

/// None of none.
fn median_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| median(&values))
}

fn all_latencies<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<Latencies> {
    samples.filter_map(|sample| sample.latencies.as_ref()).fold(
        None,
        |all: Option<Latencies>, one| {
            let mut all = all.unwrap_or_else(Latencies::new);
            all.add(one);
            Some(all)
        },
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::spent::Spent;

    fn pair(before: f64, after: f64) -> PairOfRuns {
        let sample = Sample::rate(1, Duration::from_secs(1), Spent::default(), 0);
        PairOfRuns {
            ours: sample.clone(),
            baseline: sample,
            line: Line { before, after },
        }
    }

    #[test]
    fn pairs_are_compared_only_at_one_placement() {
        let pairs = [
            pair(90.0, 90.0),
            pair(90.0, 400.0),
            pair(400.0, 400.0),
            pair(380.0, 410.0),
        ];
        let used = at_most_common_placement(&pairs);
        assert_eq!(used.len(), 2);
        assert!(used.iter().all(|pair| pair.line.before > 300.0));
    }
}
