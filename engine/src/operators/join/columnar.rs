//! Joins of record batches.

use std::sync::Arc;

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::SchemaRef;

use crate::batch::Either;
use crate::column::event_times;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::SpecError;
use crate::operators::aggregate::KeyInterner;
use crate::operators::gather::Gather;
use crate::operators::late::set_late_aside;
use crate::operators::schema::require_same_types;
use crate::operators::state::Numbers;

use super::columns::JoinedRows;
use super::held::RowNumber;
use super::kind::JoinKind;
use super::schema::JoinSpec;
use super::state::{Entering, Entry, Flipped, JoinOutput, JoinState};

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
    kind: JoinKind,
    left: JoinInput,
    right: JoinInput,
    keys: KeyInterner,
    key_schema: SchemaRef,
    spec: JoinSpec,
    state: JoinState<Numbers, RowNumber, RowNumber>,
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

/// A batch whose rows are entering.
struct EnteringBatch {
    is_left: bool,
    /// The number of the batch.
    batch: u32,
    times: Int64Array,
    keys: Vec<u32>,
    null_keys: Option<NullBuffer>,
    next: usize,
    row: Option<Entering<u32, RowNumber>>,
}

impl Join {
    /// An operator for batches of `left` and `right`.
    ///
    /// # Errors
    /// As for [`JoinSpec::output_schema`], and when a column has a type that cannot be a key.
    pub fn new(left: SchemaRef, right: SchemaRef, spec: JoinSpec) -> Result<Self, SpecError> {
        let output = spec.output_schema(&left, &right)?;
        let key_schema = spec.key_schema(&left, &right)?;
        let positions: Vec<usize> = (0..spec.left_keys.len()).collect();
        let comes_out = |schema: &SchemaRef, kinds: [JoinKind; 2]| {
            (spec.kind.gives_pairs() || kinds.contains(&spec.kind)).then(|| Arc::clone(schema))
        };
        let left_out = comes_out(&left, [JoinKind::LeftSemi, JoinKind::LeftAnti]);
        let right_out = comes_out(&right, [JoinKind::RightSemi, JoinKind::RightAnti]);
        Ok(Self {
            kind: spec.kind,
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
            keys: KeyInterner::new(&key_schema, &positions)?,
            key_schema,
            state: JoinState::new(spec.kind, spec.time),
            joined: JoinedRows::new(output, spec.time, left_out, right_out),
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
        let is_late = |time| self.state.is_late(time);
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
        let mut keys = Vec::new();
        let key_batch = RecordBatch::try_new(Arc::clone(&self.key_schema), columns)?;
        self.keys.intern(&key_batch, &mut keys)?;
        // Every row holds its key until it is in, so that no key is given away before.
        keys.iter().for_each(|key| self.keys.hold(*key));
        self.entering = Some(EnteringBatch {
            is_left,
            times: event_times(&batch)?.clone(),
            batch: match is_left {
                true => self.joined.left.add(&batch),
                false => self.joined.right.add(&batch),
            },
            keys,
            null_keys,
            next: 0,
            row: None,
        });
        Ok(())
    }

    /// Rows and keys that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize, usize) {
        let (left, right) = self.state.waiting();
        let held = self.joined.left.len() + self.joined.right.len();
        assert!(
            left + right > 0 || held == 0,
            "batches go with their last row"
        );
        (left, right, self.keys.live())
    }
}

impl EnteringBatch {
    /// Lets rows enter; returns whether all are in.
    fn enter(
        &mut self,
        mut entry: Entry<'_, Numbers, RowNumber, RowNumber>,
        out: &mut impl JoinOutput<RowNumber, RowNumber>,
        keys: &mut KeyInterner,
    ) -> bool {
        if let Some(row) = &mut self.row {
            if !entry.go_on(row, out, &mut |key| keys.hold(*key)) {
                return false;
            }
            self.row = None;
            keys.release(self.keys[self.next]);
            self.next += 1;
        }
        let nulls = self.null_keys.as_ref();
        while let Some(key) = self.keys.get(self.next) {
            let row = RowNumber::new(self.batch, self.next as u32);
            let matches = nulls.is_none_or(|nulls| nulls.is_valid(self.next));
            let time = self.times.value(self.next);
            let mut held = 0;
            let mut kept = |_: &u32| held += 1;
            self.row = entry.begin(matches.then_some(key), row, time, out, &mut kept);
            // The row's own hold goes over to the first time that it is kept.
            if self.row.is_some() {
                (0..held).for_each(|_| keys.hold(*key));
                return false;
            }
            match held {
                0 => keys.release(*key),
                _ => (1..held).for_each(|_| keys.hold(*key)),
            }
            self.next += 1;
        }
        true
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
        self.state.advance(watermark);
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<bool, OperatorError> {
        let keys = &mut self.keys;
        if let Some(entering) = &mut self.entering {
            let joined = &mut self.joined;
            let is_in = match entering.is_left {
                true => entering.enter(self.state.left(), joined, keys),
                false => entering.enter(self.state.right(), &mut Flipped(joined), keys),
            };
            if !is_in {
                return Ok(false);
            }
            match entering.is_left {
                true => self.joined.left.release(entering.batch),
                false => self.joined.right.release(entering.batch),
            }
            self.entering = None;
        }
        if self.advancing.is_none_or(|watermark| watermark.idle) {
            return Ok(true);
        }
        if self.state.end() {
            keys.clear();
            self.joined.let_all_go();
            return Ok(true);
        }
        let mut released = |key: &u32| keys.release(*key);
        Ok(self.state.expire(&mut self.joined, &mut released))
    }

    fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        self.joined.build()
    }

    fn passed_on(&mut self, watermark: Watermark) -> Watermark {
        self.spec.time.passed_on(self.kind, watermark)
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests;
