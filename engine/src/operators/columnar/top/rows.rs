//! Rows of earlier batches, and the columns that are made of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::interleave;

use crate::error::OperatorError;
use crate::operators::aggregate::FastHash;

/// A row of a batch, which lives as long as one of its rows is needed.
#[derive(Clone)]
pub(super) struct RowOfBatch {
    pub(super) batch: Arc<RecordBatch>,
    pub(super) row: u32,
}

/// Rows to make columns of, by the batches that they are in.
#[derive(Default)]
pub(super) struct PickedRows {
    batches: Vec<Arc<RecordBatch>>,
    /// The positions of batches, by address.
    positions: HashMap<usize, usize, FastHash>,
    /// Batch and row.
    picks: Vec<(usize, usize)>,
}

impl PickedRows {
    /// Adds a row.
    pub(super) fn push(&mut self, row: &RowOfBatch) {
        let RowOfBatch { batch, row } = row;
        // Rows of one batch mostly come one after another.
        let position = match self.picks.last() {
            Some(&(last, _)) if Arc::ptr_eq(&self.batches[last], batch) => last,
            _ => self.position_of(batch),
        };
        self.picks.push((position, *row as usize));
    }

    fn position_of(&mut self, batch: &Arc<RecordBatch>) -> usize {
        let address = Arc::as_ptr(batch) as usize;
        let batches = &mut self.batches;
        *self.positions.entry(address).or_insert_with(|| {
            batches.push(Arc::clone(batch));
            batches.len() - 1
        })
    }

    /// The `columns` columns of the rows; none is left.
    pub(super) fn take(&mut self, columns: usize) -> Result<Vec<ArrayRef>, OperatorError> {
        let Self { batches, picks, .. } = std::mem::take(self);
        let column = |index: usize| {
            let columns = batches.iter().map(|batch| batch.column(index).as_ref());
            let columns: Vec<&dyn Array> = columns.collect();
            Ok(interleave(&columns, &picks)?)
        };
        (0..columns).map(column).collect()
    }
}
