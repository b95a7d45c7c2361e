//! Windows of so many rows of a key, over record batches.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::super::slots::SlotPool;
use crate::batch::EVENT_TIME_COLUMN;
use crate::column::event_times;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts};
use crate::operators::SpecError;
use crate::operators::aggregate::{Accumulators, AggregateSpec, KeyInterner};
use crate::operators::gather::{Gather, Gathered};
use crate::operators::schema::{int64_field, require_event_time, require_same_types, results};

/// What a [`CountAggregate`] computes.
#[derive(Clone, Debug)]
pub struct CountSpec {
    /// How many rows a window has; at least 1.
    pub rows_max: u64,
    /// The positions of the columns that are the key; without any, all rows have one key.
    pub key_columns: Vec<usize>,
    /// The aggregates, in the order of the output columns.
    pub aggregates: Vec<AggregateSpec>,
}

/// Aggregates by key in windows of `rows_max` rows: the first so many rows of a key, the next so
/// many, and so on, in the order in which they come.
///
/// A window's result comes with the batch that has its last row; its event time is the highest
/// in the window. When the stream ends, windows that are not full give their results, keys in
/// the order in which they were first seen. Watermarks matter to none of this.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::datatypes::{DataType, Field, Schema};
/// use ringway::operators::window::{CountAggregate, CountSpec};
/// use ringway::operators::{AggregateKind, AggregateSpec};
///
/// let readings = Arc::new(Schema::new(vec![
///     Field::new("event_time", DataType::Int64, true),
///     Field::new("sensor", DataType::Int64, false),
///     Field::new("value", DataType::Float64, false),
/// ]));
/// let spec = CountSpec {
///     rows_max: 100,
///     key_columns: vec![1],
///     aggregates: vec![AggregateSpec::of(AggregateKind::Mean, 2, "mean")],
/// };
/// assert_eq!(spec.output_schema(&readings)?.field(1).name(), "window_number");
/// let of_each_hundred = CountAggregate::new(readings, spec)?;
/// # let _ = of_each_hundred;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct CountAggregate {
    input: SchemaRef,
    output: SchemaRef,
    rows_max: u64,
    interner: KeyInterner,
    /// The state of a window is a slot of these.
    accumulators: Accumulators,
    pool: SlotPool,
    /// By the number of the key. Keys stay for ever, so their numbers are in the order in which
    /// they came.
    filling: Vec<CountedRows>,
    due: VecDeque<(u32, CountedRows)>,
    advancing: Option<Watermark>,
    keys: Vec<u32>,
    slots: Vec<u32>,
}

/// A window of a key.
#[derive(Clone, Copy, Default)]
struct CountedRows {
    number: i64,
    rows: u64,
    latest: Option<EventTime>,
    /// None before its first row.
    slot: Option<u32>,
}

impl CountSpec {
    /// The schema of the results over batches of `input`: the event time (the highest in the
    /// window), `window_number` (which window of the key it is, from 0), `window_rows` (fewer
    /// than asked for in the last of a key), the key columns, the aggregates.
    ///
    /// # Errors
    /// When `input` has no event time, a window has no row, or a column does not exist or has
    /// an unfit type.
    pub fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        require_event_time(input)?;
        if self.rows_max == 0 {
            return Err(SpecError::CountWindow);
        }
        let keys = KeyInterner::new(input, &self.key_columns)?;
        let accumulators = Accumulators::new(input, &self.aggregates)?;
        let first = [
            int64_field(EVENT_TIME_COLUMN, true),
            int64_field("window_number", false),
            int64_field("window_rows", false),
        ];
        Ok(results(input, first, &keys, &accumulators))
    }
}

impl CountAggregate {
    /// An operator for batches of `input`.
    ///
    /// # Errors
    /// As for [`CountSpec::output_schema`].
    pub fn new(input: SchemaRef, spec: CountSpec) -> Result<Self, SpecError> {
        Ok(Self {
            output: spec.output_schema(&input)?,
            rows_max: spec.rows_max,
            interner: KeyInterner::new(&input, &spec.key_columns)?,
            accumulators: Accumulators::new(&input, &spec.aggregates)?,
            input,
            pool: SlotPool::default(),
            filling: Vec::new(),
            due: VecDeque::new(),
            advancing: None,
            keys: Vec::new(),
            slots: Vec::new(),
        })
    }

    /// Puts the row of `key` into its window; returns the slot of that.
    fn place(&mut self, key: u32, time: Option<EventTime>) -> u32 {
        let window = &mut self.filling[key as usize];
        let slot = *window.slot.get_or_insert_with(|| self.pool.take());
        window.rows += 1;
        window.latest = window.latest.max(time);
        if window.rows == self.rows_max {
            let next = CountedRows {
                number: window.number + 1,
                ..CountedRows::default()
            };
            self.due.push_back((key, std::mem::replace(window, next)));
        }
        slot
    }
}

impl Gather for CountAggregate {
    type In = RecordBatch;
    type Out = RecordBatch;

    fn take_in(
        &mut self,
        batch: RecordBatch,
        _out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<(), OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        let mut keys = std::mem::take(&mut self.keys);
        self.interner.intern(&batch, &mut keys)?;
        self.filling
            .resize(self.interner.bound(), CountedRows::default());
        let times = event_times(&batch)?;
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        for (row, key) in keys.iter().enumerate() {
            let time = times.is_valid(row).then(|| times.value(row));
            slots.push(self.place(*key, time));
        }
        self.accumulators.resize(self.pool.count());
        self.accumulators.update(&batch, &slots)?;
        (self.keys, self.slots) = (keys, slots);
        Ok(())
    }

    fn advance(&mut self, _watermark: EventTime) {}

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        Ok(match self.due.len() <= BATCH_ROWS {
            true => Gathered::All,
            false => Gathered::Batch,
        })
    }

    fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        let upto = self.due.len().min(BATCH_ROWS);
        let (keys, windows): (Vec<u32>, Vec<CountedRows>) = self.due.drain(..upto).unzip();
        let slots: Vec<u32> = windows.iter().filter_map(|window| window.slot).collect();
        let times: Int64Array = windows.iter().map(|window| window.latest).collect();
        let numbers = windows.iter().map(|window| window.number);
        let rows = windows.iter().map(|window| window.rows.cast_signed());
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(Int64Array::from_iter_values(numbers)),
            Arc::new(Int64Array::from_iter_values(rows)),
        ];
        columns.extend(self.interner.columns(&keys)?);
        columns.extend(self.accumulators.finish(&slots)?);
        self.accumulators.clear(&slots);
        self.pool.give_back(&slots);
        Ok(RecordBatch::try_new(Arc::clone(&self.output), columns)?)
    }

    fn end(&mut self) {
        let left = std::mem::take(&mut self.filling);
        let left = (0..).zip(left).filter(|(_, window)| window.slot.is_some());
        self.due.extend(left);
    }

    fn row_counts(&self) -> Option<RowCounts> {
        None
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::batch::{Row, Rows};
    use crate::operators::AggregateKind;
    use crate::operators::testing::{Harness, Random, batch_of_values as batch};
    use crate::operators::window::{CountResult, CountWindow, Sum};

    type Value = (i64, i64);
    type Out = Rows<CountResult<i64, i64>>;

    fn columnar(rows_max: u64, room: usize) -> Harness<CountAggregate, RecordBatch> {
        let spec = CountSpec {
            rows_max,
            key_columns: vec![1],
            aggregates: vec![AggregateSpec::of(AggregateKind::Sum, 2, "sum")],
        };
        let operator = CountAggregate::new(batch(&[]).schema(), spec);
        Harness::new(operator.expect("a fitting spec"), room)
    }

    fn rows(batches: Vec<RecordBatch>) -> Vec<Row<CountResult<i64, i64>>> {
        let row = |batch: &RecordBatch, row| {
            let cell = |at: usize| batch.column(at).as_primitive::<Int64Type>().value(row);
            let times = event_times(batch).expect("results have event times");
            Row {
                event_time: times.is_valid(row).then(|| times.value(row)),
                value: CountResult {
                    number: cell(1).unsigned_abs(),
                    rows: cell(2).unsigned_abs(),
                    key: cell(3),
                    value: cell(4),
                },
            }
        };
        let all = |batch: &RecordBatch| -> Vec<_> {
            (0..batch.num_rows()).map(|at| row(batch, at)).collect()
        };
        batches.iter().flat_map(all).collect()
    }

    #[test]
    fn both_forms_give_the_same_results_in_the_same_order() {
        let mut random = Random::new("both_forms_give_the_same_results_in_the_same_order");
        for _ in 0..20 {
            let rows_max = random.below(5) + 1;
            let (mut wide, mut tight) = (columnar(rows_max, usize::MAX), columnar(rows_max, 1));
            let sum = Sum(|value: &Value| value.1);
            let typed = CountWindow::new(|value: &Value| value.0, rows_max, sum);
            let mut typed: Harness<_, Out> = Harness::new(typed, 1);
            for step in 0..20 {
                let input: Vec<_> = (0..random.below(12))
                    .map(|_| Row {
                        value: (random.between(0, 4), random.between(-9, 9)),
                        event_time: (random.below(4) > 0).then(|| random.between(-50, 50)),
                    })
                    .collect();
                wide.push(batch(&input));
                tight.push(batch(&input));
                typed.push(Rows::from(input));
                if step == 19 {
                    wide.end::<RecordBatch>();
                    tight.end::<RecordBatch>();
                    typed.end::<Rows<Value>>();
                }
                let results = rows(wide.take_data());
                assert_eq!(rows(tight.take_data()), results);
                let expected: Vec<_> = typed.take_data().into_iter().flatten().collect();
                assert_eq!(results, expected);
            }
            assert_eq!(wide.operator.pool.used(), 0, "all state is freed");
        }
    }

    #[test]
    fn very_many_windows_come_out_in_bounded_batches() {
        let many = 2 * BATCH_ROWS as i64 + 1;
        let input: Vec<_> = (0..many).map(|n| Row::at(n, (n % 2, n))).collect();
        let run = |room| {
            let mut harness = columnar(1, room);
            harness.push(batch(&input));
            harness.take_data()
        };
        assert_eq!(run(usize::MAX).len(), 3);
        assert_eq!(run(1), run(usize::MAX));
    }

    #[test]
    fn a_window_without_rows_is_refused() {
        let spec = CountSpec {
            rows_max: 0,
            key_columns: vec![],
            aggregates: vec![AggregateSpec::count("n")],
        };
        let error = CountAggregate::new(batch(&[]).schema(), spec).err();
        assert_eq!(error, Some(SpecError::CountWindow));
    }
}
