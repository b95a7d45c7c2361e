//! What a row must reach to be among the foremost ones, where one number tells.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, SchemaRef};

use super::TopNSpec;
use crate::column::{event_times, take_rows};
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::operators::window::WindowAssigner;

/// Rows that are compared with the bar at once.
const CHUNK_ROWS: usize = 64;

/// Leaves rows out that cannot be among the foremost ones, which is nearly all of them, before
/// anything is made of them: for rows of one key that are ordered by one int64 column, of all
/// rows or of windows that follow each other.
pub(super) struct Bar {
    column: usize,
    is_descending: bool,
    rows_max: usize,
    ties: bool,
    windows: Option<WindowAssigner>,
    /// By the last time of each window; the end of time without windows.
    best: BTreeMap<EventTime, Best>,
}

/// The best values so far, as many as there are places. Greater ones are better.
#[derive(Default)]
struct Best {
    values: BinaryHeap<Reverse<i64>>,
}

impl Bar {
    /// The bar for `spec` over batches of `input`, if there is one.
    pub(super) fn new(input: &SchemaRef, spec: &TopNSpec) -> Option<Self> {
        let [(column, is_descending)] = spec.order[..] else {
            return None;
        };
        let is_number = *input.field(column).data_type() == DataType::Int64;
        let is_in_one = spec.windows.is_none_or(|windows| windows.is_tumbling());
        let applies = is_number && is_in_one && spec.key_columns.is_empty();
        applies.then(|| Self {
            column,
            is_descending,
            rows_max: spec.rows_max,
            ties: false,
            windows: spec.windows,
            best: BTreeMap::new(),
        })
    }

    /// Rows that are equal to the last one reach the bar too.
    pub(super) fn with_ties(mut self) -> Self {
        self.ties = true;
        self
    }

    /// A watermark has come: bars of complete windows are not needed any more.
    pub(super) fn advance(&mut self, watermark: EventTime) {
        if self.windows.is_some() {
            self.best = self.best.split_off(&watermark.saturating_add(1));
        }
    }

    /// The rows that may be among the foremost ones, in order.
    pub(super) fn candidates(&mut self, batch: RecordBatch) -> Result<RecordBatch, OperatorError> {
        let values = batch.column(self.column).as_primitive::<Int64Type>();
        let times = event_times(&batch)?;
        if values.null_count() > 0 || (self.windows.is_some() && times.null_count() > 0) {
            return Ok(batch);
        }
        let span = (arrow::compute::min(times), arrow::compute::max(times));
        let mut picked = Vec::new();
        let mut row = 0;
        while row < batch.num_rows() {
            let (last, rows) = self.window_at(&times.values()[row..], span);
            let values = &values.values()[row..row + rows];
            let best = self.best.entry(last).or_default();
            let places = (self.rows_max, self.ties);
            match self.is_descending {
                true => best.pick::<true>(values, row, places, &mut picked),
                false => best.pick::<false>(values, row, places, &mut picked),
            }
            row += rows;
        }
        if picked.len() == batch.num_rows() {
            return Ok(batch);
        }
        Ok(take_rows(&batch, &picked)?)
    }

    /// The last time of the window of the first of these times, which lie in `span`, and how
    /// many of them from there on are in it.
    fn window_at(
        &self,
        times: &[EventTime],
        span: (Option<EventTime>, Option<EventTime>),
    ) -> (EventTime, usize) {
        let Some(windows) = self.windows else {
            return (EventTime::MAX, times.len());
        };
        let pane = windows.pane_of(times[0]);
        let contains = |time: Option<EventTime>| time.is_some_and(|time| pane.contains(time));
        if contains(span.0) && contains(span.1) {
            return (pane.last, times.len());
        }
        let others = times.iter().position(|time| !pane.contains(*time));
        (pane.last, others.unwrap_or(times.len()))
    }
}

impl Best {
    /// Adds those of `values`, which begin at row `first`, that reach the bar to `picked`, and
    /// raises it.
    fn pick<const IS_DESCENDING: bool>(
        &mut self,
        values: &[i64],
        first: usize,
        (rows_max, ties): (usize, bool),
        picked: &mut Vec<u32>,
    ) {
        // The complement turns the order round, without an overflow.
        let better = |value: i64| if IS_DESCENDING { value } else { !value };
        if rows_max == 0 {
            return;
        }
        for (at, chunk) in values.chunks(CHUNK_ROWS).enumerate() {
            let reaches = |bar: i64, value: i64| value > bar || (ties && value == bar);
            let bar = self.bar(rows_max);
            let best = chunk
                .iter()
                .fold(i64::MIN, |best, value| best.max(better(*value)));
            if bar.is_some_and(|bar| !reaches(bar, best)) {
                continue;
            }
            for (row, value) in chunk.iter().enumerate() {
                let value = better(*value);
                let bar = self.bar(rows_max);
                if bar.is_some_and(|bar| !reaches(bar, value)) {
                    continue;
                }
                picked.push((first + at * CHUNK_ROWS + row) as u32);
                self.values.push(Reverse(value));
                if bar.is_some() {
                    self.values.pop();
                }
            }
        }
    }

    /// The value of the last place, when all places are taken.
    fn bar(&self, rows_max: usize) -> Option<i64> {
        let is_full = self.values.len() == rows_max;
        self.values.peek().filter(|_| is_full).map(|last| last.0)
    }
}
