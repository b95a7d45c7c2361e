//! The parts of a columnar join that rows of different times have nothing to do with each other
//! in: one for each window where windows do not overlap, and one for all rows otherwise.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::SchemaRef;

use crate::column::take_rows;
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::operators::SpecError;
use crate::operators::aggregate::KeyInterner;
use crate::operators::gather::{Gathered, STEP_ITEMS_MAX};
use crate::operators::state::ManyNumbers;
use crate::operators::window::WindowAssigner;

use super::columns::JoinedRows;
use super::held::RowNumber;
use super::kind::JoinKind;
use super::state::{self, Entering, Flipped, JoinOutput, JoinState};
use super::time::JoinTime;

/// Parts without rows whose memory is kept for others.
const SPARE_PARTS_MAX: usize = 2;

/// Windows that one step lets go of.
const STEP_WINDOWS_MAX: usize = 1024;

/// The rows that wait, in parts.
///
/// What a window has goes with it at once. So its rows are in no queue, and hold neither their
/// keys nor their batches: that is much of what a row costs.
pub(super) struct Parts {
    kind: JoinKind,
    time: JoinTime,
    key_schema: SchemaRef,
    windows: Option<WindowAssigner>,
    watermark: EventTime,
    /// Has the rows where parts are not windows. Tells everywhere which are late.
    only: Part,
    /// By the last time of their window.
    by_last: BTreeMap<EventTime, Part>,
    over: Vec<Part>,
    spare: Vec<Part>,
}

/// Rows that may match, and their keys.
struct Part {
    keys: KeyInterner,
    state: JoinState<ManyNumbers, RowNumber, RowNumber>,
    is_window: bool,
    /// The batches that a window holds for its left rows, and those for its right ones.
    batches: [Vec<u32>; 2],
}

/// A batch whose rows are entering.
pub(super) struct EnteringBatch {
    pub(super) is_left: bool,
    /// The number of the batch.
    pub(super) batch: u32,
    pub(super) times: Int64Array,
    pub(super) null_keys: Option<NullBuffer>,
    /// Its rows, by the part that they enter.
    pub(super) rows: VecDeque<EnteringRows>,
}

/// The rows of a batch that enter a part.
pub(super) struct EnteringRows {
    /// The last time of its window, if parts are windows.
    last: Option<EventTime>,
    /// The rows; all without it.
    rows: Option<Vec<u32>>,
    /// The key of each.
    keys: Vec<u32>,
    /// The next of them.
    next: usize,
    row: Option<Entering<u32, RowNumber>>,
}

impl Parts {
    /// No rows, of keys of the columns of `key_schema`.
    ///
    /// # Errors
    /// When a column has a type that cannot be a key.
    pub(super) fn new(
        kind: JoinKind,
        time: JoinTime,
        key_schema: &SchemaRef,
    ) -> Result<Self, SpecError> {
        Ok(Self {
            kind,
            time,
            key_schema: Arc::clone(key_schema),
            windows: time.separate_windows(),
            watermark: EventTime::MIN,
            only: Part::new(JoinState::new(kind, time), key_schema, false)?,
            by_last: BTreeMap::new(),
            over: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// Whether parts are windows, which hold the batches of their rows.
    pub(super) const fn are_windows(&self) -> bool {
        self.windows.is_some()
    }

    /// Whether a row of this event time, or without one, comes too late to join.
    pub(super) fn is_late(&self, time: Option<EventTime>) -> bool {
        self.only.state.is_late(time)
    }

    /// A watermark has come.
    pub(super) fn advance(&mut self, watermark: EventTime) {
        self.watermark = self.watermark.max(watermark);
        self.only.state.advance(watermark);
    }

    /// The rows of these times, of which none is late, by the part that they enter. There is one
    /// for each then.
    pub(super) fn rows_of(
        &mut self,
        times: &[EventTime],
        key_batch: &RecordBatch,
    ) -> Result<VecDeque<EnteringRows>, OperatorError> {
        let Some(windows) = self.windows else {
            let keys = self.only.keys_of(key_batch)?;
            // Every row holds its key until it is in, so that no key is given away before.
            keys.iter().for_each(|key| self.only.keys.hold(*key));
            return Ok([EnteringRows::new(None, None, keys)].into());
        };
        let mut by_last: BTreeMap<EventTime, Vec<u32>> = BTreeMap::new();
        let mut row = 0;
        while row < times.len() {
            let pane = windows.pane_of(times[row]);
            let rows = row..row + pane.count_first(&times[row..]);
            row = rows.end;
            if rows.len() == times.len() {
                let keys = self.window_part(pane.last)?.keys_of(key_batch)?;
                return Ok([EnteringRows::new(Some(pane.last), None, keys)].into());
            }
            let of_window = by_last.entry(pane.last).or_default();
            of_window.extend(rows.map(|row| row as u32));
        }
        let of_window = by_last.into_iter().map(|(last, rows)| {
            let key_batch = take_rows(key_batch, &rows)?;
            let keys = self.window_part(last)?.keys_of(&key_batch)?;
            Ok(EnteringRows::new(Some(last), Some(rows), keys))
        });
        of_window.collect()
    }

    /// Lets rows of a batch enter; returns whether all are in.
    pub(super) fn enter(&mut self, entering: &mut EnteringBatch, joined: &mut JoinedRows) -> bool {
        while let Some(mut rows) = entering.rows.pop_front() {
            let part = match rows.last {
                Some(last) => self.by_last.get_mut(&last),
                None => Some(&mut self.only),
            };
            // Invariant: a part goes when a watermark comes, and none does meanwhile.
            let part = part.expect("a part for the rows");
            if !part.enter(entering, &mut rows, joined) {
                entering.rows.push_front(rows);
                return false;
            }
        }
        true
    }

    /// Lets go of rows that nothing can match any more, and gives those that the kind asks for.
    pub(super) fn expire(&mut self, joined: &mut JoinedRows) -> Gathered {
        let Part { keys, state, .. } = &mut self.only;
        if self.windows.is_none() {
            if state.end() {
                keys.clear();
                joined.let_all_go();
                return Gathered::All;
            }
            return state.expire(joined, &mut |key| keys.release(*key));
        }
        for _ in 0..STEP_WINDOWS_MAX {
            let Some(mut first) = self.by_last.first_entry() else {
                return Gathered::All;
            };
            if !state.is_late(Some(*first.key())) {
                return Gathered::All;
            }
            if self.kind.gives_unmatched() {
                let state = &mut first.get_mut().state;
                state.advance(self.watermark);
                let gathered = state.expire(joined, &mut |_| {});
                if gathered != Gathered::All {
                    return gathered;
                }
            }
            let mut part = first.remove();
            part.release_batches(joined);
            self.over.push(part);
        }
        Gathered::Enough
    }

    /// Frees some of the parts that are over; returns whether that is all.
    pub(super) fn free_some(&mut self) -> bool {
        let mut budget = STEP_ITEMS_MAX;
        while let Some(part) = self.over.last_mut() {
            let is_empty = part.state.clear_some(&mut budget) && part.keys.clear_some(&mut budget);
            if !is_empty {
                return false;
            }
            let part = self.over.pop();
            if self.spare.len() < SPARE_PARTS_MAX {
                self.spare.extend(part);
            }
        }
        true
    }

    /// The part of the window that ends with `last`.
    fn window_part(&mut self, last: EventTime) -> Result<&mut Part, OperatorError> {
        Ok(match self.by_last.entry(last) {
            Entry::Occupied(part) => part.into_mut(),
            Entry::Vacant(place) => place.insert(match self.spare.pop() {
                Some(part) => part,
                None => {
                    let state = JoinState::of_one_time(self.kind, self.time);
                    Part::new(state, &self.key_schema, true)?
                }
            }),
        })
    }

    /// Rows of both sides that wait, and keys.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize, usize) {
        assert!(self.over.is_empty(), "what is over is freed");
        let parts = self.by_last.values().chain([&self.only]);
        parts.fold((0, 0, 0), |(left, right, keys), part| {
            let (of_left, of_right) = part.state.waiting();
            (left + of_left, right + of_right, keys + part.keys.live())
        })
    }
}

impl Part {
    fn new(
        state: JoinState<ManyNumbers, RowNumber, RowNumber>,
        key_schema: &SchemaRef,
        is_window: bool,
    ) -> Result<Self, SpecError> {
        let positions: Vec<usize> = (0..key_schema.fields().len()).collect();
        Ok(Self {
            keys: KeyInterner::new(key_schema, &positions)?,
            state,
            is_window,
            batches: Default::default(),
        })
    }

    fn keys_of(&mut self, key_batch: &RecordBatch) -> Result<Vec<u32>, OperatorError> {
        let mut keys = Vec::with_capacity(key_batch.num_rows());
        self.keys.intern(key_batch, &mut keys)?;
        Ok(keys)
    }

    /// Lets rows enter; returns whether all are in.
    fn enter(
        &mut self,
        of: &EnteringBatch,
        rows: &mut EnteringRows,
        joined: &mut JoinedRows,
    ) -> bool {
        let uses = match self.is_window {
            true => Uses(None),
            false => Uses(Some(&mut self.keys)),
        };
        let is_in = match of.is_left {
            true => rows.enter(of, self.state.left(), joined, uses),
            false => rows.enter(of, self.state.right(), &mut Flipped(joined), uses),
        };
        if joined.take_kept() && self.is_window {
            let batches = &mut self.batches[usize::from(of.is_left)];
            if batches.last() != Some(&of.batch) {
                batches.push(of.batch);
                joined.side(of.is_left).hold(of.batch);
            }
        }
        is_in
    }

    fn release_batches(&mut self, joined: &mut JoinedRows) {
        for is_left in [false, true] {
            let batches = self.batches[usize::from(is_left)].drain(..);
            batches.for_each(|batch| joined.side(is_left).release(batch));
        }
    }
}

/// What counts the uses of keys; nothing where keys go all at once.
struct Uses<'a>(Option<&'a mut KeyInterner>);

impl Uses<'_> {
    #[inline]
    fn hold(&mut self, key: u32) {
        if let Some(keys) = &mut self.0 {
            keys.hold(key);
        }
    }

    #[inline]
    fn release(&mut self, key: u32) {
        if let Some(keys) = &mut self.0 {
            keys.release(key);
        }
    }
}

impl EnteringRows {
    const fn new(last: Option<EventTime>, rows: Option<Vec<u32>>, keys: Vec<u32>) -> Self {
        Self {
            last,
            rows,
            keys,
            next: 0,
            row: None,
        }
    }

    /// Lets rows of a batch enter; returns whether all are in.
    fn enter(
        &mut self,
        of: &EnteringBatch,
        mut entry: state::Entry<'_, ManyNumbers, RowNumber, RowNumber>,
        out: &mut impl JoinOutput<RowNumber, RowNumber>,
        mut uses: Uses<'_>,
    ) -> bool {
        if let Some(row) = &mut self.row {
            if !entry.go_on(row, out, &mut |key| uses.hold(*key)) {
                return false;
            }
            self.row = None;
            uses.release(self.keys[self.next]);
            self.next += 1;
        }
        let (times, nulls) = (of.times.values(), of.null_keys.as_ref());
        while let Some(key) = self.keys.get(self.next) {
            let at = match &self.rows {
                Some(rows) => rows[self.next],
                None => self.next as u32,
            };
            let row = RowNumber::new(of.batch, at);
            let matches = nulls.is_none_or(|nulls| nulls.is_valid(at as usize));
            let mut held = 0;
            let mut kept = |_: &u32| held += 1;
            let key_to_match = matches.then_some(key);
            self.row = entry.begin(key_to_match, row, times[at as usize], out, &mut kept);
            // The row's own hold goes over to the first time that it is kept.
            if self.row.is_some() {
                (0..held).for_each(|_| uses.hold(*key));
                return false;
            }
            match held {
                0 => uses.release(*key),
                _ => (1..held).for_each(|_| uses.hold(*key)),
            }
            self.next += 1;
        }
        true
    }
}
