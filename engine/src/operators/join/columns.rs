//! Rows of earlier batches, and the batches that are made of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;

use crate::element::EventTime;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operators::aggregate::FastHash;

use super::state::JoinOutput;
use super::time::JoinTime;

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

/// The results of a join in the making.
pub(super) struct JoinedRows {
    schema: SchemaRef,
    time: JoinTime,
    /// Results begin with their time; those without take it from their only row.
    has_time: bool,
    sides: [Option<(SchemaRef, PickedRows)>; 2],
    times: Vec<EventTime>,
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

impl JoinedRows {
    /// Results of `schema`, of the columns of these inputs; none of an input that does not
    /// come out.
    pub(super) fn new(
        schema: SchemaRef,
        time: JoinTime,
        left: Option<SchemaRef>,
        right: Option<SchemaRef>,
    ) -> Self {
        let pairs = left.is_some() && right.is_some();
        let side = |of: Option<SchemaRef>| of.map(|schema| (schema, PickedRows::default()));
        Self {
            schema,
            time,
            has_time: pairs || matches!(time, JoinTime::SameWindow(_)),
            sides: [side(left), side(right)],
            times: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The batch of the results; none is left.
    pub(super) fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        let times = std::mem::take(&mut self.times);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if self.has_time {
            let windows: Option<Vec<_>> = times
                .iter()
                .map(|time| self.time.window_at(*time))
                .collect();
            columns.push(Arc::new(Int64Array::from(times)));
            if let Some(windows) = windows {
                let starts = windows.iter().map(|window| window.start());
                columns.push(Arc::new(Int64Array::from_iter_values(starts)));
                let ends = windows.iter().map(|window| window.end());
                columns.push(Arc::new(Int64Array::from_iter_values(ends)));
            }
        }
        for (schema, rows) in self.sides.iter_mut().flatten() {
            columns.extend(rows.take(schema)?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl JoinOutput<RowOfBatch, RowOfBatch> for JoinedRows {
    fn give(&mut self, time: EventTime, left: Option<&RowOfBatch>, right: Option<&RowOfBatch>) {
        self.times.push(time);
        for (side, row) in self.sides.iter_mut().zip([left, right]) {
            if let Some((_, rows)) = side {
                rows.push(row);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.times.len() >= BATCH_ROWS
    }
}
