//! Everything in one run: measured part by part, drawn, and written down in three forms.

mod bars;
mod cells;
mod dots;
mod figures;
mod lines;
mod markdown;
mod markup;
mod names;
mod page;
mod parts;
mod scale;
mod section;
mod series;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::answer::Answer;
use crate::case::{Failed, Report};
use crate::cli::CommonArgs;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::host::{self, Host, VERSION};
use crate::progress::Progress;
use crate::{rerun, results};

const EXAMPLES: &str = "\
It writes DIR/report.html, with plots and without any need of a network, DIR/report.json for
compare and other programs, and DIR/report.md. They are written anew after each part, so that
those of a run that is interrupted are there too.

Examples:
  ringway-bench report --out target/bench
  ringway-bench report --out target/bench --smoke
  ringway-bench report --out target/bench --part \"edge --transport socket\" --part latency
  ringway-bench report --out drawn --from earlier/report.json

Exit codes:
  0    everything was measured
  1    something failed: the report says what, and why
  2    the command line can't be used";

/// What to report, and where to.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// The folder to write to; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Measure only the parts that begin with these words, such as "edge --transport socket"
    /// [default: all].
    #[arg(long, value_name = "WORDS")]
    pub part: Vec<String>,
    /// Measure nothing, and draw what these files have.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "part")]
    pub from: Vec<PathBuf>,
}

/// Measures all parts, or reads results, and writes the report.
///
/// # Errors
/// When there is no such part, no case, or a file can't be read or written. A part that fails
/// is an entry of the report instead.
pub(crate) fn run(args: &ReportArgs, common: &CommonArgs) -> Result<Answer, BenchError> {
    fs::create_dir_all(&args.out).map_err(|error| named(&args.out, &error))?;
    let report = match args.from.is_empty() {
        true => measured(args, common)?,
        false => read(args, common)?,
    };
    if report.cases.is_empty() && report.failed.is_empty() && report.left_out.is_empty() {
        return Err(BenchError::new(
            "no case was selected: see --only, --against and --part",
        ));
    }
    write(&args.out, &report)?;
    Ok(answer(&args.out, &report))
}

fn measured(args: &ReportArgs, common: &CommonArgs) -> Result<Report, BenchError> {
    let parts = parts::chosen(&args.part)?;
    let mut report = Report {
        command: command(args, common),
        version: VERSION.to_owned(),
        host: Some(Host::read(CpuPair::choose(common.cpus)?)?),
        ..Report::default()
    };
    let progress = Progress::new();
    for (index, part) in parts.iter().enumerate() {
        let passed_s = progress.elapsed().as_secs_f64();
        progress.tell(&parts::progress_line(index, parts.len(), part, passed_s));
        match parts::measure(part, common, &progress) {
            Ok(part) => {
                report.cases.extend(part.cases);
                report.left_out.extend(part.left_out);
                report.failed.extend(part.failed);
            }
            Err(error) => report.failed.push(Failed {
                name: (*part).to_owned(),
                baseline_name: String::new(),
                why: error.to_string(),
                rerun: rerun::line_of_part(part, common),
            }),
        }
        report.date = host::now();
        write(&args.out, &report)?;
    }
    Ok(report)
}

fn read(args: &ReportArgs, common: &CommonArgs) -> Result<Report, BenchError> {
    let mut report = results::read_all(&args.from)?;
    let selection = common.selection();
    let takes = |name: &str, baseline_name: &str| selection.takes(name, baseline_name);
    report
        .cases
        .retain(|case| takes(&case.name, &case.baseline_name));
    report
        .left_out
        .retain(|left_out| takes(&left_out.name, &left_out.baseline_name));
    Ok(report)
}

fn command(args: &ReportArgs, common: &CommonArgs) -> String {
    let mut words = vec![
        "report".to_owned(),
        "--out".to_owned(),
        args.out.display().to_string(),
    ];
    for part in &args.part {
        words.extend(["--part".to_owned(), part.clone()]);
    }
    words.extend(rerun::arguments(common));
    rerun::line(&words)
}

fn answer(out: &Path, report: &Report) -> Answer {
    let noisy = report
        .cases
        .iter()
        .filter(|case| case.noisy.is_some())
        .count();
    let mut text = format!(
        "{} cases, {noisy} of them noisy, {} left out, {} failed: {}\n",
        report.cases.len(),
        report.left_out.len(),
        report.failed.len(),
        out.join("report.html").display()
    );
    for failed in &report.failed {
        text.push_str(&format!("failed: {}: {}\n", failed.what(), failed.why));
    }
    Answer {
        text,
        is_good: report.failed.is_empty(),
    }
}

fn write(out: &Path, report: &Report) -> Result<(), BenchError> {
    let files = [
        ("report.json", serde_json::to_string(report)? + "\n"),
        ("report.md", markdown::markdown(report)),
        ("report.html", page::page(report)),
    ];
    for (name, text) in files {
        // Whole or not at all: someone may be looking at the one that is there.
        let (part, file) = (out.join(format!("{name}.part")), out.join(name));
        fs::write(&part, text).map_err(|error| named(&part, &error))?;
        fs::rename(&part, &file).map_err(|error| named(&file, &error))?;
    }
    Ok(())
}

fn named(path: &Path, error: &std::io::Error) -> BenchError {
    BenchError::new(error.to_string()).within(&path.display().to_string())
}
