//! The batches that waiting rows are in, and the columns that are made of some of the rows.

use std::num::NonZeroU64;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;

use crate::error::OperatorError;

/// Stands for a batch of which no row was picked.
const NOT_PICKED: usize = usize::MAX;

/// A row of a batch that is held: one word, which is written and read at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowNumber(NonZeroU64);

impl RowNumber {
    /// Row `row` of batch `batch`.
    #[inline]
    pub(super) const fn new(batch: u32, row: u32) -> Self {
        // Batches are far fewer than numbers, so the sum is no larger than 32 bits.
        let word = ((batch as u64 + 1) << 32) | row as u64;
        Self(NonZeroU64::new(word).expect("one was added"))
    }

    #[inline]
    pub(super) const fn batch(self) -> u32 {
        ((self.0.get() >> 32) - 1) as u32
    }

    #[inline]
    const fn row(self) -> u32 {
        self.0.get() as u32
    }
}

/// The batches of one input as long as one of their rows is needed, and the rows that were
/// picked of them. Rows are counted here and not by each row's handle, because they are many.
pub(super) struct HeldRows {
    /// None for an input that does not come out, whose batches are not needed.
    schema: Option<SchemaRef>,
    batches: Vec<HeldBatch>,
    unused: Vec<u32>,
    /// Batches of which rows were picked.
    picked_batches: Vec<u32>,
    /// The place among those, and the row.
    picks: Vec<(usize, usize)>,
    has_null_rows: bool,
}

struct HeldBatch {
    batch: Option<RecordBatch>,
    uses: u32,
    /// The place among the batches of which rows were picked.
    picked_at: usize,
}

impl HeldRows {
    /// Nothing held, of an input with this schema, if it comes out.
    pub(super) fn new(schema: Option<SchemaRef>) -> Self {
        Self {
            schema,
            batches: Vec::new(),
            unused: Vec::new(),
            picked_batches: Vec::new(),
            picks: Vec::new(),
            has_null_rows: false,
        }
    }

    /// Holds a batch, once, and gives it a number.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> u32 {
        let number = self.unused.pop().unwrap_or(self.batches.len() as u32);
        let held = HeldBatch {
            batch: self.schema.is_some().then(|| batch.clone()),
            uses: 1,
            picked_at: NOT_PICKED,
        };
        match self.batches.get_mut(number as usize) {
            Some(place) => *place = held,
            None => self.batches.push(held),
        }
        number
    }

    /// Holds a batch once more.
    #[inline]
    pub(super) fn hold(&mut self, batch: u32) {
        self.batches[batch as usize].uses += 1;
    }

    /// Holds a batch once less; it is gone when nothing does and no row of it is picked.
    #[inline]
    pub(super) fn release(&mut self, batch: u32) {
        let held = &mut self.batches[batch as usize];
        held.uses -= 1;
        if held.uses == 0 && held.picked_at == NOT_PICKED {
            held.batch = None;
            self.unused.push(batch);
        }
    }

    /// Nothing holds a batch any more.
    pub(super) fn release_all(&mut self) {
        for (number, held) in self.batches.iter_mut().enumerate() {
            let was_held = std::mem::take(&mut held.uses) > 0;
            if was_held && held.picked_at == NOT_PICKED {
                held.batch = None;
                self.unused.push(number as u32);
            }
        }
    }

    /// Picks a row; without one, a row of nulls.
    #[inline]
    pub(super) fn pick(&mut self, row: Option<RowNumber>) {
        if self.schema.is_none() {
            return;
        }
        let Some(row) = row else {
            self.has_null_rows = true;
            self.picks.push((NOT_PICKED, 0));
            return;
        };
        let held = &mut self.batches[row.batch() as usize];
        if held.picked_at == NOT_PICKED {
            held.picked_at = self.picked_batches.len();
            self.picked_batches.push(row.batch());
        }
        self.picks.push((held.picked_at, row.row() as usize));
    }

    /// The columns of the rows that were picked; none is picked then.
    pub(super) fn take_picked(&mut self) -> Result<Vec<ArrayRef>, OperatorError> {
        let Some(schema) = &self.schema else {
            return Ok(Vec::new());
        };
        if self.has_null_rows {
            let null_row = (self.picked_batches.len(), 0);
            let null_rows = self.picks.iter_mut().filter(|(at, _)| *at == NOT_PICKED);
            null_rows.for_each(|pick| *pick = null_row);
        }
        let column = |(index, data_type)| {
            let null_row = new_null_array(data_type, usize::from(self.has_null_rows));
            let batches = self.picked_batches.iter();
            let batches = batches.map(|batch| self.batches[*batch as usize].batch.as_ref());
            let mut arrays: Vec<&dyn Array> = batches
                .flatten()
                .map(|batch| batch.column(index).as_ref())
                .collect();
            if self.has_null_rows {
                arrays.push(&null_row);
            }
            Ok(interleave(&arrays, &self.picks)?)
        };
        let types = schema.fields().iter().map(|field| field.data_type());
        let columns: Result<_, OperatorError> = types.enumerate().map(column).collect();
        self.picks.clear();
        self.has_null_rows = false;
        for batch in std::mem::take(&mut self.picked_batches) {
            let held = &mut self.batches[batch as usize];
            held.picked_at = NOT_PICKED;
            if held.uses == 0 {
                held.batch = None;
                self.unused.push(batch);
            }
        }
        columns
    }

    /// Batches that are held.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.batches.len() - self.unused.len()
    }
}
