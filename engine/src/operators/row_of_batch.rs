//! Rows of earlier batches, and the columns that are made of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;

use crate::error::OperatorError;
use crate::operators::aggregate::FastHash;

/// A row of a batch, which lives as long as one of its rows is needed.
#[derive(Clone)]
pub(crate) struct RowOfBatch {
    pub(crate) batch: Arc<RecordBatch>,
    pub(crate) row: u32,
}

/// Rows to make columns of, by the batches that they are in.
#[derive(Default)]
pub(crate) struct PickedRows {
    batches: Vec<Arc<RecordBatch>>,
    /// The positions of batches, by address.
    positions: HashMap<usize, usize, FastHash>,
    /// Batch and row; none for a row of nulls.
    picks: Vec<Option<(usize, usize)>>,
}

impl PickedRows {
    /// Adds a row; without one, a row of nulls.
    pub(crate) fn push(&mut self, row: Option<&RowOfBatch>) {
        let Some(RowOfBatch { batch, row }) = row else {
            self.picks.push(None);
            return;
        };
        // Rows of one batch mostly come one after another.
        let position = match self.picks.last() {
            Some(&Some((last, _))) if Arc::ptr_eq(&self.batches[last], batch) => last,
            _ => self.position_of(batch),
        };
        self.picks.push(Some((position, *row as usize)));
    }

    fn position_of(&mut self, batch: &Arc<RecordBatch>) -> usize {
        let address = Arc::as_ptr(batch) as usize;
        let batches = &mut self.batches;
        *self.positions.entry(address).or_insert_with(|| {
            batches.push(Arc::clone(batch));
            batches.len() - 1
        })
    }

    /// The columns of the rows, of the types of `schema`; none is left.
    pub(crate) fn take(&mut self, schema: &SchemaRef) -> Result<Vec<ArrayRef>, OperatorError> {
        let Self { batches, picks, .. } = std::mem::take(self);
        let nulls = (batches.len(), 0);
        let with_nulls = picks.iter().any(Option::is_none);
        let picks: Vec<(usize, usize)> = picks.iter().map(|pick| pick.unwrap_or(nulls)).collect();
        let column = |(index, data_type)| {
            let null_row = new_null_array(data_type, usize::from(with_nulls));
            let mut arrays: Vec<&dyn Array> = batches
                .iter()
                .map(|batch| batch.column(index).as_ref())
                .collect();
            if with_nulls {
                arrays.push(&null_row);
            }
            Ok(interleave(&arrays, &picks)?)
        };
        let types = schema.fields().iter().map(|field| field.data_type());
        types.enumerate().map(column).collect()
    }
}
