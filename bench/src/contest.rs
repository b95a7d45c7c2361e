//! One case: ours and a baseline take turns, and are compared at equal placement.

use std::time::Duration;

use crate::case::{Case, Failed, LeftOut, Line, Placement, Report, median};
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::hdr_log::HdrLog;
use crate::latencies::Latencies;
use crate::line_probe::line_ns;
use crate::noise::{NoiseWatch, spread};
use crate::progress::Progress;
use crate::selection::Selection;
use crate::spent::Spent;

/// Pairs of runs that are measured at most, as a multiple of those wanted: where the placement
/// keeps changing, a case ends all the same.
const ATTEMPTS_PER_RUN_MAX: usize = 3;

/// A run that is this long, as a share of the time wanted, tells how long a run must be.
const CALIBRATED_SHARE: f64 = 0.1;

/// What is measured, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Seconds of one run.
    pub(crate) seconds: f64,
    /// Runs of each contender.
    pub(crate) runs: usize,
    /// Whether only the results are to be checked.
    pub(crate) smoke: bool,
    pub(crate) cpus: CpuPair,
}

/// Whether more is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Rate,
    Latency,
}

/// What one run gave.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// In the unit of the case.
    pub(crate) value: f64,
    pub(crate) wall: Duration,
    /// What all threads and processes that took part took of the CPUs.
    pub(crate) spent: Spent,
    /// Bytes that were moved; 0 where moving bytes is not the point.
    pub(crate) bytes: u64,
    /// Bytes that were copied meanwhile, where that is counted: those that go along with what
    /// is moved too.
    pub(crate) copied_bytes: Option<u64>,
    /// The times of all that `value` is one figure of, where it is a latency.
    pub(crate) latencies: Option<Latencies>,
    /// Of a rate at which things are due, the share that was held.
    pub(crate) held_share: Option<f64>,
}

/// Runs so many operations, checks what came of them, and says what they took.
pub(crate) type Contender<'a> = Box<dyn FnMut(u64) -> Result<Sample, BenchError> + 'a>;

/// Warms a contender up, and says how many operations a run of it has.
type Prepare = fn(&Harness, u64, &mut Contender<'_>) -> Result<u64, BenchError>;

/// A case that is to be measured.
pub(crate) struct Contest<'a> {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) measure: Measure,
    pub(crate) baseline_name: &'static str,
    /// Operations of a run that is only to be checked; calibration begins with it.
    pub(crate) count: u64,
    pub(crate) ours: Contender<'a>,
    pub(crate) baseline: Contender<'a>,
}

/// Measures cases one after the other.
#[derive(Debug)]
pub(crate) struct Harness {
    pub(crate) settings: Settings,
    pub(crate) progress: Progress,
    /// The cases that are wanted.
    pub(crate) selection: Selection,
    /// Where the latencies of each run go, if they are wanted.
    pub(crate) hdr_log: Option<HdrLog>,
    report: Report,
}

/// Ours and the baseline, one run each, between two probes.
#[derive(Clone, Debug)]
struct PairOfRuns {
    ours: Sample,
    baseline: Sample,
    line: Line,
}

impl Harness {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            progress: Progress::new(),
            selection: Selection::default(),
            hdr_log: None,
            report: Report::default(),
        }
    }

    /// Whether a case is wanted at all.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.selection.takes_name(name)
    }

    /// Measures a case, if it is wanted.
    ///
    /// Where a contender cannot run, or its result is wrong, that is an entry of the report that
    /// makes the whole run a failure; the cases that follow are measured all the same.
    ///
    /// # Errors
    /// None: it is a result so that a bench can end with it.
    pub(crate) fn measure(&mut self, contest: Contest<'_>) -> Result<(), BenchError> {
        self.measure_by(contest, Self::calibrated)
    }

    /// The same, with as many operations in each run as the contest says.
    ///
    /// # Errors
    /// As for [`Self::measure`].
    pub(crate) fn measure_counted(&mut self, contest: Contest<'_>) -> Result<(), BenchError> {
        self.measure_by(contest, Self::warmed_up)
    }

    fn measure_by(&mut self, mut contest: Contest<'_>, prepare: Prepare) -> Result<(), BenchError> {
        if !self.selection.takes(&contest.name, contest.baseline_name) {
            return Ok(());
        }
        match self.case_of(&mut contest, prepare) {
            Ok(case) => self.add(case),
            Err(error) => self.fail(&contest.name, contest.baseline_name, &error),
        }
        Ok(())
    }

    fn fail(&mut self, name: &str, baseline_name: &str, error: &BenchError) {
        self.progress
            .tell(&format!("FAILED: {name} against {baseline_name}: {error}"));
        self.report.failed.push(Failed {
            name: name.to_owned(),
            baseline_name: baseline_name.to_owned(),
            why: error.to_string(),
            rerun: String::new(),
        });
    }

    /// Adds a case that was measured elsewhere, if it is wanted.
    pub(crate) fn add(&mut self, case: Case) {
        if !self.selection.takes(&case.name, &case.baseline_name) {
            return;
        }
        let elapsed_s = self.progress.elapsed().as_secs();
        let (name, baseline) = (&case.name, &case.baseline_name);
        let ratio = case.ratio.or(case.latency_ratio).unwrap_or_default();
        let done = format!("{elapsed_s:>5} s  {name} against {baseline}: {ratio:.2}");
        self.progress.done(&done);
        self.report.cases.push(case);
    }

    /// Says that a case, if it is wanted, has a baseline that is not in this build.
    pub(crate) fn leave_out_unbuilt(&mut self, name: &str, baseline_name: &str, feature: &str) {
        let why = format!("it is not built in; build with --features {feature} to have it");
        self.leave_out(name, baseline_name, &why);
    }

    /// Says that a case, if it is wanted, cannot be measured here, and what to do to have it.
    pub(crate) fn leave_out(&mut self, name: &str, baseline_name: &str, why: &str) {
        if !self.selection.takes(name, baseline_name) {
            return;
        }
        let skipped = format!("        {name} against {baseline_name} is left out: {why}");
        self.progress.done(&skipped);
        self.report.left_out.push(LeftOut {
            name: name.to_owned(),
            baseline_name: baseline_name.to_owned(),
            why: why.to_owned(),
        });
    }

    /// What was measured; the log, if there is one, is written now.
    ///
    /// # Errors
    /// When it can't be written.
    pub(crate) fn finish(self) -> Result<Report, BenchError> {
        self.hdr_log.map_or(Ok(()), HdrLog::finish)?;
        Ok(self.report)
    }

    fn case_of(&self, contest: &mut Contest<'_>, prepare: Prepare) -> Result<Case, BenchError> {
        let ours = prepare(self, contest.count, &mut contest.ours)?;
        let baseline = prepare(self, contest.count, &mut contest.baseline)?;
        let watch = NoiseWatch::start(self.settings.cpus);
        let mut pairs: Vec<PairOfRuns> = Vec::new();
        let attempts_max = self.settings.runs * ATTEMPTS_PER_RUN_MAX;
        for attempt in 0..attempts_max {
            if self.settings.cpus.is_one() && attempt == self.settings.runs {
                break;
            }
            if at_most_common_placement(&pairs).len() >= self.settings.runs {
                break;
            }
            let (name, baseline_name) = (&contest.name, contest.baseline_name);
            self.progress
                .say(format!("{name} against {baseline_name}, pair {attempt}"));
            pairs.push(self.pair_of_runs(contest, ours, baseline, attempt % 2 == 1)?);
        }
        let reasons = watch.reasons();
        Ok(self.summary(contest, &pairs, reasons))
    }

    /// How many operations take the time of a run. What it runs to find out is the warm-up.
    fn calibrated(&self, count: u64, contender: &mut Contender<'_>) -> Result<u64, BenchError> {
        if self.settings.smoke {
            return Ok(count);
        }
        let mut count = count;
        loop {
            let sample = contender(count)?;
            let share = sample.wall.as_secs_f64() / self.settings.seconds;
            if share >= CALIBRATED_SHARE {
                return Ok(((count as f64 / share) as u64).max(1));
            }
            count *= 2;
        }
    }

    /// The number of operations that was asked for, after a tenth of them.
    fn warmed_up(&self, count: u64, contender: &mut Contender<'_>) -> Result<u64, BenchError> {
        if !self.settings.smoke {
            contender((count / 10).max(1))?;
        }
        Ok(count)
    }

    fn pair_of_runs(
        &self,
        contest: &mut Contest<'_>,
        count: u64,
        baseline_count: u64,
        baseline_first: bool,
    ) -> Result<PairOfRuns, BenchError> {
        let before = line_ns(self.settings.cpus)?;
        let (ours, baseline) = if baseline_first {
            let baseline = (contest.baseline)(baseline_count)?;
            ((contest.ours)(count)?, baseline)
        } else {
            let ours = (contest.ours)(count)?;
            (ours, (contest.baseline)(baseline_count)?)
        };
        let after = line_ns(self.settings.cpus)?;
        let line = Line { before, after };
        self.log(&contest.name, "ours", &ours)?;
        self.log(&contest.name, contest.baseline_name, &baseline)?;
        Ok(PairOfRuns {
            ours,
            baseline,
            line,
        })
    }

    /// Adds the latencies of a run to the log, if there are such and there is one.
    fn log(&self, name: &str, contender: &str, run: &Sample) -> Result<(), BenchError> {
        match (&self.hdr_log, &run.latencies) {
            (Some(log), Some(latencies)) => log.add(name, contender, run.wall, latencies),
            _ => Ok(()),
        }
    }

    fn summary(
        &self,
        contest: &Contest<'_>,
        pairs: &[PairOfRuns],
        mut reasons: Vec<String>,
    ) -> Case {
        let mut used = at_most_common_placement(pairs);
        if used.is_empty() || self.settings.cpus.is_one() {
            used = pairs.to_vec();
        }
        reasons.extend(self.moved(pairs, used.len()));
        let values = |of: fn(&PairOfRuns) -> f64| used.iter().map(of).collect::<Vec<f64>>();
        let (ours, baseline) = (
            values(|pair| pair.ours.value),
            values(|pair| pair.baseline.value),
        );
        let (our_median, baseline_median) = (median(&ours), median(&baseline));
        reasons.extend(spread("ours", &ours, our_median));
        reasons.extend(spread("the baseline", &baseline, baseline_median));
        if self.settings.smoke {
            reasons = vec!["smoke size: only the results were checked".to_owned()];
        }
        let line = Line {
            before: median(&values(|pair| pair.line.before)),
            after: median(&values(|pair| pair.line.after)),
        };
        let placement = if self.settings.cpus.is_one() {
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
    fn moved(&self, pairs: &[PairOfRuns], used: usize) -> Option<String> {
        if self.settings.cpus.is_one() {
            Some("both parties share a CPU".to_owned())
        } else if pairs.iter().all(|pair| pair.placement().is_none()) {
            Some("the cores moved during every pair of runs".to_owned())
        } else if used < self.settings.runs {
            Some(format!("the cores moved: only {used} pairs are comparable"))
        } else {
            None
        }
    }
}

impl Sample {
    /// Of a rate: `count` operations in `wall`.
    pub(crate) fn rate(count: u64, wall: Duration, spent: Spent, bytes: u64) -> Self {
        Self {
            value: count as f64 / wall.as_secs_f64(),
            wall,
            spent,
            bytes,
            copied_bytes: None,
            latencies: None,
            held_share: None,
        }
    }

    /// Of a latency, in the unit of the case.
    pub(crate) fn latency(value: f64, wall: Duration, spent: Spent) -> Self {
        Self {
            value,
            wall,
            spent,
            bytes: 0,
            copied_bytes: None,
            latencies: None,
            held_share: None,
        }
    }

    /// The same, where so many bytes were copied; none where that is not counted.
    pub(crate) fn copying(self, bytes: Option<u64>) -> Self {
        Self {
            copied_bytes: bytes,
            ..self
        }
    }

    /// The same, with all the times that its value is one figure of.
    pub(crate) fn with_latencies(self, latencies: Latencies) -> Self {
        Self {
            latencies: Some(latencies),
            ..self
        }
    }

    /// The same, of a rate of which this share was held.
    pub(crate) fn holding(self, share: f64) -> Self {
        Self {
            held_share: Some(share),
            ..self
        }
    }
}

impl PairOfRuns {
    /// Where the cores were, unless they moved meanwhile.
    fn placement(&self) -> Option<Placement> {
        let before = Placement::of_line_ns(self.line.before);
        (before == Placement::of_line_ns(self.line.after)).then_some(before)
    }
}

/// The pairs at the placement that most pairs were measured at.
fn at_most_common_placement(pairs: &[PairOfRuns]) -> Vec<PairOfRuns> {
    let at = |placement| {
        let at = pairs
            .iter()
            .filter(|pair| pair.placement() == Some(placement));
        at.cloned().collect::<Vec<_>>()
    };
    let (near, far) = (at(Placement::Near), at(Placement::Far));
    if near.len() >= far.len() { near } else { far }
}

fn cpu_s_per_gb<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let moved: Vec<f64> = samples
        .filter(|sample| sample.bytes > 0)
        .map(|sample| sample.spent.cpu_s / (sample.bytes as f64 / 1e9))
        .collect();
    (!moved.is_empty()).then(|| median(&moved))
}

fn switches_per_s<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let rates: Vec<f64> = samples
        .map(|sample| sample.spent.switches as f64 / sample.wall.as_secs_f64())
        .collect();
    (!rates.is_empty()).then(|| median(&rates))
}

fn copied_share<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let shares: Vec<f64> = samples
        .filter(|sample| sample.bytes > 0)
        .filter_map(|sample| Some(sample.copied_bytes? as f64 / sample.bytes as f64))
        .collect();
    (!shares.is_empty()).then(|| median(&shares))
}

fn held_share<'a>(samples: impl Iterator<Item = &'a Sample>) -> Option<f64> {
    let shares: Vec<f64> = samples.filter_map(|sample| sample.held_share).collect();
    (!shares.is_empty()).then(|| median(&shares))
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
    use super::*;

    fn settings(smoke: bool) -> Settings {
        Settings {
            seconds: 0.01,
            runs: 3,
            smoke,
            cpus: CpuPair::choose(None).unwrap(),
        }
    }

    fn contender<'a>(rate: f64) -> Contender<'a> {
        Box::new(move |count| {
            let wall = Duration::from_secs_f64(count as f64 / rate);
            let spent = Spent {
                cpu_s: 0.5,
                switches: 3,
            };
            let sample = Sample::rate(count, wall, spent, 1_000_000_000);
            let mut latencies = Latencies::new();
            latencies.record(Duration::from_micros(7));
            Ok(sample
                .copying(Some(250_000_000))
                .with_latencies(latencies)
                .holding(0.5))
        })
    }

    fn contest<'a>(ours: Contender<'a>, measure: Measure) -> Contest<'a> {
        Contest {
            name: "made/up".to_owned(),
            unit: "elements/s",
            measure,
            baseline_name: "another",
            count: 10,
            ours,
            baseline: contender(50.0),
        }
    }

    fn pair(before: f64, after: f64) -> PairOfRuns {
        let sample = Sample::rate(1, Duration::from_secs(1), Spent::default(), 0);
        PairOfRuns {
            ours: sample.clone(),
            baseline: sample,
            line: Line { before, after },
        }
    }

    #[test]
    fn a_rate_is_compared_so_that_bigger_is_better() {
        let mut harness = Harness::new(settings(true));
        harness
            .measure(contest(contender(100.0), Measure::Rate))
            .unwrap();
        let case = &harness.finish().unwrap().cases[0];
        assert_eq!(case.ratio.map(f64::round), Some(2.0));
        assert_eq!(case.latency_ratio, None);
        assert_eq!(case.cpu_s_per_gb, Some(0.5));
        assert_eq!(case.copied_share, Some(0.25));
        assert_eq!(
            (case.held_share, case.baseline_held_share),
            (Some(0.5), Some(0.5))
        );
        // Of ten operations at 100 a second.
        assert_eq!(case.switches_per_s.map(f64::round), Some(30.0));
        let baseline = case.percentiles.iter().map(|point| point.baseline);
        assert!(baseline.flatten().all(|us| (us - 7.0).abs() < 0.1));
        assert!(case.noisy.is_some(), "a smoke run is not to be trusted");
    }

    #[test]
    fn a_run_takes_as_many_operations_as_its_time_allows() {
        let harness = Harness::new(settings(false));
        let count = harness.calibrated(10, &mut contender(1e6)).unwrap();
        assert!((9_000..=11_000).contains(&count), "{count}");
    }

    #[test]
    fn a_run_that_is_counted_has_as_many_operations_as_were_asked_for() {
        let harness = Harness::new(settings(false));
        let mut counts = Vec::new();
        let mut inner = contender(1e6);
        let mut counting: Contender<'_> = Box::new(|count| {
            counts.push(count);
            inner(count)
        });
        assert_eq!(harness.warmed_up(10_000, &mut counting), Ok(10_000));
        drop(counting);
        assert_eq!(counts, [1_000]);
    }

    #[test]
    fn a_wrong_result_fails_and_names_the_case() {
        let mut harness = Harness::new(settings(true));
        let wrong: Contender<'_> = Box::new(|_| Err(BenchError::new("lost a row")));
        harness.measure(contest(wrong, Measure::Rate)).unwrap();
        let right = contest(contender(100.0), Measure::Rate);
        harness.measure(right).unwrap();
        let report = harness.finish().unwrap();
        assert_eq!(report.failed[0].what(), "made/up against another");
        assert_eq!(report.failed[0].why, "lost a row");
        assert_eq!(
            report.cases.len(),
            1,
            "what follows is measured all the same"
        );
    }

    #[test]
    fn a_case_that_is_not_wanted_is_not_run() {
        let mut harness = Harness::new(settings(true));
        harness.selection.only = "another".to_owned();
        let wrong: Contender<'_> = Box::new(|_| Err(BenchError::new("ran")));
        harness.measure(contest(wrong, Measure::Rate)).unwrap();
        assert!(harness.finish().unwrap().cases.is_empty());
    }

    #[test]
    fn what_can_not_be_measured_is_said_where_it_was_wanted() {
        let mut harness = Harness::new(settings(true));
        harness.selection.only = "shared".to_owned();
        harness.leave_out_unbuilt("edge/shared/raw64", "a peer", "peer");
        harness.leave_out("edge/local/row", "a peer", "there is none");
        let report = harness.finish().unwrap();
        assert!(report.cases.is_empty());
        let [left_out] = &report.left_out[..] else {
            panic!("{report:?}");
        };
        assert_eq!(left_out.name, "edge/shared/raw64");
        assert!(left_out.why.contains("--features peer"), "{left_out:?}");
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
