//! Joins of record batches.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::SchemaRef;

use crate::batch::Either;
use crate::column::event_times;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::SpecError;
use crate::operators::gather::{Gather, Gathered};
use crate::operators::late::set_late_aside;
use crate::operators::schema::{require_numbered_rows, require_same_types};

use super::columns::JoinedRows;
use super::parts::{EnteringBatch, Parts};
use super::schema::JoinSpec;

/// Joins record batches by key and event time.
///
/// Orders with the shipments that follow within a day:
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::datatypes::{DataType, Field, Schema};
/// use ringway::operators::join::{IntervalBounds, Join, JoinKind, JoinSpec, JoinTime};
///
/// let fields = |second: &str| {
///     Arc::new(Schema::new(vec![
///         Field::new("event_time", DataType::Int64, true),
///         Field::new(second, DataType::Utf8, false),
///         Field::new("order", DataType::Int64, false),
///     ]))
/// };
/// let (orders, shipments) = (fields("customer"), fields("carrier"));
/// let spec = JoinSpec {
///     kind: JoinKind::Left,
///     time: JoinTime::Interval(IntervalBounds::new(0, 86_400_000)?),
///     left_keys: vec![2],
///     right_keys: vec![2],
///     left_late: None,
///     right_late: None,
/// };
/// let output = spec.output_schema(&orders, &shipments)?;
/// assert_eq!(output.field(2).name(), "customer");
/// assert!(output.field(5).is_nullable(), "an order may have no shipment");
/// let join = Join::new(orders, shipments, spec)?;
/// # let _ = join;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct Join {
    left: JoinInput,
    right: JoinInput,
    key_schema: SchemaRef,
    spec: JoinSpec,
    parts: Parts,
    joined: JoinedRows,
    entering: Option<EnteringBatch>,
    advancing: Option<Watermark>,
    counts: RowCounts,
}

/// What is known of one input.
struct JoinInput {
    schema: SchemaRef,
    keys: Vec<usize>,
    late: Option<SideTag<RecordBatch>>,
}

impl Join {
    /// An operator for batches of `left` and `right`.
    ///
    /// # Errors
    /// As for [`JoinSpec::output_schema`], and when a column has a type that cannot be a key.
    pub fn new(left: SchemaRef, right: SchemaRef, spec: JoinSpec) -> Result<Self, SpecError> {
        let output = spec.output_schema(&left, &right)?;
        let key_schema = spec.key_schema(&left, &right)?;
        let left_out = spec.kind.gives_left().then(|| Arc::clone(&left));
        let right_out = spec.kind.gives_right().then(|| Arc::clone(&right));
        let parts = Parts::new(spec.kind, spec.time, &key_schema)?;
        let rows_hold = !parts.are_windows();
        Ok(Self {
            left: JoinInput {
                schema: left,
                keys: spec.left_keys.clone(),
                late: spec.left_late,
            },
            right: JoinInput {
                schema: right,
                keys: spec.right_keys.clone(),
                late: spec.right_late,
            },
            key_schema,
            parts,
            joined: JoinedRows::new(output, spec.time, left_out, right_out, rows_hold),
            spec,
            entering: None,
            advancing: None,
            counts: RowCounts::default(),
        })
    }

    /// The same join, whose columns go by other names: two of them may have one otherwise.
    ///
    /// # Panics
    /// When there are not as many names as columns.
    #[must_use]
    pub fn renamed(mut self, names: &[String]) -> Self {
        self.joined.rename(names);
        self
    }

    /// The schema of the results.
    pub fn output_schema(&self) -> &SchemaRef {
        self.joined.schema()
    }

    fn begin(
        &mut self,
        is_left: bool,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<(), OperatorError> {
        let input = if is_left { &self.left } else { &self.right };
        require_same_types(&input.schema, batch.schema_ref())?;
        require_numbered_rows(batch.num_rows())?;
        let is_late = |time| self.parts.is_late(time);
        let batch = set_late_aside(batch, is_late, input.late, &mut self.counts, out)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns: Vec<_> = input
            .keys
            .iter()
            .map(|at| Arc::clone(batch.column(*at)))
            .collect();
        let null_keys = columns
            .iter()
            .fold(None, |nulls: Option<NullBuffer>, column| {
                NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
            });
        let key_batch = RecordBatch::try_new(Arc::clone(&self.key_schema), columns)?;
        let times = event_times(&batch)?.clone();
        self.entering = Some(EnteringBatch {
            is_left,
            rows: self.parts.rows_of(times.values(), &key_batch)?,
            times,
            batch: self.joined.side(is_left).add(&batch),
            null_keys,
        });
        Ok(())
    }

    /// Rows and keys that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize, usize) {
        let (left, right, keys) = self.parts.waiting();
        let held = self.joined.left.len() + self.joined.right.len();
        assert!(
            left + right > 0 || held == 0,
            "batches go with their last row"
        );
        (left, right, keys)
    }
}

impl Gather for Join {
    type In = Either<RecordBatch, RecordBatch>;
    type Out = RecordBatch;

    fn take_in(
        &mut self,
        batch: Either<RecordBatch, RecordBatch>,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<(), OperatorError> {
        match batch {
            Either::Left(batch) => self.begin(true, batch, out),
            Either::Right(batch) => self.begin(false, batch, out),
        }
    }

    fn advance(&mut self, watermark: EventTime) {
        self.parts.advance(watermark);
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        if let Some(entering) = &mut self.entering {
            if !self.parts.enter(entering, &mut self.joined) {
                return Ok(Gathered::Batch);
            }
            let (is_left, batch) = (entering.is_left, entering.batch);
            self.joined.side(is_left).release(batch);
            self.entering = None;
        }
        if self.advancing.is_none_or(|watermark| watermark.idle) {
            return Ok(Gathered::All);
        }
        Ok(self.parts.expire(&mut self.joined))
    }

    fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        self.joined.build()
    }

    fn passed_on(&mut self, watermark: Watermark) -> Watermark {
        self.spec.time.passed_on(self.spec.kind, watermark)
    }

    fn free_some(&mut self) -> Result<bool, OperatorError> {
        Ok(self.parts.free_some())
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests;
