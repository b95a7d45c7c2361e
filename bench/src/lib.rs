//! Ringway beside what one would pick instead, measured in one run.
//!
//! Every case is a pair of contenders, ours and a baseline, that do the same work and whose
//! results are checked in every run. They take turns, so that a machine that changes under
//! them changes for both, and the figures of a case are medians over the pairs that were
//! measured at one placement of the two cores. `docs/PERFORMANCE.md` describes the method and
//! the output.

mod answer;
mod backoff;
mod case;
mod cli;
mod columnar;
mod compare;
mod contest;
mod cpus;
mod data;
mod edge;
mod error;
mod hdr_log;
mod host;
mod idle;
mod job;
mod latencies;
mod latency;
mod line_probe;
mod load;
mod memory;
mod named;
mod noise;
mod parent;
mod peers;
mod pinned;
mod progress;
mod report;
mod rerun;
mod results;
mod ring;
mod scale;
mod selection;
mod shared;
mod sizes;
mod spent;
mod table;
mod transport;

pub use answer::Answer;
pub use case::{Case, Failed, LeftOut, Line, Percentile, Placement, Report};
pub use cli::{
    Bench, Child, Cli, Command, CommonArgs, EchoArgs, EdgeArgs, HoldArgs, IdleArgs, LatencyArgs,
    LoadArgs, LogArgs, ReceiveArgs, ReceiveManyArgs, SharedEchoArgs, SharedReceiveArgs, TableArgs,
    TransportsArgs, run,
};
pub use compare::CompareArgs;
pub use cpus::CpuPair;
pub use error::BenchError;
pub use host::Host;
pub use job::keep_freed_memory;
pub use peers::PeerArgs;
pub use report::ReportArgs;
pub use transport::Transport;
