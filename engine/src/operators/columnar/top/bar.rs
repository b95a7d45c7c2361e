//! What a row must reach to be among the foremost ones, where one number tells.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, SchemaRef};

use super::TopNSpec;
use crate::column::{event_times, take_rows};
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::operators::window::{Pane, WindowAssigner};

/// Rows that are passed over at once where none of them stops it.
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

/// The rows that were picked, and the one to look at next.
struct Picked {
    rows: Vec<u32>,
    next: usize,
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

    /// The rows that may be among the foremost ones, in order; none where that can't be told,
    /// and where `is_late` says so of one of the times.
    pub(super) fn candidates(
        &mut self,
        batch: &RecordBatch,
        is_late: impl Fn(EventTime) -> bool,
    ) -> Result<Option<RecordBatch>, OperatorError> {
        let values = batch.column(self.column).as_primitive::<Int64Type>();
        let times = event_times(batch)?;
        if values.null_count() > 0 || (self.windows.is_some() && times.null_count() > 0) {
            return Ok(None);
        }
        let (values, times) = (values.values(), times.values());
        let mut picked = Picked {
            rows: Vec::new(),
            next: 0,
        };
        while let Some(time) = times.get(picked.next) {
            let pane = self.windows.map(|windows| windows.pane_of(*time));
            let last = pane.map_or(EventTime::MAX, |pane| pane.last);
            if is_late(last) {
                return Ok(None);
            }
            let best = self.best.entry(last).or_default();
            let places = (self.rows_max, self.ties);
            // The complement turns the order round, without an overflow.
            match self.is_descending {
                true => best.pick(times, values, places, pane, |value| value, &mut picked),
                false => best.pick(times, values, places, pane, |value| !value, &mut picked),
            }
        }
        if picked.rows.len() == batch.num_rows() {
            return Ok(Some(batch.clone()));
        }
        Ok(Some(take_rows(batch, &picked.rows)?))
    }
}

impl Best {
    /// Adds the rows that reach the bar to `picked`, and raises it, up to the first row of
    /// another window. `rank` is greater for better values.
    #[inline]
    fn pick(
        &mut self,
        times: &[EventTime],
        values: &[i64],
        (rows_max, ties): (usize, bool),
        pane: Option<Pane>,
        rank: impl Fn(i64) -> i64,
        picked: &mut Picked,
    ) {
        loop {
            let bar = self.bar(rows_max);
            let least = match bar {
                _ if rows_max == 0 => None,
                None => Some(i64::MIN),
                Some(bar) if ties => Some(bar),
                Some(bar) => bar.checked_add(1),
            };
            if let Some(least) = least {
                let chunks = times[picked.next..].chunks_exact(CHUNK_ROWS);
                let chunks = chunks.zip(values[picked.next..].chunks_exact(CHUNK_ROWS));
                let passed = chunks.take_while(|(times, values)| {
                    all_are_in(times, pane) && none_reaches(values, &rank, least)
                });
                picked.next += passed.count() * CHUNK_ROWS;
            }
            let is_other = |time| pane.is_some_and(|pane| !pane.contains(time));
            let rest = times[picked.next..].iter().zip(&values[picked.next..]);
            let reaches = |value: i64| least.is_some_and(|least| rank(value) >= least);
            let mut rest = rest.map(|(time, value)| is_other(*time) | reaches(*value));
            let Some(passed) = rest.position(|stops| stops) else {
                picked.next = times.len();
                return;
            };
            picked.next += passed;
            if is_other(times[picked.next]) {
                return;
            }
            self.values.push(Reverse(rank(values[picked.next])));
            if bar.is_some() {
                self.values.pop();
            }
            picked.rows.push(picked.next as u32);
            picked.next += 1;
        }
    }

    /// The value of the last place, when all places are taken.
    fn bar(&self, rows_max: usize) -> Option<i64> {
        let is_full = self.values.len() == rows_max;
        self.values.peek().filter(|_| is_full).map(|last| last.0)
    }
}

/// Whether all times are in `pane`, if there is one; false where that can't be told at once.
#[inline]
fn all_are_in(times: &[EventTime], pane: Option<Pane>) -> bool {
    pane.is_none_or(|pane| pane.contains_all(times))
}

/// Whether none of the values reaches `least`. Without comparisons, which the processor does one
/// by one, it takes a third of the time.
#[inline]
fn none_reaches(values: &[i64], rank: impl Fn(i64) -> i64, least: i64) -> bool {
    // The difference says it where both have the same sign; otherwise that of the value does.
    let reaches = if least >= 0 {
        values.iter().fold(0, |reaches, value| {
            let value = rank(*value);
            reaches | (!value & !value.wrapping_sub(least))
        })
    } else {
        values.iter().fold(0, |reaches, value| {
            let value = rank(*value);
            reaches | !value | !value.wrapping_sub(least)
        })
    };
    reaches >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_value_reaches_the_bar_is_told_of_all_numbers() {
        let numbers = [
            i64::MIN,
            i64::MIN + 1,
            -9,
            -1,
            0,
            1,
            9,
            i64::MAX - 1,
            i64::MAX,
        ];
        for value in numbers {
            for least in numbers {
                assert_eq!(none_reaches(&[value], |value| value, least), value < least);
                assert_eq!(
                    none_reaches(&[value], |value| !value, least),
                    !value < least
                );
            }
        }
    }
}
