//! The hidden subcommands: as what the harness starts this program again, for a case that takes
//! more than one process. Whoever starts one makes its words.

use std::net::SocketAddr;

use clap::{Args, Subcommand};
use ringway::placement::CpuId;

use crate::error::BenchError;
use crate::peers::{self, PeerArgs};
use crate::{edge, latency, memory, scale};

use super::flags::cpu;

/// A process that the harness starts for a case.
#[derive(Clone, Debug, Subcommand)]
pub enum Child {
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

impl Child {
    /// Does it, and returns what there is to tell at the end. `smoke` is for small inputs.
    ///
    /// # Errors
    /// When it can't be pinned, or what comes is not what is sent.
    pub(super) fn run(&self, smoke: bool) -> Result<String, BenchError> {
        match self {
            Self::Receive(args) => edge::socket::receive(args.carrier, args.cpu, args.tallied),
            Self::Echo(args) => latency::echo(args.echo, args.cpu),
            Self::Peer(args) => peers::take_part(args, smoke),
            Self::ReceiveMany(args) => scale::receive(args.remote, args.edges, args.cpu),
            Self::Hold(args) => memory::hold(args.held, args.edges, args.to, args.cpu),
            Self::ReceiveShared(args) => receive_shared(args),
            Self::EchoShared(args) => echo_shared(args),
        }
    }
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
