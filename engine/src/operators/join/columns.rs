//! The batches that are made of joined rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::element::EventTime;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operators::schema::renamed;

use super::held::{HeldRows, RowNumber};
use super::state::JoinOutput;
use super::time::JoinTime;

/// The results of a join in the making, and the rows that they may be made of.
pub(super) struct JoinedRows {
    schema: SchemaRef,
    time: JoinTime,
    /// Results begin with their time; those without take it from their only row.
    has_time: bool,
    pub(super) left: HeldRows,
    pub(super) right: HeldRows,
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
        Self {
            schema,
            time,
            has_time: pairs || matches!(time, JoinTime::SameWindow(_)),
            left: HeldRows::new(left),
            right: HeldRows::new(right),
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

    /// No row is kept any more.
    pub(super) fn let_all_go(&mut self) {
        self.left.release_all();
        self.right.release_all();
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
        columns.extend(self.left.take_picked()?);
        columns.extend(self.right.take_picked()?);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl JoinOutput<RowNumber, RowNumber> for JoinedRows {
    #[inline]
    fn give(&mut self, time: EventTime, left: Option<&RowNumber>, right: Option<&RowNumber>) {
        self.times.push(time);
        self.left.pick(left.copied());
        self.right.pick(right.copied());
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.times.len() >= BATCH_ROWS
    }

    #[inline]
    fn keep(&mut self, left: Option<&RowNumber>, right: Option<&RowNumber>) {
        if let Some(row) = left {
            self.left.hold(row.batch());
        }
        if let Some(row) = right {
            self.right.hold(row.batch());
        }
    }

    #[inline]
    fn let_go(&mut self, left: Option<RowNumber>, right: Option<RowNumber>) {
        if let Some(row) = left {
            self.left.release(row.batch());
        }
        if let Some(row) = right {
            self.right.release(row.batch());
        }
    }
}
