//! The thread that sorts: in memory as long as there is room, and then in runs on the disk.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, Rows};
use ringway_shm::PopError;

use crate::batch::Payload;
use crate::connect::ArrowCompression;
use crate::connect::side::channel::{Gone, SideReceiver, SideSender};
use crate::connect::spill::{SpillBudget, SpillFolder, SpillWriter, SpilledFile};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;

use super::SortSpec;
use super::merge::Merge;

/// Runs that are merged at a time: each needs an open file and two batches.
const MERGED_RUNS_MAX: usize = 64;

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
enum Stop {
    Gone,
    Failed(OperatorError),
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
        let Some(mut sorter) = self.sorter.take() else {
            return Ok(());
        };
        loop {
            match self.batches.pop() {
                Ok(batch) => sorter.add(batch)?,
                Err(PopError::Finished) => break,
                Err(PopError::Empty | PopError::Abandoned) => return Err(Stop::Gone),
            }
        }
        let Some(results) = &mut self.results else {
            return Err(Stop::Gone);
        };
        sorter.finish(&mut |sorted| {
            let bytes = match &sorted {
                Sorted::Batch(batch) => batch.bytes(),
                _ => 0,
            };
            Ok(results.push(sorted, bytes)?)
        })
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
    spilled: Option<SpilledRuns>,
}

/// The runs on the disk, each sorted, in the order in which their rows came.
struct SpilledRuns {
    folder: Arc<SpillFolder>,
    budget: SpillBudget,
    runs: Vec<Vec<SpilledFile>>,
    written: usize,
    bytes: u64,
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
            spilled: None,
        }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<(), OperatorError> {
        // Of one schema all of them, so that rows of several can be put into one batch.
        let batch = RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())?;
        let keys = self.keys_of(&batch)?;
        self.held_bytes +=
            batch.bytes() + keys.size() + size_of::<(usize, usize)>() * batch.num_rows();
        self.held.push(batch);
        self.keys.push(keys);
        if self.held_bytes > self.spec.memory_max_bytes {
            self.spill()?;
        }
        Ok(())
    }

    /// Gives all rows in order.
    fn finish(mut self, give: &mut dyn FnMut(Sorted) -> Result<(), Stop>) -> Result<(), Stop> {
        if self.spilled.is_none() {
            let order = self.order_of_held();
            return in_batches(&self.held, &order, &mut |batch| give(Sorted::Batch(batch)));
        }
        self.spill()?;
        self.merge_until_few()?;
        let Some(spilled) = &self.spilled else {
            return Ok(());
        };
        give(Sorted::Spilled(spilled.bytes))?;
        let mut merge = Merge::new(&spilled.runs, |batch| self.keys_of(batch))?;
        while let Some(batch) = merge.next_batch()? {
            give(Sorted::Batch(batch))?;
        }
        Ok(())
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
    fn spill(&mut self) -> Result<(), OperatorError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let order = self.order_of_held();
        self.keys.clear();
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let mut writer = self.writer()?;
        let mut write =
            |batch: RecordBatch| -> Result<(), OperatorError> { Ok(writer.write(&batch)?) };
        in_batches(&held, &order, &mut write)?;
        self.runs()?.end_run(writer, None)
    }

    /// Merges runs that follow each other until few are left.
    fn merge_until_few(&mut self) -> Result<(), OperatorError> {
        while let Some(spilled) = &self.spilled
            && spilled.runs.len() > MERGED_RUNS_MAX
        {
            // No more than are too many, so that most rows are merged once only.
            let merged = MERGED_RUNS_MAX.min(spilled.runs.len() - MERGED_RUNS_MAX + 1);
            let runs = spilled.runs[..merged].to_vec();
            let mut writer = self.writer()?;
            let mut merge = Merge::new(&runs, |batch| self.keys_of(batch))?;
            while let Some(batch) = merge.next_batch()? {
                writer.write(&batch)?;
            }
            drop(merge);
            self.runs()?.end_run(writer, Some(merged))?;
        }
        Ok(())
    }

    fn writer(&mut self) -> Result<SpillWriter, OperatorError> {
        let compression = self.spec.compression;
        Ok(self.runs()?.writer(compression))
    }

    fn runs(&mut self) -> Result<&mut SpilledRuns, OperatorError> {
        let spilled = match self.spilled.take() {
            Some(spilled) => spilled,
            None => SpilledRuns {
                folder: Arc::new(SpillFolder::create(self.spec.spill_dir.as_deref())?),
                budget: SpillBudget::new(self.spec.spill_max_bytes),
                runs: Vec::new(),
                written: 0,
                bytes: 0,
            },
        };
        Ok(self.spilled.insert(spilled))
    }
}

impl SpilledRuns {
    fn writer(&mut self, compression: ArrowCompression) -> SpillWriter {
        let stem = format!("run-{}", self.written);
        self.written += 1;
        let (folder, budget) = (self.folder.clone(), self.budget.clone());
        SpillWriter::new(folder, stem, compression, budget)
    }

    /// A run is written: behind all others, or in place of the first so many.
    fn end_run(&mut self, writer: SpillWriter, merged: Option<usize>) -> Result<(), OperatorError> {
        let run = writer.finish()?;
        self.bytes += run.iter().map(SpilledFile::bytes).sum::<u64>();
        let Some(merged) = merged else {
            self.runs.push(run);
            return Ok(());
        };
        for file in self.runs.splice(..merged, [run]).flatten() {
            self.budget.give_back(file.bytes());
            file.remove();
        }
        Ok(())
    }
}

/// The rows of `batches` in the order of `order`.
fn in_batches<E: From<OperatorError>>(
    batches: &[RecordBatch],
    order: &[(usize, usize)],
    give: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    for part in order.chunks(BATCH_ROWS) {
        let batch = interleave_record_batch(&batches, part);
        give(batch.map_err(|error| E::from(OperatorError::from(error)))?)?;
    }
    Ok(())
}
