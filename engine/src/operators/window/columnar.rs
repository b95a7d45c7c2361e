//! Aggregates by key and window over record batches.

use std::collections::{BTreeMap, HashSet, VecDeque};

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::assigner::WindowAssigner;
use super::early::{Early, EarlyResults};
use super::frontier::Frontier;
use super::panes::Panes;
use super::stage::{Firing, Stage};
use crate::clock::ProcessingTime;
use crate::column::event_times;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::SpecError;
use crate::operators::aggregate::AggregateSpec;
use crate::operators::gather::{Gather, Gathered};
use crate::operators::late::set_late_aside;
use crate::operators::schema::{require_event_time, require_same_types, results, window_fields};

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
    /// When windows give results before they are complete.
    pub early: EarlyResults,
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
        Ok(results(
            input,
            window_fields(),
            &panes.interner,
            &panes.accumulators,
        ))
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
/// use ringway::operators::window::{EarlyResults, WindowAggregate, WindowAssigner, WindowSpec};
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
///     early: EarlyResults::default(),
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
    pub(super) early: Early,
    stage: Stage,
    firing: Option<Firing>,
    updates: VecDeque<(i128, Vec<u32>)>,
    advancing: Option<Watermark>,
    counts: RowCounts,
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
            early: Early::new(spec.early),
            stage: Stage::new(output, &panes, spec.assigner.is_tumbling()),
            panes,
            firing: None,
            updates: VecDeque::new(),
            advancing: None,
            counts: RowCounts::default(),
        })
    }

    /// Windows that are complete and take in one of the rows give their results anew.
    fn queue_updates(&mut self, times: &Int64Array) {
        let may_reopen = self.frontier.allows_lateness();
        if !may_reopen || !self.frontier.may_reopen(arrow::compute::min(times)) {
            return;
        }
        let mut changed: BTreeMap<i128, Vec<u32>> = BTreeMap::new();
        let mut seen = HashSet::new();
        for (time, key) in times.values().iter().zip(self.panes.row_keys()) {
            let mut is_late = false;
            for number in self.frontier.reopened_by(*time) {
                is_late = true;
                if seen.insert((number, *key)) {
                    changed.entry(number).or_default().push(*key);
                }
            }
            self.counts.accepted_late_rows += u64::from(is_late);
        }
        self.updates.extend(changed);
    }

    /// The next window that is to be emitted, if there is one.
    fn next_firing(&mut self) -> Option<Firing> {
        if let Some((number, keys)) = self.updates.pop_front() {
            let window = self.frontier.assigner().window(number);
            return Some(Firing::of_keys(window, keys));
        }
        let watermark = self.advancing.filter(|watermark| !watermark.idle)?;
        let window = self
            .frontier
            .next_complete(watermark.timestamp, self.panes.by_start())?;
        Some(Firing::of_window(window, &self.panes))
    }
}

impl Gather for WindowAggregate {
    type In = RecordBatch;
    type Out = RecordBatch;

    fn take_in(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<(), OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        let is_late = |time| self.frontier.is_late(time);
        let times = event_times(&batch)?;
        let whole = match times.null_count() {
            0 => self.panes.pane_of_all(times.values()),
            _ => None,
        };
        let batch = match whole {
            // The rows of a pane are in the same windows, and late together.
            Some(pane) if !is_late(Some(pane.last)) => batch,
            _ => set_late_aside(batch, is_late, self.late, &mut self.counts, out)?,
        };
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let times = event_times(&batch)?;
        self.panes.add(&batch, times.values(), whole)?;
        self.queue_updates(times);
        let (times, keys) = (times.values(), self.panes.row_keys());
        let early = self.early.add(times, keys, &self.frontier, out.now());
        self.updates.extend(early);
        Ok(())
    }

    fn advance(&mut self, _watermark: EventTime) {
        // The windows that it completes fire one after the other, and then it has come.
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        while !self.stage.is_full() {
            let Some(mut firing) = self.firing.take().or_else(|| self.next_firing()) else {
                return Ok(Gathered::All);
            };
            self.stage.add(&mut firing, &self.panes);
            self.firing = (!firing.is_staged()).then_some(firing);
        }
        Ok(Gathered::Batch)
    }

    fn is_empty(&self) -> bool {
        self.stage.is_empty()
    }

    fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        self.stage.build(&self.panes)
    }

    fn passed_on(&mut self, watermark: Watermark) -> Watermark {
        if !watermark.idle {
            self.frontier.advance(watermark.timestamp);
            self.early.forget_complete(&self.frontier);
            if let Some(late_through) = self.frontier.late_through() {
                self.panes.expire(late_through);
            }
        }
        watermark
    }

    fn free_some(&mut self) -> Result<bool, OperatorError> {
        Ok(!self.panes.free_some())
    }

    fn due_at(&self) -> Option<ProcessingTime> {
        self.early.due_at()
    }

    fn on_time(&mut self) {
        self.updates.extend(self.early.fire(&self.frontier));
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests;
