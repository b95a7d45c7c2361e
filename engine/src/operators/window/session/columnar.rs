//! Sessions over record batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::super::assigner::Window;
use super::super::slots::SlotPool;
use super::sessions::{DueState, Sessions};
use crate::column::{event_times, filter_batch};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::SpecError;
use crate::operators::aggregate::{Accumulators, AggregateSpec, FastHash, KeyInterner};
use crate::operators::gather::{Gather, Gathered, STEP_ITEMS_MAX};
use crate::operators::schema::{
    require_event_time, require_same_types, results, window_columns, window_fields,
};
use crate::operators::state::Numbers;

/// What a [`SessionAggregate`] computes.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// Rows of a key less than this apart are in one session, in milliseconds; at least 1.
    pub gap_ms: i64,
    /// The positions of the columns that are the key; without any, all rows have one key.
    pub key_columns: Vec<usize>,
    /// The aggregates, in the order of the output columns.
    pub aggregates: Vec<AggregateSpec>,
    /// How long after its end a session still takes in rows, in milliseconds of event time.
    pub allowed_lateness_ms: u64,
    /// Where rows go that came after that, and rows without an event time. Without it they
    /// are counted only.
    pub late: Option<SideTag<RecordBatch>>,
}

/// Aggregates by key and session: from a key's first row until `gap_ms` after the last row
/// that followed another in less than that.
///
/// A session's result is emitted when the watermark reaches its last event time; sessions by
/// their end. A row that comes between two sessions makes them one.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::datatypes::{DataType, Field, Schema};
/// use ringway::operators::AggregateSpec;
/// use ringway::operators::window::{SessionAggregate, SessionSpec};
///
/// let clicks = Arc::new(Schema::new(vec![
///     Field::new("event_time", DataType::Int64, true),
///     Field::new("user", DataType::Utf8, false),
/// ]));
/// let spec = SessionSpec {
///     gap_ms: 1_800_000,
///     key_columns: vec![1],
///     aggregates: vec![AggregateSpec::count("clicks")],
///     allowed_lateness_ms: 0,
///     late: None,
/// };
/// assert_eq!(spec.output_schema(&clicks)?.field(2).name(), "window_end");
/// let visits = SessionAggregate::new(clicks, spec)?;
/// # let _ = visits;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct SessionAggregate {
    input: SchemaRef,
    late: Option<SideTag<RecordBatch>>,
    interner: KeyInterner,
    /// The state of a session is a slot of these.
    accumulators: Accumulators,
    /// Slots of the accumulators, in use or not.
    slots_len: usize,
    /// One slot, to merge through.
    merging: Accumulators,
    pool: SlotPool,
    sessions: Sessions<Numbers, u32>,
    staged: StagedSessions,
    advancing: Option<Watermark>,
    keys: Vec<u32>,
    counts: RowCounts,
}

/// Where the rows of a batch went.
struct PlacedRows {
    /// The slot of the session of each row that is in time.
    slots: Vec<u32>,
    /// The other rows.
    late: Vec<usize>,
    /// Slots that were merged into others on the way.
    merged: HashMap<u32, u32, FastHash>,
}

/// Results that are to be a batch. They refer to slots, which are freed after it is built.
struct StagedSessions {
    schema: SchemaRef,
    windows: Vec<Window>,
    keys: Vec<u32>,
    slots: Vec<u32>,
    /// Keys and slots of sessions that are over.
    over: Vec<(u32, u32)>,
}

impl SessionSpec {
    /// The schema of the results over batches of `input`: the event time (the last of the
    /// session), `window_start`, `window_end`, the key columns, the aggregates.
    ///
    /// # Errors
    /// When `input` has no event time, or a column does not exist or has an unfit type.
    pub fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        require_event_time(input)?;
        let keys = KeyInterner::new(input, &self.key_columns)?;
        let accumulators = Accumulators::new(input, &self.aggregates)?;
        Ok(results(input, window_fields(), &keys, &accumulators))
    }
}

impl SessionAggregate {
    /// An operator for batches of `input`.
    ///
    /// # Errors
    /// As for [`SessionSpec::output_schema`], and when the gap is less than 1.
    pub fn new(input: SchemaRef, spec: SessionSpec) -> Result<Self, SpecError> {
        let schema = spec.output_schema(&input)?;
        let accumulators = Accumulators::new(&input, &spec.aggregates)?;
        let mut merging = accumulators.empty_like();
        merging.resize(1);
        Ok(Self {
            interner: KeyInterner::new(&input, &spec.key_columns)?,
            input,
            late: spec.late,
            merging,
            accumulators,
            slots_len: 0,
            pool: SlotPool::default(),
            sessions: Sessions::new(spec.gap_ms, spec.allowed_lateness_ms)?,
            staged: StagedSessions {
                schema,
                windows: Vec::new(),
                keys: Vec::new(),
                slots: Vec::new(),
                over: Vec::new(),
            },
            advancing: None,
            keys: Vec::new(),
            counts: RowCounts::default(),
        })
    }

    fn add(
        &mut self,
        batch: &RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<(), OperatorError> {
        let mut keys = std::mem::take(&mut self.keys);
        self.interner.intern(batch, &mut keys)?;
        let mut placed = self.place(event_times(batch)?, &keys);
        if !placed.merged.is_empty() {
            for slot in &mut placed.slots {
                while let Some(into) = placed.merged.get(slot) {
                    *slot = *into;
                }
            }
        }
        let is_counted = self.accumulators.counts_alone().is_some();
        if placed.late.is_empty() {
            if !is_counted {
                self.accumulators.update(batch, &placed.slots)?;
            }
        } else {
            let mut taken = vec![true; batch.num_rows()];
            placed.late.iter().for_each(|row| taken[*row] = false);
            let taken = BooleanArray::from(taken);
            if !is_counted {
                let in_time = filter_batch(batch, &taken)?;
                self.accumulators.update(&in_time, &placed.slots)?;
            }
            if let Some(tag) = self.late {
                let others = BooleanArray::new(!taken.values(), None);
                out.emit_side(tag, filter_batch(batch, &others)?);
            }
            // A key that only such rows have is used by nothing.
            let late = || placed.late.iter().map(|row| keys[*row]);
            late().for_each(|key| self.interner.hold(key));
            late().for_each(|key| self.interner.release(key));
        }
        let merged: Vec<u32> = placed.merged.into_keys().collect();
        self.accumulators.clear(&merged);
        self.pool.give_back(&merged);
        self.keys = keys;
        Ok(())
    }

    /// Finds the session of each row.
    fn place(&mut self, times: &Int64Array, keys: &[u32]) -> PlacedRows {
        // Sessions that come in this batch may merge in it.
        let slots_max = self.pool.count() + keys.len();
        if slots_max > self.slots_len {
            self.slots_len = slots_max.next_power_of_two();
            self.accumulators.resize(self.slots_len);
        }
        let mut placed = PlacedRows {
            slots: Vec::with_capacity(keys.len()),
            late: Vec::new(),
            merged: HashMap::default(),
        };
        let has_nulls = times.null_count() > 0;
        let values = times.values();
        let mut row = 0;
        while row < keys.len() {
            if !has_nulls {
                let rows = (&keys[row..], &values[row..]);
                row += match self.accumulators.counts_alone() {
                    Some(counts) => self
                        .sessions
                        .prolong_first(rows.0, rows.1, |slot| counts[*slot as usize] += 1),
                    None => self
                        .sessions
                        .prolong_first(rows.0, rows.1, |slot| placed.slots.push(*slot)),
                };
            }
            let Some(key) = keys.get(row) else { break };
            let time = times.is_valid(row).then(|| values[row]);
            self.place_row(row, *key, time, &mut placed);
            row += 1;
        }
        placed
    }

    /// Finds the session of a row, whatever else that changes.
    fn place_row(
        &mut self,
        row: usize,
        key: u32,
        time: Option<EventTime>,
        placed: &mut PlacedRows,
    ) {
        let Some(time) = time else {
            self.counts.untimed_rows += 1;
            placed.late.push(row);
            return;
        };
        let (interner, pool) = (&mut self.interner, &mut self.pool);
        let (accumulators, merging) = (&mut self.accumulators, &mut self.merging);
        let mut released = 0;
        let create = || {
            interner.hold(key);
            pool.take()
        };
        let merge = |into: &mut u32, from: u32| {
            merging.merge(&[0], accumulators, &[from]);
            accumulators.merge(&[*into], merging, &[0]);
            merging.clear(&[0]);
            placed.merged.insert(from, *into);
            released += 1;
        };
        match self.sessions.session_of(&key, time, create, merge) {
            Some(slot) => match self.accumulators.counts_alone() {
                Some(counts) => counts[*slot as usize] += 1,
                None => placed.slots.push(*slot),
            },
            None => {
                self.counts.late_rows += 1;
                placed.late.push(row);
            }
        }
        (0..released).for_each(|_| self.interner.release(key));
    }

    /// Frees the state of sessions that are over and whose results were built.
    fn free(&mut self) {
        for (key, slot) in self.staged.over.drain(..) {
            self.accumulators.clear(&[slot]);
            self.pool.give_back(&[slot]);
            self.interner.release(key);
        }
    }

    /// Live sessions, keys and slots.
    #[cfg(test)]
    pub(super) fn live(&self) -> (usize, usize, usize) {
        (self.sessions.live(), self.interner.live(), self.pool.used())
    }
}

impl StagedSessions {
    /// The batch that was staged; nothing is staged after it.
    fn build(
        &mut self,
        keys: &KeyInterner,
        accumulators: &Accumulators,
    ) -> Result<RecordBatch, OperatorError> {
        let mut columns = window_columns(&self.windows).to_vec();
        columns.extend(keys.columns(&self.keys)?);
        columns.extend(accumulators.finish(&self.slots)?);
        self.windows.clear();
        self.keys.clear();
        self.slots.clear();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl Gather for SessionAggregate {
    type In = RecordBatch;
    type Out = RecordBatch;

    fn take_in(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<(), OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        self.add(&batch, out)
    }

    fn advance(&mut self, watermark: EventTime) {
        self.sessions.advance(watermark);
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        let staged = &mut self.staged;
        let mut budget = STEP_ITEMS_MAX;
        while staged.keys.len() < BATCH_ROWS {
            let Some(due) = self.sessions.next_due(&mut budget) else {
                return Ok(Gathered::within(budget));
            };
            let slot = *due.state.get();
            if due.has_result {
                staged.windows.push(due.window);
                staged.keys.push(due.key);
                staged.slots.push(slot);
            }
            if let DueState::Last(slot) = due.state {
                staged.over.push((due.key, slot));
            }
        }
        Ok(Gathered::Batch)
    }

    fn is_empty(&self) -> bool {
        self.staged.keys.is_empty()
    }

    fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        let results = self.staged.build(&self.interner, &self.accumulators)?;
        self.free();
        Ok(results)
    }

    fn free_some(&mut self) -> Result<bool, OperatorError> {
        self.free();
        Ok(true)
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(RowCounts {
            accepted_late_rows: self.sessions.accepted_late_rows(),
            ..self.counts
        })
    }
}
