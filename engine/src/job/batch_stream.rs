//! What streams of record batches can do that streams of typed rows cannot.

use arrow::datatypes::SchemaRef;

use crate::connect::spill::BlockingOptions;
use crate::operators::SpecError;
use crate::operators::columnar::{Limit, Sort, SortSpec};
use crate::partition::Parallelism;

use super::graph::Port;
use super::stream::BatchStream;

impl BatchStream {
    /// Ends the stage: what follows begins when all rows of this stream have been written to
    /// files on the disk, and reads them from there. When it fails it is run again from the
    /// files, and what comes before is not: see [`BlockingOptions::restarts`].
    ///
    /// Each subtask of what comes before has files of its own; how rows are spread over the
    /// next operator is said of the stream behind, such as with [`BatchStream::rebalance`].
    pub fn blocking(self, name: &str, options: BlockingOptions) -> Self {
        let job = self.job.clone();
        let edge = {
            let mut graph = job.graph.borrow_mut();
            let edge = graph.add_blocking(name, options);
            // As many as before, so that rows go subtask to subtask and keep their order.
            graph[edge.from].parallelism = graph[self.ends[0].node].parallelism;
            edge
        };
        self.connect_to(edge.from);
        job.stream(edge.to, Port::Main)
    }

    /// Puts all rows, which have the columns of `schema`, in order, once the stream has ended.
    /// There is one subtask; behind an operator with more the order holds within each only.
    ///
    /// # Errors
    /// [`SpecError`] when the schema has no such column, or one cannot be ordered by.
    pub fn sort(self, schema: SchemaRef, spec: SortSpec) -> Result<Self, SpecError> {
        Sort::new(schema.clone(), spec.clone())?;
        let sorted = self.process("sort", move |_| {
            Ok(Sort::new(schema.clone(), spec.clone())?)
        });
        sorted.job.graph.borrow_mut()[sorted.ends[0].node].needs_end = true;
        Ok(sorted.parallelism(Parallelism::ONE))
    }

    /// Leaves out the first `offset` rows, keeps the next `rows`, and discards all others. There
    /// is one subtask.
    pub fn limit(self, rows: u64, offset: u64) -> Self {
        let limited = self.process("limit", move |_| Ok(Limit::new(rows, offset)));
        limited.parallelism(Parallelism::ONE)
    }

    /// Says that the operator that this stream comes from is a source that never ends by
    /// itself: the plan then refuses whatever would wait for its end.
    pub fn unbounded(self) -> Self {
        self.job.graph.borrow_mut()[self.ends[0].node].is_unbounded = true;
        self
    }
}
