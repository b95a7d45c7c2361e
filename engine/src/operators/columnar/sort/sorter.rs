//! The thread that sorts: in memory as long as there is room, and then in runs on the disk.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, Rows};
use ringway_shm::PopError;

use crate::batch::Payload;
use crate::connect::side::channel::{Gone, SideReceiver, SideSender};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;

use super::SortSpec;
use super::merge::Merge;
#[cfg(test)]
use super::runs::Run;
use super::runs::{MergeBounds, RunWriter, SpilledRuns};

/// What the thread tells.
pub(super) enum Sorted {
    Batch(RecordBatch),
    /// All that was spilled, in bytes. Said once, before the first batch.
    Spilled(u64),
    Failed(OperatorError),
}

/// What the side thread owns.
pub(super) struct SortThread {
    sorter: Option<Sorter>,
    batches: SideReceiver<RecordBatch>,
    results: Option<SideSender<Sorted>>,
}

/// Why the thread stops before the end.
#[derive(Debug)]
pub(super) enum Stop {
    /// Nobody wants to know any more.
    Gone,
    Failed(OperatorError),
}

/// Takes what is sorted.
pub(super) trait GivesSorted {
    fn give(&mut self, sorted: Sorted) -> Result<(), Stop>;

    /// Whether nobody wants it any more: long work stops then.
    fn is_gone(&self) -> bool;
}

impl SortThread {
    pub(super) fn new(
        sorter: Sorter,
        batches: SideReceiver<RecordBatch>,
        results: SideSender<Sorted>,
    ) -> Self {
        Self {
            sorter: Some(sorter),
            batches,
            results: Some(results),
        }
    }

    pub(super) fn run(&mut self) {
        match self.sort() {
            Ok(()) => {
                if let Some(results) = self.results.take() {
                    results.finish();
                }
            }
            Err(Stop::Gone) => {}
            Err(Stop::Failed(error)) => self.fail(error),
        }
    }

    pub(super) fn panicked(&mut self, reason: String) {
        self.fail(OperatorError::new(format!(
            "the thread that sorts panicked: {reason}"
        )));
    }

    fn sort(&mut self) -> Result<(), Stop> {
        let (Some(mut sorter), Some(results)) = (self.sorter.take(), &mut self.results) else {
            return Ok(());
        };
        loop {
            match self.batches.pop() {
                Ok(batch) => sorter.add(batch, &|| results.is_abandoned())?,
                Err(PopError::Finished) => break,
                Err(PopError::Empty | PopError::Abandoned) => return Err(Stop::Gone),
            }
        }
        sorter.finish(results)
    }

    fn fail(&mut self, error: OperatorError) {
        // Where the operator is gone nobody wants to know. Not finished, so that nobody takes it
        // for the end.
        if let Some(mut results) = self.results.take() {
            let _ = results.push(Sorted::Failed(error), 0);
        }
        // Not before it is told why.
        self.batches.close();
    }
}

impl GivesSorted for SideSender<Sorted> {
    fn give(&mut self, sorted: Sorted) -> Result<(), Stop> {
        let bytes = match &sorted {
            Sorted::Batch(batch) => batch.bytes(),
            _ => 0,
        };
        Ok(self.push(sorted, bytes)?)
    }

    fn is_gone(&self) -> bool {
        self.is_abandoned()
    }
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl<E: Into<OperatorError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Sorts what it is given. It blocks.
pub(super) struct Sorter {
    schema: SchemaRef,
    spec: SortSpec,
    converter: RowConverter,
    held: Vec<RecordBatch>,
    /// Of each held batch, its rows in a form in which their order is that of their bytes.
    keys: Vec<Rows>,
    held_bytes: usize,
    /// The most bytes of keys for a byte of rows that a batch had.
    key_share: f64,
    spilled: Option<SpilledRuns>,
}

impl Sorter {
    pub(super) fn new(schema: SchemaRef, spec: SortSpec, converter: RowConverter) -> Self {
        Self {
            schema,
            spec,
            converter,
            held: Vec::new(),
            keys: Vec::new(),
            held_bytes: 0,
            key_share: 0.0,
            spilled: None,
        }
    }

    pub(super) fn add(
        &mut self,
        batch: RecordBatch,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<(), Stop> {
        // Of one schema all of them, so that rows of several can be put into one batch.
        let batch = RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())?;
        let keys = self.keys_of(&batch)?;
        let (bytes, key_bytes) = (batch.bytes(), keys.size());
        self.key_share = self.key_share.max(key_bytes as f64 / bytes.max(1) as f64);
        self.held_bytes += bytes + key_bytes + size_of::<(usize, usize)>() * batch.num_rows();
        self.held.push(batch);
        self.keys.push(keys);
        if self.held_bytes > self.spec.memory_max_bytes {
            self.spill(is_gone)?;
        }
        Ok(())
    }

    /// Gives all rows in order.
    pub(super) fn finish(mut self, out: &mut dyn GivesSorted) -> Result<(), Stop> {
        if self.spilled.is_none() {
            let order = self.order_of_held();
            return in_batches(&self.held, &order, &mut |batch| {
                out.give(Sorted::Batch(batch))
            });
        }
        self.spill(&|| out.is_gone())?;
        self.merge_until_few(&|| out.is_gone())?;
        let Some(spilled) = &self.spilled else {
            return Ok(());
        };
        out.give(Sorted::Spilled(spilled.bytes()))?;
        let mut merge = self.merge(spilled, 0..spilled.runs().len())?;
        while let Some(batch) = merge.next_batch()? {
            out.give(Sorted::Batch(batch))?;
        }
        Ok(())
    }

    /// Bytes of the largest batch that merging has to hold, with what its rows are compared by.
    #[cfg(test)]
    pub(super) fn largest_batch_bytes(&self) -> usize {
        let runs = self.spilled.iter().flat_map(SpilledRuns::runs);
        runs.map(Run::batch_bytes_max).max().unwrap_or(0)
    }

    fn keys_of(&self, batch: &RecordBatch) -> Result<Rows, OperatorError> {
        let order = self.spec.order.iter();
        let columns: Vec<ArrayRef> = order
            .map(|key| Arc::clone(batch.column(key.column)))
            .collect();
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// Where the held rows are, in order; equal ones as they came.
    fn order_of_held(&self) -> Vec<(usize, usize)> {
        let batches = self.held.iter().enumerate();
        let mut order: Vec<(usize, usize)> = batches
            .flat_map(|(at, batch)| (0..batch.num_rows()).map(move |row| (at, row)))
            .collect();
        let keys = &self.keys;
        order.sort_by(|one, other| {
            let (one, other) = (keys[one.0].row(one.1), keys[other.0].row(other.1));
            one.cmp(&other)
        });
        order
    }

    /// Writes what is held to the disk, as a run.
    fn spill(&mut self, is_gone: &dyn Fn() -> bool) -> Result<(), Stop> {
        if self.held.is_empty() {
            return Ok(());
        }
        let order = self.order_of_held();
        self.keys.clear();
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let mut writer = self.writer()?;
        in_batches(&held, &order, &mut |batch| writer.write(&batch, is_gone))?;
        let run = writer.finish()?;
        self.runs()?.push(run);
        Ok(())
    }

    /// Merges runs that follow each other until all that are left can be merged at once.
    fn merge_until_few(&mut self, is_gone: &dyn Fn() -> bool) -> Result<(), Stop> {
        let bounds = MergeBounds::new(self.spec.memory_max_bytes);
        let mut from = 0;
        while let Some(spilled) = &self.spilled
            && let Some(merged) = bounds.next_merge(spilled.runs(), &mut from)
        {
            let mut writer = self.writer()?;
            let Some(spilled) = &self.spilled else { break };
            let mut merge = self.merge(spilled, merged.clone())?;
            while let Some(batch) = merge.next_batch()? {
                writer.write(&batch, is_gone)?;
            }
            drop(merge);
            let run = writer.finish()?;
            self.runs()?.replace(merged, run);
        }
        Ok(())
    }

    fn merge<'a>(
        &'a self,
        spilled: &'a SpilledRuns,
        runs: Range<usize>,
    ) -> Result<Merge<'a, impl Fn(&RecordBatch) -> Result<Rows, OperatorError>>, OperatorError>
    {
        let bounds = MergeBounds::new(self.spec.memory_max_bytes);
        let runs = spilled.runs()[runs].iter().map(|run| run.files());
        Merge::new(runs, bounds.piece_bytes_max(), |batch| self.keys_of(batch))
    }

    fn writer(&mut self) -> Result<RunWriter, OperatorError> {
        let compression = self.spec.compression;
        let bounds = MergeBounds::new(self.spec.memory_max_bytes);
        let key_share = self.key_share;
        Ok(self.runs()?.writer(compression, bounds, key_share))
    }

    fn runs(&mut self) -> Result<&mut SpilledRuns, OperatorError> {
        let spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => SpilledRuns::new(self.spec.spill_dir.as_deref(), self.spec.spill_max_bytes)?,
        };
        Ok(self.spilled.insert(spilled))
    }
}

/// The rows of `batches` in the order of `order`.
fn in_batches(
    batches: &[RecordBatch],
    order: &[(usize, usize)],
    give: &mut dyn FnMut(RecordBatch) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    for part in order.chunks(BATCH_ROWS) {
        give(interleave_record_batch(&batches, part)?)?;
    }
    Ok(())
}
