//! The batches that are made of joined rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::element::EventTime;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operators::row_of_batch::{PickedRows, RowOfBatch};
use crate::operators::schema::renamed;

use super::state::JoinOutput;
use super::time::JoinTime;

/// The results of a join in the making.
pub(super) struct JoinedRows {
    schema: SchemaRef,
    time: JoinTime,
    /// Results begin with their time; those without take it from their only row.
    has_time: bool,
    sides: [Option<(SchemaRef, PickedRows)>; 2],
    times: Vec<EventTime>,
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

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Calls the columns by these names.
    pub(super) fn rename(&mut self, names: &[String]) {
        self.schema = renamed(&self.schema, names);
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
