//! One case: ours and a baseline take turns, and are compared at equal placement.

mod pairs;
mod sample;

use crate::case::{Case, Failed, LeftOut, Line, Report};
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::hdr_log::HdrLog;
use crate::line_probe::line_ns;
use crate::named::{BASELINE, OURS, named};
use crate::noise::NoiseWatch;
use crate::progress::Progress;
use crate::selection::Selection;

use pairs::{PairOfRuns, at_most_common_placement, summary};

pub(crate) use sample::{Measured, Sample};

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

impl<'a> Contest<'a> {
    /// Of two that move bytes, whose rate is compared.
    pub(crate) fn of_bytes(
        name: String,
        baseline_name: &'static str,
        count: u64,
        ours: impl FnMut(u64) -> Result<Sample, BenchError> + 'a,
        baseline: impl FnMut(u64) -> Result<Sample, BenchError> + 'a,
    ) -> Self {
        Self {
            name,
            unit: "bytes/s",
            measure: Measure::Rate,
            baseline_name,
            count,
            ours: Box::new(ours),
            baseline: Box::new(baseline),
        }
    }
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
        contest.ours = named(OURS, contest.ours);
        contest.baseline = named(BASELINE, contest.baseline);
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
        Ok(summary(&self.settings, contest, &pairs, reasons))
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

    /// Adds the latencies of a run to the log, if there are such and there is one: those of each
    /// process by themselves, which a reader can put together and not take apart.
    fn log(&self, name: &str, contender: &str, run: &Sample) -> Result<(), BenchError> {
        let (Some(log), Some(latencies)) = (&self.hdr_log, &run.latencies) else {
            return Ok(());
        };
        if run.measured.is_empty() {
            return log.add(name, contender, run.wall, latencies);
        }
        for Measured { process, latencies } in &run.measured {
            let contender = format!("{contender}/{process}");
            log.add(name, &contender, run.wall, latencies)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::latencies::Latencies;
    use crate::spent::Spent;

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
}
