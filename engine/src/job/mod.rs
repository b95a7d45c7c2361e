//! Jobs: what to run (the graph), where (the plan), and running it.

mod build;
pub mod graph;
pub mod node;
pub mod payload;
pub mod plan;
pub mod run;
pub mod stream;

pub use build::BuildError;
pub use graph::{Exchange, ExchangeKind, Graph, NodeId, Port};
pub use plan::{Plan, PlanError, PlanOptions};
pub use run::{CommandRefused, JobError, JobHandle, JobOutcome, JobReport, RunOptions, start};
pub use stream::{BatchStream, DataStream, Job, KeyedStream, RunError, Stream};
