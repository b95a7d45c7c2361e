//! The command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use ringway::placement::CpuId;

use crate::answer::Answer;
use crate::case::Report;
use crate::compare::CompareArgs;
use crate::contest::{Harness, Settings};
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::hdr_log::HdrLog;
use crate::host::{self, Host, VERSION};
use crate::idle::Program;
use crate::peers::PeerArgs;
use crate::report::{self, ReportArgs};
use crate::selection::Selection;
use crate::transport::Transport;
use crate::{
    columnar, compare, data, edge, examples, idle, job, latency, load, memory, parent, peers,
    rerun, results, ring, scale, sizes, table,
};

/// Runs of each contender where the user does not say, and in a smoke run.
const RUNS: usize = 9;
const SMOKE_RUNS: usize = 2;

/// Seconds of a run where the user does not say.
pub(crate) const SECONDS: f64 = 0.5;

/// Measures Ringway beside what one would pick instead, in one run.
#[derive(Clone, Debug, Parser)]
#[command(name = "ringway-bench", version, after_help = examples::ALL)]
pub struct Cli {
    /// What to measure.
    #[command(subcommand)]
    pub command: Command,
    /// How.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl Cli {
    /// Whether the flags select this pair, as far as the subcommand measures it.
    pub fn selects(&self, name: &str, baseline_name: &str) -> bool {
        self.common.selection().takes(name, baseline_name)
    }
}

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Rings: u64, 64 bytes and record batches, singly and in chunks, and round trips.
    #[command(after_help = examples::RING)]
    Ring,
    /// Edges: a local one beside the bare ring, one over a socket beside a bare TCP stream and
    /// what else moves batches.
    #[command(after_help = examples::EDGE)]
    Edge(EdgeArgs),
    /// Latency: a one-row batch to another process and back at a fixed rate.
    #[command(after_help = examples::LATENCY)]
    Latency(LatencyArgs),
    /// Latency against the load that is offered, up to the load that is too much.
    #[command(after_help = examples::LOAD)]
    Load(LoadArgs),
    /// Throughput against the bytes of a row.
    #[command(after_help = examples::SIZES)]
    Sizes(TransportsArgs),
    /// Throughput against the number of edges, and of exchanges of so many subtasks with so many.
    #[command(after_help = examples::SCALE)]
    Scale(TransportsArgs),
    /// Memory against the number of edges.
    #[command(after_help = examples::MEMORY)]
    Memory(TransportsArgs),
    /// Throughput with data as it is: auctions, orders, flights, and columns of many types.
    #[command(after_help = examples::DATA)]
    Data(TransportsArgs),
    /// Structs as columns: the derive beside the same by hand.
    #[command(after_help = examples::COLUMNAR)]
    Columnar,
    /// Jobs: queries of Nexmark, joins, exchanges and the flights, beside hand-written loops.
    #[command(after_help = examples::JOB)]
    Job,
    /// What people would pick instead: in a process, between processes, over TCP, and engines.
    #[command(after_help = examples::PEERS)]
    Peers,
    /// What is spent while nothing happens: CPU, memory, and the time to a first row.
    #[command(after_help = examples::IDLE)]
    Idle(IdleArgs),
    /// The machine, and how far apart its two cores are.
    #[command(after_help = examples::HOST)]
    Host,
    /// Results of earlier runs as a Markdown table.
    #[command(after_help = examples::TABLE)]
    Table(TableArgs),
    /// Everything, part by part, as one page with plots.
    Report(ReportArgs),
    /// Two files with results side by side: what became faster, what slower.
    #[command(after_help = examples::COMPARE)]
    Compare(CompareArgs),
    /// The other process of a case that needs one; it is started by the harness.
    #[command(hide = true)]
    Receive(ReceiveArgs),
    /// The other process of a case of `latency`; it is started by the harness.
    #[command(hide = true)]
    Echo(EchoArgs),
    /// The other process of a case of `peers`; it is started by the harness.
    #[command(hide = true)]
    Peer(PeerArgs),
    /// The same of a case with many edges.
    #[command(hide = true)]
    ReceiveMany(ReceiveManyArgs),
    /// A process whose memory is measured.
    #[command(hide = true)]
    Hold(HoldArgs),
    /// The same of an edge over shared memory.
    #[command(hide = true)]
    ReceiveShared(SharedReceiveArgs),
    /// The same of a latency over shared memory.
    #[command(hide = true)]
    EchoShared(SharedEchoArgs),
}

impl Command {
    /// Whether the harness has started it for a case.
    fn is_other_process(&self) -> bool {
        matches!(
            self,
            Self::Receive(_)
                | Self::Echo(_)
                | Self::ReceiveShared(_)
                | Self::EchoShared(_)
                | Self::Peer(_)
        )
    }
}

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
}

/// Which edge to measure.
#[derive(Clone, Copy, Debug, Args)]
pub struct EdgeArgs {
    /// What carries the edge.
    #[arg(long, value_enum, default_value_t = Transport::Local)]
    pub transport: Transport,
}

/// Over which transports to measure.
#[derive(Clone, Copy, Debug, Args)]
pub struct TransportsArgs {
    /// What carries the elements [default: one after the other].
    #[arg(long, value_enum)]
    pub transport: Option<Transport>,
}

impl TransportsArgs {
    fn each(
        self,
        measure: impl FnMut(Transport) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let all = Transport::ALL.into_iter();
        let mut chosen = all.filter(|one| self.transport.is_none_or(|only| only == *one));
        chosen.try_for_each(measure)
    }
}

/// Which load to measure.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    /// Over which transports.
    #[command(flatten)]
    pub over: TransportsArgs,
    /// Where all latencies go.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Where all latencies go.
#[derive(Clone, Debug, Default, Args)]
pub struct LogArgs {
    /// Write all latencies to this file, as an HDR interval log.
    #[arg(long, value_name = "FILE")]
    pub hdr_log: Option<PathBuf>,
}

/// Which latency to measure.
#[derive(Clone, Debug, Args)]
pub struct LatencyArgs {
    /// What carries the batches.
    #[arg(long, value_enum, default_value_t = Transport::Socket)]
    pub transport: Transport,
    /// Where all latencies go.
    #[command(flatten)]
    pub log: LogArgs,
}

/// What the other process of a latency does.
#[derive(Clone, Copy, Debug, Args)]
pub struct EchoArgs {
    /// How it waits, and what it sends back.
    pub(crate) echo: latency::Echo,
    /// The CPU to run on.
    #[arg(value_parser = cpu)]
    pub(crate) cpu: CpuId,
}

/// What the other process does.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReceiveArgs {
    /// What carries the batches.
    pub(crate) carrier: edge::socket::Carrier,
    /// The CPU to run on.
    #[arg(value_parser = cpu)]
    pub(crate) cpu: CpuId,
    /// Of batches whose checksums are compared, how many there are.
    pub(crate) tallied: Option<u64>,
}

/// What the other process of a case with many edges does.
#[derive(Clone, Copy, Debug, Args)]
pub struct ReceiveManyArgs {
    /// What carries the edges.
    pub(crate) remote: latency::Remote,
    /// How many there are.
    pub(crate) edges: usize,
    /// The CPU to run on.
    #[arg(value_parser = cpu)]
    pub(crate) cpu: CpuId,
}

/// What a process holds whose memory is measured.
#[derive(Clone, Copy, Debug, Args)]
pub struct HoldArgs {
    /// Which ends of what edges.
    pub(crate) held: memory::Held,
    /// How many.
    pub(crate) edges: usize,
    /// The CPU to run on.
    #[arg(value_parser = cpu)]
    pub(crate) cpu: CpuId,
    /// Who receives, where it sends.
    pub(crate) to: Option<SocketAddr>,
}

/// What the other process of an edge over shared memory does.
#[derive(Clone, Debug, Args)]
pub struct SharedReceiveArgs {
    /// What carries the messages.
    pub(crate) carrier: edge::shared::Carrier,
    /// Bytes of a message.
    pub(crate) message_bytes: usize,
    /// Messages that come.
    pub(crate) count: u64,
    /// Where the processes meet.
    pub(crate) meeting: String,
    /// The CPU to run on.
    #[arg(value_parser = cpu)]
    pub(crate) cpu: CpuId,
    /// Of batches whose checksums are compared, how many there are.
    pub(crate) tallied: Option<u64>,
}

/// What the other process of a latency over shared memory does.
#[derive(Clone, Debug, Args)]
pub struct SharedEchoArgs {
    /// What it sends back, and how it waits.
    pub(crate) echo: latency::shared::Echo,
    /// Round trips.
    pub(crate) count: u64,
    /// Where the processes meet.
    pub(crate) meeting: String,
    /// The CPU to run on.
    #[arg(value_parser = cpu)]
    pub(crate) cpu: CpuId,
}

/// What to start for the time to a first row.
#[derive(Clone, Debug, Default, Args)]
pub struct IdleArgs {
    /// The ringway program [default: the one beside this program; without it that case is
    /// left out].
    #[arg(long, value_name = "PATH")]
    pub ringway: Option<PathBuf>,
}

/// What to show.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Files with what --json printed.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Runs one command, and returns what it has to say.
///
/// # Errors
/// When something that is needed is not there: the message says what. A result that is wrong is
/// an entry of the report, and makes the answer one that is not good.
pub fn run(cli: &Cli) -> Result<Answer, BenchError> {
    if cli.command.is_other_process() || parent::is_report() {
        // Where that one has ended before this, nobody reads what this says, and it ends there.
        parent::end_with_it()?;
    }
    let common = &cli.common;
    let report = match &cli.command {
        Command::Compare(args) => {
            return compare::run(args, &common.selection(), common.json);
        }
        Command::Report(args) => return report::run(args, common),
        Command::Host => return about_host(common).map(Answer::good),
        Command::Echo(args) => return latency::echo(args.echo, args.cpu).map(Answer::good),
        Command::Peer(args) => return peers::take_part(args, common.smoke).map(Answer::good),
        Command::Receive(args) => {
            return edge::socket::receive(args.carrier, args.cpu, args.tallied).map(Answer::good);
        }
        Command::ReceiveMany(args) => {
            return scale::receive(args.remote, args.edges, args.cpu).map(Answer::good);
        }
        Command::Hold(args) => {
            return memory::hold(args.held, args.edges, args.to, args.cpu).map(Answer::good);
        }
        Command::ReceiveShared(args) => return receive_shared(args).map(Answer::good),
        Command::EchoShared(args) => return echo_shared(args).map(Answer::good),
        Command::Table(args) => results::read_all(&args.files)?,
        command => described(measure(command, common)?, command, common)?,
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

fn measure(command: &Command, common: &CommonArgs) -> Result<Report, BenchError> {
    let default_runs = if common.smoke { SMOKE_RUNS } else { RUNS };
    let mut harness = Harness::new(Settings {
        seconds: common.seconds,
        runs: common.runs.map_or(default_runs, usize::from),
        smoke: common.smoke,
        cpus: CpuPair::choose(common.cpus)?,
    });
    harness.selection = common.selection();
    harness.hdr_log = match command {
        Command::Latency(LatencyArgs { log, .. }) | Command::Load(LoadArgs { log, .. }) => {
            log.hdr_log.as_deref().map(HdrLog::new)
        }
        _ => None,
    };
    let data = common.data.clone().unwrap_or_else(job::data_folder);
    match command {
        Command::Ring => ring::measure(&mut harness)?,
        Command::Edge(args) => match args.transport {
            Transport::Local => edge::measure_local(&mut harness)?,
            Transport::Shared => edge::shared::measure(&mut harness)?,
            Transport::Socket => edge::socket::measure(&mut harness)?,
        },
        Command::Latency(args) => match args.transport {
            Transport::Local => latency::measure_local(&mut harness)?,
            Transport::Shared => latency::shared::measure(&mut harness)?,
            Transport::Socket => latency::measure(&mut harness)?,
        },
        Command::Load(args) => args.over.each(|over| load::measure(&mut harness, over))?,
        Command::Scale(args) => args.each(|over| scale::measure(&mut harness, over))?,
        Command::Memory(args) => args.each(|over| memory::measure(&mut harness, over))?,
        Command::Data(args) => {
            let sets = data::Sets::in_folder(&data, common.smoke);
            args.each(|over| data::measure(&mut harness, over, &sets))?;
        }
        Command::Sizes(args) => args.each(|over| sizes::measure(&mut harness, over))?,
        Command::Columnar => columnar::measure(&mut harness)?,
        Command::Job => job::measure(&mut harness, &data)?,
        Command::Peers => peers::measure(&mut harness)?,
        Command::Idle(args) => {
            let path = args.ringway.clone().or_else(program_beside_this);
            let program = path.as_deref().map(|path| Program { path, data: &data });
            idle::measure(&mut harness, program)?;
        }
        Command::Host
        | Command::Table(_)
        | Command::Peer(_)
        | Command::Compare(_)
        | Command::Report(_)
        | Command::Receive(_)
        | Command::ReceiveMany(_)
        | Command::Hold(_)
        | Command::Echo(_)
        | Command::ReceiveShared(_)
        | Command::EchoShared(_) => unreachable!("they measure no case"),
    }
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
fn described(
    mut report: Report,
    command: &Command,
    common: &CommonArgs,
) -> Result<Report, BenchError> {
    for case in &mut report.cases {
        case.rerun = rerun::of_pair(command, common, &case.name, &case.baseline_name);
    }
    for failed in &mut report.failed {
        failed.rerun = rerun::of_pair(command, common, &failed.name, &failed.baseline_name);
    }
    report.command = rerun::of_all(command, common);
    report.host = Some(Host::read(CpuPair::choose(common.cpus)?)?);
    report.version = VERSION.to_owned();
    report.date = host::now();
    Ok(report)
}

fn receive_shared(args: &SharedReceiveArgs) -> Result<String, BenchError> {
    let course = edge::shared::Course {
        carrier: args.carrier,
        message_bytes: args.message_bytes,
        count: args.count,
        meeting: args.meeting.clone(),
        tallied: args.tallied,
    };
    edge::shared::receive(&course, args.cpu)
}

fn echo_shared(args: &SharedEchoArgs) -> Result<String, BenchError> {
    let trips = latency::shared::Trips {
        count: args.count,
        meeting: args.meeting.clone(),
    };
    latency::shared::echo(args.echo, &trips, args.cpu)
}

fn about_host(common: &CommonArgs) -> Result<String, BenchError> {
    let host = Host::read(CpuPair::choose(common.cpus)?)?;
    if common.json {
        return Ok(serde_json::to_string(&host)? + "\n");
    }
    Ok(host.text())
}

fn program_beside_this() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let path = this.parent().map(|folder: &Path| folder.join("ringway"))?;
    path.is_file().then_some(path)
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .filter(|seconds| (0.001..=3_600.0).contains(seconds))
        .ok_or_else(|| "must be from 0.001 to 3600".to_owned())
}

pub(crate) fn cpu(text: &str) -> Result<CpuId, String> {
    let number = text.parse().map(CpuId);
    number.map_err(|_| format!("{text:?} is no CPU"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn common_flags_are_read_behind_the_subcommand() {
        let words = "ringway-bench edge --transport local --smoke --runs 3 --cpus 0,1 --json";
        let cli = Cli::try_parse_from(words.split(' ')).unwrap();
        assert!(cli.common.smoke && cli.common.json);
        assert_eq!(cli.common.runs, Some(3));
        assert!(cli.common.cpus.is_some());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            "ring --seconds 0",
            "ring --runs 0",
            "ring --cpus 1",
            "table",
            "compare a.json",
            "compare a.json b.json --threshold -1",
            "",
        ] {
            let words = format!("ringway-bench {words}");
            assert!(
                Cli::try_parse_from(words.trim().split(' ')).is_err(),
                "{words}"
            );
        }
    }
}
