//! One sorted stream of several sorted runs.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::row::Rows;

use crate::batch::Payload;
use crate::connect::spill::{SpillReader, SpilledFile};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;

/// Merges sorted runs. Of equal rows those of earlier runs come first. It blocks.
pub(super) struct Merge<'a, K> {
    keys_of: K,
    /// Bytes that a merged batch has, about, and that rows which were all given hold on to.
    piece_bytes_max: usize,
    runs: Vec<RunReader<'a>>,
    /// The runs that have rows left, that with the least row on top.
    heads: BinaryHeap<Head>,
    /// The batches that rows are taken from.
    batches: Vec<RecordBatch>,
    /// Bytes of those of which all rows were taken.
    done_bytes: usize,
}

/// The files of a run that have not been read.
struct RunReader<'a> {
    files: std::slice::Iter<'a, SpilledFile>,
    reader: Option<SpillReader>,
}

/// The next row of a run.
struct Head {
    run: usize,
    keys: Rows,
    row: usize,
    /// Bytes of the batch.
    bytes: usize,
    /// The batch of the row among those that rows are taken from.
    batch: usize,
}

impl<'a, K: Fn(&RecordBatch) -> Result<Rows, OperatorError>> Merge<'a, K> {
    /// Begins to read `runs`. `keys_of` brings rows into a form in which their order is that of
    /// their bytes.
    pub(super) fn new(
        runs: impl Iterator<Item = &'a [SpilledFile]>,
        piece_bytes_max: usize,
        keys_of: K,
    ) -> Result<Self, OperatorError> {
        let mut merge = Self {
            keys_of,
            piece_bytes_max,
            runs: Vec::new(),
            heads: BinaryHeap::new(),
            batches: Vec::new(),
            done_bytes: 0,
        };
        for (run, files) in runs.enumerate() {
            merge.runs.push(RunReader {
                files: files.iter(),
                reader: None,
            });
            if let Some(head) = merge.next_head(run)? {
                merge.heads.push(head);
            }
        }
        Ok(merge)
    }

    /// The next rows in order; none when all were given.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>, OperatorError> {
        let mut picked = Vec::new();
        let mut picked_bytes = 0;
        while picked.len() < BATCH_ROWS
            && picked_bytes < self.piece_bytes_max
            && self.done_bytes < self.piece_bytes_max
        {
            let Some(mut head) = self.heads.peek_mut() else {
                break;
            };
            picked.push((head.batch, head.row));
            head.row += 1;
            picked_bytes += head.bytes / head.keys.num_rows();
            if head.row < head.keys.num_rows() {
                continue;
            }
            self.done_bytes += head.bytes;
            let run = std::collections::binary_heap::PeekMut::pop(head).run;
            if let Some(next) = self.next_head(run)? {
                self.heads.push(next);
            }
        }
        if picked.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let merged = interleave_record_batch(&batches, &picked)?;
        self.let_go();
        Ok(Some(merged))
    }

    /// Lets go of the batches whose rows were all given.
    fn let_go(&mut self) {
        let mut batches = Vec::new();
        let mut heads = std::mem::take(&mut self.heads).into_vec();
        for head in &mut heads {
            batches.push(self.batches[head.batch].clone());
            head.batch = batches.len() - 1;
        }
        self.batches = batches;
        self.heads = heads.into();
        self.done_bytes = 0;
    }

    fn next_head(&mut self, run: usize) -> Result<Option<Head>, OperatorError> {
        let Some(batch) = self.runs[run].next_batch()? else {
            return Ok(None);
        };
        let keys = (self.keys_of)(&batch)?;
        let bytes = batch.bytes();
        self.batches.push(batch);
        Ok(Some(Head {
            run,
            keys,
            row: 0,
            bytes,
            batch: self.batches.len() - 1,
        }))
    }
}

impl RunReader<'_> {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, OperatorError> {
        loop {
            if let Some(reader) = &mut self.reader
                && let Some(batch) = reader.next_batch()?
            {
                return Ok(Some(batch));
            }
            let Some(file) = self.files.next() else {
                return Ok(None);
            };
            self.reader = Some(file.open()?);
        }
    }
}

/// The least row is the greatest head, for that is what a heap has on top.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let (own, others) = (self.keys.row(self.row), other.keys.row(other.row));
        others.cmp(&own).then(other.run.cmp(&self.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}
