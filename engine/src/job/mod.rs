//! Jobs: what to run (the graph), where (the plan), and running it.

pub mod graph;
pub mod node;
pub mod payload;

pub use graph::{Exchange, Graph, NodeId, Port};
