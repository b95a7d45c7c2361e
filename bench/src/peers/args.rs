//! What the other process of a case is told to do.

use clap::{Args, Subcommand};
use ringway::placement::CpuId;

use crate::cli::cpu;
use crate::error::BenchError;

use super::tcp::{self, Answerer};

#[cfg(feature = "timely")]
use super::engine::{self, Engine, Share};

/// What the other process of a case does.
#[derive(Clone, Debug, Args)]
pub struct PeerArgs {
    #[command(subcommand)]
    party: Party,
}

#[derive(Clone, Debug, Subcommand)]
enum Party {
    /// Answers what comes over TCP.
    Answer(AnswerArgs),
    /// Takes part in an exchange.
    #[cfg(feature = "timely")]
    Exchange(ExchangeArgs),
}

#[derive(Clone, Copy, Debug, Args)]
struct AnswerArgs {
    /// As what it answers.
    answerer: Answerer,
    /// The CPU to run on.
    #[arg(value_parser = cpu)]
    cpu: CpuId,
}

#[cfg(feature = "timely")]
#[derive(Clone, Debug, Args)]
struct ExchangeArgs {
    /// Whose exchange it is.
    engine: Engine,
    /// Where both processes are.
    hosts: String,
    /// How often the input is gone over.
    count: u64,
    /// The CPU of its worker.
    #[arg(value_parser = cpu)]
    cpu: CpuId,
}

/// In the other process: does it, and tells at the end what there is to tell. `smoke` is for small
/// inputs.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
#[cfg_attr(not(feature = "timely"), expect(unused_variables))]
pub(crate) fn take_part(args: &PeerArgs, smoke: bool) -> Result<String, BenchError> {
    match &args.party {
        Party::Answer(args) => tcp::answer(args.answerer, args.cpu),
        #[cfg(feature = "timely")]
        Party::Exchange(args) => engine::take_part(&Share {
            engine: args.engine,
            hosts: args.hosts.clone(),
            count: args.count,
            smoke,
            cpu: args.cpu,
        }),
    }
}
