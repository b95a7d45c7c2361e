//! The `ringway` command.
//!
//! Exit codes: 0 the job ended, or was drained; 1 it failed; 2 the command line or the job file
//! cannot be used, and nothing ran; 130 it was cancelled by Ctrl-C, 143 by SIGTERM.

mod args;
mod batches;
mod check;
mod edges;
mod line;
mod memory;
mod output;
mod processes;
mod progress;
mod recv;
mod run;
mod send;
mod signals;
mod summary;
mod units;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringway::clock::Clock;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Moves Arrow batches between operators that are pinned to cores.
#[derive(Parser)]
#[command(name = "ringway", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a job.
    Run(run::RunArgs),
    /// Show how a job would run, or what is wrong with it; nothing is run.
    Check(check::CheckArgs),
    /// Listen for a stream of the wire and print its elements.
    Recv(recv::RecvArgs),
    /// Send a stream over the wire, from lines or from a file of batches.
    Send(send::SendArgs),
}

const EXAMPLES: &str = "\
Examples:
  ringway run docs/examples/flights.toml
  ringway run job.toml --parallelism 4 --cores 2-5 --json
  ringway run job.toml --parallelism 4 --processes 2
  ringway run job.toml --hosts a:7000,b:7000 --process 0    (on a, and --process 1 on b)
  ringway check job.toml
  ringway recv --listen 127.0.0.1:7000 --type arrow
  ringway send --connect 127.0.0.1:7000 --type arrow flights.parquet

Exit codes:
  0    the job ended, or was drained
  1    the job failed
  2    the command line or the job file cannot be used; nothing ran
  130  the job was cancelled by Ctrl-C
  143  the job was cancelled by SIGTERM

Logs go to standard error; RUST_LOG says which, such as RUST_LOG=ringway=debug.";

/// The job failed.
const EXIT_FAILED: u8 = 1;

/// Nothing ran: the command line or the job file cannot be used.
const EXIT_INVALID: u8 = 2;

/// Cancelled by SIGINT, as shells say it: 128 and the number of the signal.
const EXIT_INTERRUPTED: u8 = 130;

/// Cancelled by SIGTERM.
const EXIT_TERMINATED: u8 = 143;

fn main() -> ExitCode {
    // Before anything else, so that the time to the first row is that of the whole process.
    let clock = Clock::start();
    let cli = Cli::parse();
    start_logs();
    allow_descriptors();
    let code = match cli.command {
        Command::Run(args) => run::run(&args, clock),
        Command::Check(args) => check::check(&args),
        Command::Recv(args) => recv::recv(&args),
        Command::Send(args) => send::send(&args),
    };
    ExitCode::from(code)
}

/// Takes as many descriptors as the process may have: an edge over shared memory needs six on
/// either side, and the usual limit is for programs that wait for numbers below 1024.
fn allow_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// Warnings by default: whoever wants more says so in `RUST_LOG`.
fn start_logs() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing::Level::WARN.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::Errors)
        .with_ansi(false)
        .init();
}
