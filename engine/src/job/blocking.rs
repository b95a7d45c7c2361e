//! Blocking exchanges: where one stage of a job ends and the next begins.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::connect::spill::{BlockingOptions, Spill};
use crate::operator::{Sink, Source, Subtask};

use super::graph::{Graph, NodeId};
use super::node::{SinkNode, SourceNode};

/// A blocking exchange: a sink that spills, and a source that reads that again once all
/// subtasks of the sink have ended. No edge leads from one to the other.
#[derive(Clone)]
pub struct BlockingEdge {
    /// The sink.
    pub from: NodeId,
    /// The source.
    pub to: NodeId,
    pub(super) spill: Arc<Spill>,
}

impl BlockingEdge {
    /// How it spills.
    pub fn options(&self) -> &BlockingOptions {
        self.spill.options()
    }
}

impl Graph {
    /// Adds a blocking exchange of record batches: the sink to connect to, and the source that
    /// gives its rows again in a later stage.
    pub fn add_blocking(&mut self, name: &str, options: BlockingOptions) -> BlockingEdge {
        let spill = Spill::new(name.to_owned(), options);
        let half = Arc::clone(&spill);
        let sink = SinkNode::<RecordBatch, _>::new(move |subtask: &Subtask| {
            Ok(Box::new(half.sink(subtask)?) as Box<dyn Sink<RecordBatch>>)
        });
        let from = self.add(format!("{name}.spill"), sink);
        self[from].needs_end = true;
        let half = Arc::clone(&spill);
        let source = SourceNode::<RecordBatch, _>::new(None, move |subtask: &Subtask| {
            Ok(Box::new(half.source(subtask)?) as Box<dyn Source<RecordBatch>>)
        });
        let to = self.add(name, source);
        let edge = BlockingEdge { from, to, spill };
        self.blocking.push(edge.clone());
        edge
    }

    /// All blocking exchanges, in the order they were added.
    pub fn blocking(&self) -> &[BlockingEdge] {
        &self.blocking
    }
}
