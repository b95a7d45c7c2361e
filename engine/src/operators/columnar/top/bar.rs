//! What a row must reach to be among the foremost ones, where one number tells.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, SchemaRef};

use super::TopNSpec;
use crate::column::take_rows;
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::operators::window::WindowAssigner;

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

/// Rows of one window that come one after another.
pub(super) struct Run {
    /// The last time of the window; the end of time without windows.
    pub(super) last: EventTime,
    rows: usize,
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

    /// The rows that may be among the foremost ones, in order; all of them where that can't be
    /// told. `runs` are those of the event times.
    pub(super) fn candidates(
        &mut self,
        batch: RecordBatch,
        runs: &[Run],
    ) -> Result<RecordBatch, OperatorError> {
        let values = batch.column(self.column).as_primitive::<Int64Type>();
        if values.null_count() > 0 {
            return Ok(batch);
        }
        let mut picked = Vec::new();
        let mut row = 0;
        for run in runs {
            let values = &values.values()[row..row + run.rows];
            let best = self.best.entry(run.last).or_default();
            let places = (self.rows_max, self.ties);
            match self.is_descending {
                true => best.pick::<true>(values, row, places, &mut picked),
                false => best.pick::<false>(values, row, places, &mut picked),
            }
            row += run.rows;
        }
        if picked.len() == batch.num_rows() {
            return Ok(batch);
        }
        Ok(take_rows(&batch, &picked)?)
    }

    /// Rows of one window that come one after another; none where a row has no time that is
    /// needed.
    pub(super) fn runs(&self, times: &Int64Array) -> Option<Vec<Run>> {
        let Some(windows) = self.windows else {
            return Some(vec![Run {
                last: EventTime::MAX,
                rows: times.len(),
            }]);
        };
        if times.null_count() > 0 {
            return None;
        }
        let mut times = &times.values()[..];
        let mut runs = Vec::new();
        while let Some(first) = times.first() {
            let pane = windows.pane_of(*first);
            let rows = pane.count_first(times);
            runs.push(Run {
                last: pane.last,
                rows,
            });
            times = &times[rows..];
        }
        Some(runs)
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
        let reaches = |bar: i64, value: i64| value > bar || (ties && value == bar);
        let mut bar = self.bar(rows_max);
        let mut row = 0;
        while row < values.len() {
            if let Some(bar) = bar {
                let rest = values[row..].iter();
                let Some(next) = rest
                    .map(|value| better(*value))
                    .position(|value| reaches(bar, value))
                else {
                    return;
                };
                row += next;
            }
            picked.push((first + row) as u32);
            self.values.push(Reverse(better(values[row])));
            if bar.is_some() {
                self.values.pop();
            }
            bar = self.bar(rows_max);
            row += 1;
        }
    }

    /// The value of the last place, when all places are taken.
    fn bar(&self, rows_max: usize) -> Option<i64> {
        let is_full = self.values.len() == rows_max;
        self.values.peek().filter(|_| is_full).map(|last| last.0)
    }
}
