//! The flags of every subcommand: which cases, and how they are measured.

use std::path::PathBuf;

use clap::Args;
use ringway::placement::CpuId;

use crate::contest::Settings;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::job;
use crate::selection::Selection;

/// Runs of each contender where the user does not say, and in a smoke run.
const RUNS: usize = 9;
const SMOKE_RUNS: usize = 2;

/// Seconds of a run where the user does not say.
pub(crate) const SECONDS: f64 = 0.5;

/// How to measure.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct CommonArgs {
    /// Print one JSON object, {"cases": [...]}, instead of a table.
    #[arg(long, global = true)]
    pub json: bool,
    /// Check the results at small sizes, in seconds; the figures mean nothing.
    #[arg(long, global = true)]
    pub smoke: bool,
    /// Seconds of one run.
    #[arg(long, global = true, value_name = "S", default_value_t = SECONDS, value_parser = seconds)]
    pub seconds: f64,
    /// Runs of each contender; medians are over them [default: 9, with --smoke 2].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: Option<u16>,
    /// Measure only the cases whose name contains this.
    #[arg(long, global = true, value_name = "TEXT")]
    pub only: Option<String>,
    /// Measure only beside the baselines whose name contains this.
    #[arg(long, global = true, value_name = "TEXT")]
    pub against: Option<String>,
    /// --only and --against are whole names.
    #[arg(long, global = true)]
    pub exact: bool,
    /// The CPUs of the two parties, such as 2,3 [default: the first two that are allowed].
    #[arg(long, global = true, value_name = "A,B")]
    pub cpus: Option<CpuPair>,
    /// The folder that has flights.parquet [default: docs/examples/data of the sources].
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl CommonArgs {
    pub(crate) fn selection(&self) -> Selection {
        Selection {
            only: self.only.clone().unwrap_or_default(),
            against: self.against.clone().unwrap_or_default(),
            exact: self.exact,
            ..Selection::default()
        }
    }

    /// How long, how often and where.
    ///
    /// # Errors
    /// When a CPU may not be used.
    pub(super) fn settings(&self) -> Result<Settings, BenchError> {
        let default_runs = if self.smoke { SMOKE_RUNS } else { RUNS };
        Ok(Settings {
            seconds: self.seconds,
            runs: self.runs.map_or(default_runs, usize::from),
            smoke: self.smoke,
            cpus: CpuPair::choose(self.cpus)?,
        })
    }

    /// The folder that has the flights.
    pub(super) fn data_folder(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(job::data_folder)
    }
}

/// A CPU, as a word of the command line.
///
/// # Errors
/// When it is no number.
pub(crate) fn cpu(text: &str) -> Result<CpuId, String> {
    let number = text.parse().map(CpuId);
    number.map_err(|_| format!("{text:?} is no CPU"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .filter(|seconds| (0.001..=3_600.0).contains(seconds))
        .ok_or_else(|| "must be from 0.001 to 3600".to_owned())
}
