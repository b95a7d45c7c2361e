//! Jobs: what to run (the graph), where (the plan), and running it.

mod batch_stream;
mod blocking;
mod build;
pub mod cluster;
mod connected_stream;
pub mod file;
pub mod graph;
mod keyed_operators;
mod keyed_stream;
pub mod node;
pub mod payload;
pub mod plan;
pub mod remote;
pub mod run;
mod sides_codec;
mod sockets;
pub mod stream;
mod two_inputs;

pub use blocking::BlockingEdge;
pub use build::BuildError;
pub use cluster::{Cluster, ClusterOptions, GatherError, Hosts, ProcessReport};
pub use connected_stream::{ConnectedStreams, KeyedBroadcastStreams, KeyedConnectedStreams};
pub use graph::{Exchange, ExchangeKind, Graph, NodeId, Port, StreamEdge};
pub use keyed_operators::{CountStream, RankedStream, SessionStreams};
pub use keyed_stream::{KeyedStream, WindowStream, WindowedStream};
pub use plan::{Plan, PlanError, PlanOptions};
pub use run::{
    CommandRefused, JobError, JobHandle, JobOutcome, JobReport, RunOptions, start, start_in,
};
pub use sockets::SocketEdges;
pub use stream::{BatchStream, DataStream, Job, RunError, Stream};
