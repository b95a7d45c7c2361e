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
    /// Whether rows hold their batches, each row once; otherwise whoever keeps them does.
    rows_hold: bool,
    /// Whether a row was kept since it was asked last.
    kept: bool,
}

impl JoinedRows {
    /// Results of `schema`, of the columns of these inputs; none of an input that does not
    /// come out.
    pub(super) fn new(
        schema: SchemaRef,
        time: JoinTime,
        left: Option<SchemaRef>,
        right: Option<SchemaRef>,
        rows_hold: bool,
    ) -> Self {
        let pairs = left.is_some() && right.is_some();
        Self {
            schema,
            time,
            has_time: pairs || matches!(time, JoinTime::SameWindow(_)),
            left: HeldRows::new(left),
            right: HeldRows::new(right),
            times: Vec::new(),
            rows_hold,
            kept: false,
        }
    }

    /// The rows of either side that are held.
    pub(super) fn side(&mut self, is_left: bool) -> &mut HeldRows {
        match is_left {
            true => &mut self.left,
            false => &mut self.right,
        }
    }

    /// Whether a row was kept since the last call.
    pub(super) fn take_kept(&mut self) -> bool {
        std::mem::take(&mut self.kept)
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

    /// The starts and the ends of the windows that end with these times, if there are windows.
    fn bounds_of_windows(&self, times: &[EventTime]) -> Option<[Vec<EventTime>; 2]> {
        let JoinTime::SameWindow(assigner) = self.time else {
            return None;
        };
        let [mut starts, mut ends] = [0; 2].map(|_| Vec::with_capacity(times.len()));
        // Results of a window mostly come one after another.
        for of_window in times.chunk_by(|one, other| one == other) {
            let window = assigner.window(assigner.first_number(of_window[0]));
            starts.extend(std::iter::repeat_n(window.start(), of_window.len()));
            ends.extend(std::iter::repeat_n(window.end(), of_window.len()));
        }
        Some([starts, ends])
    }

    /// The batch of the results; none is left.
    pub(super) fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        let times = std::mem::take(&mut self.times);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if self.has_time {
            let bounds = self.bounds_of_windows(&times);
            columns.push(Arc::new(Int64Array::from(times)));
            if let Some(bounds) = bounds {
                columns.extend(bounds.map(|bounds| Arc::new(Int64Array::from(bounds)) as ArrayRef));
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
        self.kept = true;
        if !self.rows_hold {
            return;
        }
        if let Some(row) = left {
            self.left.hold(row.batch());
        }
        if let Some(row) = right {
            self.right.hold(row.batch());
        }
    }

    #[inline]
    fn let_go(&mut self, left: Option<RowNumber>, right: Option<RowNumber>) {
        if !self.rows_hold {
            return;
        }
        if let Some(row) = left {
            self.left.release(row.batch());
        }
        if let Some(row) = right {
            self.right.release(row.batch());
        }
    }
}
