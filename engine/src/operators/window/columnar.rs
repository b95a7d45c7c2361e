//! Aggregates by key and window over record batches.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::assigner::WindowAssigner;
use super::frontier::Frontier;
use super::panes::Panes;
use super::stage::{Firing, Stage};
use crate::batch::EVENT_TIME_COLUMN;
use crate::column::{event_times, filter_batch};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, SideTag};
use crate::operators::SpecError;
use crate::operators::aggregate::AggregateSpec;
use crate::operators::schema::{require_event_time, require_same_types};

/// What a [`WindowAggregate`] computes.
#[derive(Clone, Debug)]
pub struct WindowSpec {
    /// The windows.
    pub assigner: WindowAssigner,
    /// The positions of the columns that are the key; without any, one result a window.
    pub key_columns: Vec<usize>,
    /// The aggregates, in the order of the output columns.
    pub aggregates: Vec<AggregateSpec>,
    /// How long after its end a window still takes in rows, in milliseconds of event time.
    /// Each batch of them gives the results of the keys that it changed anew, in full.
    pub allowed_lateness_ms: u64,
    /// Where rows go that came after that, and rows without an event time. Without it they
    /// are counted only.
    pub late: Option<SideTag<RecordBatch>>,
}

impl WindowSpec {
    /// The schema of the results over batches of `input`: the event time (the last of the
    /// window), `window_start`, `window_end`, the key columns, the aggregates.
    ///
    /// # Errors
    /// When `input` has no event time, or a column does not exist or has an unfit type.
    pub fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        require_event_time(input)?;
        let panes = Panes::new(input, self.assigner, &self.key_columns, &self.aggregates)?;
        let int64 = |name: &str, nullable| Field::new(name, DataType::Int64, nullable).into();
        let mut fields: Vec<FieldRef> = vec![
            int64(EVENT_TIME_COLUMN, true),
            int64("window_start", false),
            int64("window_end", false),
        ];
        fields.extend(panes.interner.fields().iter().cloned());
        fields.extend(panes.accumulators.fields());
        let metadata = input.metadata().clone();
        Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
    }
}

/// Aggregates by key and event-time window.
///
/// A window's results are emitted when the watermark reaches its last event time: windows
/// by their end, the keys of a window in the order in which they were first seen in its
/// earliest part. Several windows may share a batch. State is freed when a window and its
/// allowed lateness are past.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::datatypes::{DataType, Field, Schema};
/// use ringway::operator::SideTag;
/// use ringway::operators::window::{WindowAggregate, WindowAssigner, WindowSpec};
/// use ringway::operators::{AggregateKind, AggregateSpec};
///
/// let flights = Arc::new(Schema::new(vec![
///     Field::new("event_time", DataType::Int64, true),
///     Field::new("carrier", DataType::Utf8, false),
///     Field::new("delay", DataType::Int64, true),
/// ]));
/// let spec = WindowSpec {
///     assigner: WindowAssigner::sliding(86_400_000, 3_600_000, 0)?,
///     key_columns: vec![1],
///     aggregates: vec![
///         AggregateSpec::count("flights"),
///         AggregateSpec::of(AggregateKind::Mean, 2, "mean_delay"),
///     ],
///     allowed_lateness_ms: 0,
///     late: Some(SideTag::new(0)),
/// };
/// assert_eq!(spec.output_schema(&flights)?.field(3).name(), "carrier");
/// let delays = WindowAggregate::new(flights, spec)?;
/// # let _ = delays;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct WindowAggregate {
    input: SchemaRef,
    frontier: Frontier,
    late: Option<SideTag<RecordBatch>>,
    panes: Panes,
    stage: Stage,
    firing: Option<Firing>,
    updates: VecDeque<(i128, Vec<u32>)>,
    advancing: Option<Watermark>,
    late_rows: u64,
    untimed_rows: u64,
}

impl WindowAggregate {
    /// An operator for batches of `input`.
    ///
    /// # Errors
    /// As for [`WindowSpec::output_schema`].
    pub fn new(input: SchemaRef, spec: WindowSpec) -> Result<Self, SpecError> {
        let output = spec.output_schema(&input)?;
        let panes = Panes::new(&input, spec.assigner, &spec.key_columns, &spec.aggregates)?;
        Ok(Self {
            input,
            frontier: Frontier::new(spec.assigner, spec.allowed_lateness_ms),
            late: spec.late,
            stage: Stage::new(output, &panes, spec.assigner.is_tumbling()),
            panes,
            firing: None,
            updates: VecDeque::new(),
            advancing: None,
            late_rows: 0,
            untimed_rows: 0,
        })
    }

    /// Rows that came after the allowed lateness of their last window.
    pub const fn late_rows(&self) -> u64 {
        self.late_rows
    }

    /// Rows without an event time, which are in no window.
    pub const fn untimed_rows(&self) -> u64 {
        self.untimed_rows
    }

    /// The rows of `batch` that are in a window that still takes rows in; the others go to
    /// the late output.
    fn set_late_aside(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<RecordBatch, OperatorError> {
        let times = event_times(&batch)?;
        if times.null_count() == 0 && !self.frontier.is_late(arrow::compute::min(times)) {
            return Ok(batch);
        }
        let taken: BooleanArray = times
            .iter()
            .map(|time| Some(!self.frontier.is_late(time)))
            .collect();
        let untimed = times.null_count();
        self.untimed_rows += untimed as u64;
        self.late_rows += (taken.false_count() - untimed) as u64;
        if let Some(tag) = self.late {
            let others = BooleanArray::new(!taken.values(), None);
            out.emit_side(tag, filter_batch(&batch, &others)?);
        }
        Ok(filter_batch(&batch, &taken)?)
    }

    /// Windows that are complete and take in one of the rows give their results anew.
    fn queue_updates(&mut self, times: &Int64Array) {
        if !self.frontier.may_reopen(arrow::compute::min(times)) {
            return;
        }
        let mut changed: BTreeMap<i128, Vec<u32>> = BTreeMap::new();
        let mut seen = HashSet::new();
        for (time, key) in times.values().iter().zip(self.panes.row_keys()) {
            for number in self.frontier.reopened_by(*time) {
                if seen.insert((number, *key)) {
                    changed.entry(number).or_default().push(*key);
                }
            }
        }
        self.updates.extend(changed);
    }

    /// The next window that is to be emitted, if there is one.
    fn next_firing(&mut self) -> Option<Firing> {
        if let Some((number, keys)) = self.updates.pop_front() {
            let window = self.frontier.assigner().window(number);
            return Some(Firing::of_keys(window, keys));
        }
        let watermark = self.advancing?.timestamp;
        let window = self
            .frontier
            .next_complete(watermark, self.panes.by_start())?;
        Some(Firing::of_window(window, &self.panes))
    }

    /// Emits what is due, then passes the watermark on, then frees what has expired.
    fn go_on(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        loop {
            while !self.stage.is_full() {
                let Some(mut firing) = self.firing.take().or_else(|| self.next_firing()) else {
                    break;
                };
                self.stage.add(&mut firing, &self.panes);
                self.firing = (!firing.is_staged()).then_some(firing);
            }
            if self.stage.is_empty() {
                break;
            }
            if out.is_full() {
                return Ok(Progress::More);
            }
            out.emit(self.stage.build(&self.panes)?);
        }
        if let Some(watermark) = self.advancing.take() {
            self.advanced(watermark.timestamp);
            out.watermark(watermark);
        }
        Ok(match self.panes.free_some() {
            true => Progress::More,
            false => Progress::Done,
        })
    }

    fn advanced(&mut self, watermark: EventTime) {
        self.frontier.advance(watermark);
        if let Some(late_through) = self.frontier.late_through() {
            self.panes.expire(late_through);
        }
    }
}

impl Operator<RecordBatch, RecordBatch> for WindowAggregate {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        let times = event_times(&batch)?;
        let whole = match times.null_count() {
            0 => self.panes.pane_of_all(times.values()),
            _ => None,
        };
        // The rows of a pane are in the same windows, and late together.
        let batch = match whole {
            Some(pane) if !self.frontier.is_late(Some(pane.last)) => batch,
            _ => self.set_late_aside(batch, out)?,
        };
        if batch.num_rows() == 0 {
            return Ok(Progress::Done);
        }
        let times = event_times(&batch)?;
        self.panes.add(&batch, times.values(), whole)?;
        self.queue_updates(times);
        self.go_on(out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        if watermark.idle {
            out.watermark(watermark);
            return Ok(Progress::Done);
        }
        self.advancing = Some(watermark);
        self.go_on(out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        self.go_on(out)
    }
}

#[cfg(test)]
mod tests;
