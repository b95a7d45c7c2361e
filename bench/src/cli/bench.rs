//! The subcommands that measure cases. To add one is to add a variant here, its examples to
//! `examples.rs`, and itself to the parts of a report: the compiler asks for the rest.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::contest::Harness;
use crate::error::BenchError;
use crate::idle::Program;
use crate::transport::Transport;
use crate::{columnar, data, edge, idle, job, latency, load, memory, peers, ring, scale, sizes};

use super::examples;
use super::flags::CommonArgs;

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub enum Bench {
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
}

impl Bench {
    /// Whether what it frees is to stay with the process, as with
    /// [`keep_freed_memory`](crate::keep_freed_memory).
    pub fn keeps_freed_memory(&self) -> bool {
        matches!(self, Self::Job | Self::Columnar | Self::Peers)
    }

    /// The words that name it on a command line, with those of its own flags that decide what is
    /// measured.
    pub(crate) fn words(&self) -> Vec<String> {
        let (name, over) = match self {
            Self::Ring => ("ring", None),
            Self::Edge(args) => ("edge", Some(args.transport)),
            Self::Latency(args) => ("latency", Some(args.transport)),
            Self::Load(args) => ("load", args.over.transport),
            Self::Sizes(args) => ("sizes", args.transport),
            Self::Scale(args) => ("scale", args.transport),
            Self::Memory(args) => ("memory", args.transport),
            Self::Data(args) => ("data", args.transport),
            Self::Columnar => ("columnar", None),
            Self::Job => ("job", None),
            Self::Peers => ("peers", None),
            Self::Idle(_) => ("idle", None),
        };
        let mut words = vec![name.to_owned()];
        if let Some(over) = over {
            words.extend(["--transport".to_owned(), over.name().to_owned()]);
        }
        if let Self::Idle(args) = self
            && let Some(path) = &args.ringway
        {
            words.extend(["--ringway".to_owned(), path.display().to_string()]);
        }
        words
    }

    /// Where all latencies go, if they are wanted.
    pub(super) fn hdr_log(&self) -> Option<&Path> {
        match self {
            Self::Latency(LatencyArgs { log, .. }) | Self::Load(LoadArgs { log, .. }) => {
                log.hdr_log.as_deref()
            }
            _ => None,
        }
    }

    /// Measures its cases, as far as they are wanted.
    ///
    /// # Errors
    /// When something that is needed is not there: the message says what.
    pub(super) fn measure(
        &self,
        harness: &mut Harness,
        common: &CommonArgs,
    ) -> Result<(), BenchError> {
        match self {
            Self::Ring => ring::measure(harness),
            Self::Edge(args) => match args.transport {
                Transport::Local => edge::measure_local(harness),
                Transport::Shared => edge::shared::measure(harness),
                Transport::Socket => edge::socket::measure(harness),
            },
            Self::Latency(args) => match args.transport {
                Transport::Local => latency::measure_local(harness),
                Transport::Shared => latency::shared::measure(harness),
                Transport::Socket => latency::measure(harness),
            },
            Self::Load(args) => args.over.each(|over| load::measure(harness, over)),
            Self::Sizes(args) => args.each(|over| sizes::measure(harness, over)),
            Self::Scale(args) => args.each(|over| scale::measure(harness, over)),
            Self::Memory(args) => args.each(|over| memory::measure(harness, over)),
            Self::Data(args) => {
                let folder = common.data_folder();
                let sets = data::Sets::in_folder(&folder, common.smoke);
                args.each(|over| data::measure(harness, over, &sets))
            }
            Self::Columnar => columnar::measure(harness),
            Self::Job => job::measure(harness, &common.data_folder()),
            Self::Peers => peers::measure(harness),
            Self::Idle(args) => {
                let (program, data) = (args.program(), &common.data_folder());
                let program = program.as_deref().map(|path| Program { path, data });
                idle::measure(harness, program)
            }
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

/// What to start for the time to a first row.
#[derive(Clone, Debug, Default, Args)]
pub struct IdleArgs {
    /// The ringway program [default: the one beside this program; without it that case is
    /// left out].
    #[arg(long, value_name = "PATH")]
    pub ringway: Option<PathBuf>,
}

impl IdleArgs {
    fn program(&self) -> Option<PathBuf> {
        self.ringway.clone().or_else(program_beside_this)
    }
}

fn program_beside_this() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let path = this.parent().map(|folder: &Path| folder.join("ringway"))?;
    path.is_file().then_some(path)
}
