//! From a command line to what it has to say.

use crate::answer::Answer;
use crate::case::Report;
use crate::contest::Harness;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::hdr_log::HdrLog;
use crate::host::{self, Host, VERSION};
use crate::{compare, parent, report, rerun, results, table};

use super::bench::Bench;
use super::flags::CommonArgs;
use super::{Cli, Command};

/// Runs one command, and returns what it has to say.
///
/// # Errors
/// When something that is needed is not there: the message says what. A result that is wrong is
/// an entry of the report, and makes the answer one that is not good.
pub fn run(cli: &Cli) -> Result<Answer, BenchError> {
    if matches!(cli.command, Command::Child(_)) || parent::is_report() {
        // Where that one has ended before this, nobody reads what this says, and it ends there.
        parent::end_with_it()?;
    }
    let common = &cli.common;
    let report = match &cli.command {
        Command::Bench(bench) => described(measured(bench, common)?, bench, common)?,
        Command::Table(args) => results::read_all(&args.files)?,
        Command::Host => return about_host(common).map(Answer::good),
        Command::Report(args) => return report::run(args, common),
        Command::Compare(args) => {
            return compare::run(args, &common.selection(), common.json);
        }
        Command::Child(child) => return child.run(common.smoke).map(Answer::good),
    };
    let text = match common.json {
        true => serde_json::to_string(&report)? + "\n",
        false => table::markdown(&report),
    };
    Ok(Answer {
        text,
        is_good: report.failed.is_empty(),
    })
}

fn measured(bench: &Bench, common: &CommonArgs) -> Result<Report, BenchError> {
    let mut harness = Harness::new(common.settings()?);
    harness.selection = common.selection();
    harness.hdr_log = bench.hdr_log().map(HdrLog::new);
    bench.measure(&mut harness, common)?;
    let selection = harness.selection.clone();
    let report = harness.finish()?;
    let is_empty =
        report.cases.is_empty() && report.left_out.is_empty() && report.failed.is_empty();
    // Of the parts of a report only some have what was asked for.
    if is_empty && !selection.is_everything() && !parent::is_report() {
        return Err(selection.why_nothing());
    }
    Ok(report)
}

/// The report with what one must know to trust it, and to measure it again.
fn described(mut report: Report, bench: &Bench, common: &CommonArgs) -> Result<Report, BenchError> {
    for case in &mut report.cases {
        case.rerun = rerun::of_pair(bench, common, &case.name, &case.baseline_name);
    }
    for failed in &mut report.failed {
        failed.rerun = rerun::of_pair(bench, common, &failed.name, &failed.baseline_name);
    }
    report.command = rerun::of_all(bench, common);
    report.host = Some(Host::read(CpuPair::choose(common.cpus)?)?);
    report.version = VERSION.to_owned();
    report.date = host::now();
    Ok(report)
}

fn about_host(common: &CommonArgs) -> Result<String, BenchError> {
    let host = Host::read(CpuPair::choose(common.cpus)?)?;
    if common.json {
        return Ok(serde_json::to_string(&host)? + "\n");
    }
    Ok(host.text())
}
