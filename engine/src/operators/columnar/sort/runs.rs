//! The sorted runs on the disk, and which of them are merged at a time.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::batch::Payload;
use crate::connect::ArrowCompression;
use crate::connect::spill::{SpillBudget, SpillFolder, SpillWriter, SpilledFile};
use crate::error::OperatorError;

use super::sorter::Stop;

/// Runs that are merged at a time: each needs an open file and a batch.
const MERGED_RUNS_MAX: usize = 64;

/// Bytes that reading a run takes beside its batch.
const READ_BYTES: usize = 256 << 10;

/// Batches of runs are cut no smaller than this: what a merge takes beyond the rows themselves
/// would be most of it.
const PIECE_BYTES_MIN: usize = 64 << 10;

/// What a merge may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeBounds {
    memory_max_bytes: usize,
    piece_bytes_max: usize,
}

/// A sorted run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    files: Vec<SpilledFile>,
    /// The most bytes of a batch of it, with what its rows are compared by.
    batch_bytes_max: usize,
}

/// The runs on the disk, in the order in which their rows came.
pub(super) struct SpilledRuns {
    folder: Arc<SpillFolder>,
    budget: SpillBudget,
    runs: Vec<Run>,
    written: usize,
    bytes: u64,
}

/// Writes a run in batches that are small enough for merging.
pub(super) struct RunWriter {
    writer: SpillWriter,
    bounds: MergeBounds,
    key_share: f64,
    batch_bytes_max: usize,
}

impl MergeBounds {
    pub(super) fn new(memory_max_bytes: usize) -> Self {
        // One is taken from each run, and as many again are let go of and made at the same time.
        let pieces = memory_max_bytes / (MERGED_RUNS_MAX + 4);
        Self {
            memory_max_bytes,
            piece_bytes_max: pieces.saturating_sub(READ_BYTES).max(PIECE_BYTES_MIN),
        }
    }

    /// Bytes of a batch that is written or merged, with what its rows are compared by.
    pub(super) const fn piece_bytes_max(self) -> usize {
        self.piece_bytes_max
    }

    /// The runs to merge into one before all can be merged at once; none when they can. They
    /// follow each other and begin at `from`, which goes on behind what they become: so every
    /// row is merged once before one is merged again.
    pub(super) fn next_merge(self, runs: &[Run], from: &mut usize) -> Option<Range<usize>> {
        let last = self.fitting(runs);
        if last == runs.len() {
            return None;
        }
        if *from + 1 >= runs.len() {
            *from = 0;
        }
        // No more than are too many, so that most rows are merged once only.
        let too_many = runs.len() - last + 1;
        let merged = self.fitting(&runs[*from..]).min(too_many);
        let range = *from..*from + merged;
        *from += 1;
        Some(range)
    }

    /// How many of the first of `runs` can be merged at once; two at least, if there are.
    fn fitting(self, runs: &[Run]) -> usize {
        let mut taken = 0;
        let fit = runs.iter().take(MERGED_RUNS_MAX).take_while(|run| {
            taken += run.merging_bytes();
            taken <= self.room()
        });
        fit.count().max(2).min(runs.len())
    }

    /// Bytes for the runs of a merge: beside what was taken from them and what is made of it.
    const fn room(self) -> usize {
        let beside = 3 * self.piece_bytes_max;
        self.memory_max_bytes.saturating_sub(beside)
    }
}

impl Run {
    pub(super) fn files(&self) -> &[SpilledFile] {
        &self.files
    }

    #[cfg(test)]
    pub(super) const fn batch_bytes_max(&self) -> usize {
        self.batch_bytes_max
    }

    /// Bytes that merging it takes.
    const fn merging_bytes(&self) -> usize {
        self.batch_bytes_max + READ_BYTES
    }
}

impl SpilledRuns {
    /// No runs, in a folder of its own in `spill_dir`.
    pub(super) fn new(spill_dir: Option<&Path>, bytes_max: u64) -> Result<Self, OperatorError> {
        Ok(Self {
            folder: Arc::new(SpillFolder::create(spill_dir)?),
            budget: SpillBudget::new(bytes_max),
            runs: Vec::new(),
            written: 0,
            bytes: 0,
        })
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// All that was written, merged runs included.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes another run. A byte of its rows takes `key_share` bytes to compare them by.
    pub(super) fn writer(
        &mut self,
        compression: ArrowCompression,
        bounds: MergeBounds,
        key_share: f64,
    ) -> RunWriter {
        let stem = format!("run-{}", self.written);
        self.written += 1;
        let (folder, budget) = (self.folder.clone(), self.budget.clone());
        RunWriter {
            writer: SpillWriter::new(folder, stem, compression, budget),
            bounds,
            key_share,
            batch_bytes_max: 0,
        }
    }

    /// A run is written, behind all others.
    pub(super) fn push(&mut self, run: Run) {
        self.count(&run);
        self.runs.push(run);
    }

    /// A run is written that has the rows of these.
    pub(super) fn replace(&mut self, merged: Range<usize>, run: Run) {
        self.count(&run);
        for file in self.runs.splice(merged, [run]).flat_map(|run| run.files) {
            self.budget.give_back(file.bytes());
            file.remove();
        }
    }

    fn count(&mut self, run: &Run) {
        self.bytes += run.files.iter().map(SpilledFile::bytes).sum::<u64>();
    }
}

impl RunWriter {
    /// Writes rows that come behind all that were written.
    pub(super) fn write(
        &mut self,
        batch: &RecordBatch,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<(), Stop> {
        if is_gone() {
            return Err(Stop::Gone);
        }
        let (rows, bytes) = (batch.num_rows(), batch.bytes());
        let with_keys = bytes.saturating_add((bytes as f64 * self.key_share) as usize);
        if with_keys > self.bounds.piece_bytes_max && rows > 1 {
            let half = rows / 2;
            self.write(&batch.slice(0, half), is_gone)?;
            return self.write(&batch.slice(half, rows - half), is_gone);
        }
        self.batch_bytes_max = self.batch_bytes_max.max(with_keys);
        Ok(self.writer.write(batch)?)
    }

    pub(super) fn finish(self) -> Result<Run, OperatorError> {
        Ok(Run {
            files: self.writer.finish()?,
            batch_bytes_max: self.batch_bytes_max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(count: usize, batch_bytes_max: usize) -> Vec<Run> {
        let run = Run {
            files: Vec::new(),
            batch_bytes_max,
        };
        vec![run; count]
    }

    /// How often a row is merged before the last merge, at most and on average; and the runs
    /// that are left.
    fn merged(bounds: MergeBounds, batch_bytes_max: usize, count: usize) -> (u32, f64, usize) {
        let mut runs = runs(count, batch_bytes_max);
        let mut times: Vec<Vec<u32>> = vec![vec![0]; count];
        let mut from = 0;
        while let Some(range) = bounds.next_merge(&runs, &mut from) {
            let taken: usize = range.clone().map(|run| runs[run].merging_bytes()).sum();
            assert!(range.len() == 2 || taken <= bounds.room());
            assert!(range.len() >= 2);
            runs.drain(range.start + 1..range.end);
            let rows: Vec<u32> = times.drain(range.clone()).flatten().collect();
            times.insert(range.start, rows.iter().map(|times| times + 1).collect());
        }
        let left = runs.len();
        let times: Vec<u32> = times.concat();
        let all: u32 = times.iter().sum();
        let most = times.iter().copied().max().unwrap_or(0);
        (most, f64::from(all) / count as f64, left)
    }

    #[test]
    fn every_row_is_merged_as_often_as_the_runs_need_and_not_more() {
        let bounds = MergeBounds::new(256 << 20);
        let piece = bounds.piece_bytes_max();
        assert_eq!(merged(bounds, piece, 64), (0, 0.0, 64));
        let (most, mean, left) = merged(bounds, piece, 65);
        assert_eq!((most, left), (1, 64));
        assert!(mean < 0.04, "two runs of 65: {mean}");
        // 64 runs of 64.
        let (most, mean, left) = merged(bounds, piece, 4096);
        assert_eq!((most, left), (1, 64));
        assert!(mean <= 1.0, "{mean}");
        let (most, mean, _) = merged(bounds, piece, 20_000);
        assert!(most <= 2 && mean <= 2.0, "{most} {mean}");
    }

    #[test]
    fn a_merge_takes_no_more_memory_than_the_sort_may() {
        for memory_max_bytes in [1, 1 << 20, 20 << 20, 256 << 20, 4 << 30] {
            let bounds = MergeBounds::new(memory_max_bytes);
            for batch_bytes in [1000, bounds.piece_bytes_max(), 100 << 20] {
                let (most, _, left) = merged(bounds, batch_bytes, 1000);
                let taken = left * (batch_bytes + READ_BYTES) + 3 * bounds.piece_bytes_max();
                assert!(
                    left == 2 || taken <= memory_max_bytes,
                    "{left} runs, {taken}"
                );
                // 1000 runs two by two are merged ten times.
                assert!(most <= 10, "{most}");
            }
        }
    }
}
