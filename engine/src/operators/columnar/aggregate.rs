//! Aggregates by key without windows.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};

use crate::batch::EVENT_TIME_COLUMN;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Operator, Progress};
use crate::operators::SpecError;
use crate::operators::aggregate::{Accumulators, AggregateKind, AggregateSpec, KeyInterner};
use crate::operators::schema::{require_event_time, require_same_types};

/// When an [`Aggregate`] emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitResults {
    /// After each batch, the results so far of the keys in it.
    EachBatch,
    /// Once, at the end of the stream, those of all keys. Without key columns there is a
    /// result even if there was no row.
    AtEnd,
}

/// Aggregates by key over the whole stream. Keys are kept for ever.
///
/// A result's event time is the highest of the rows in it. Keys come in the order in which
/// they were first seen, in the batch or in the stream.
pub struct Aggregate {
    input: SchemaRef,
    output: SchemaRef,
    interner: KeyInterner,
    /// The event time, then the aggregates that were asked for. Slots are keys.
    accumulators: Accumulators,
    emit: EmitResults,
    pending: Vec<u32>,
    emitted: usize,
    keys: Vec<u32>,
    /// The last batch that each key was in.
    seen_in: Vec<u64>,
    batches: u64,
}

impl Aggregate {
    /// An operator for batches of `input`, keyed by the columns at `key_columns`.
    ///
    /// # Errors
    /// When `input` has no event time, or a column does not exist or has an unfit type.
    pub fn new(
        input: SchemaRef,
        key_columns: &[usize],
        aggregates: &[AggregateSpec],
        emit: EmitResults,
    ) -> Result<Self, SpecError> {
        require_event_time(&input)?;
        let mut specs = vec![AggregateSpec::of(AggregateKind::Max, 0, EVENT_TIME_COLUMN)];
        specs.extend_from_slice(aggregates);
        let interner = KeyInterner::new(&input, key_columns)?;
        let accumulators = Accumulators::new(&input, &specs)?;
        let mut fields: Vec<_> = accumulators.fields().collect();
        fields.splice(1..1, interner.fields().iter().cloned());
        let output = Schema::new_with_metadata(fields, input.metadata().clone());
        Ok(Self {
            input,
            output: Arc::new(output),
            interner,
            accumulators,
            emit,
            pending: Vec::new(),
            emitted: 0,
            keys: Vec::new(),
            seen_in: Vec::new(),
            batches: 0,
        })
    }

    /// The schema of the results: the event time, the key columns, the aggregates.
    pub fn output_schema(&self) -> &SchemaRef {
        &self.output
    }

    fn results(&self, keys: &[u32]) -> Result<RecordBatch, OperatorError> {
        let mut columns = self.accumulators.finish(keys)?;
        columns.splice(1..1, self.interner.columns(keys)?);
        Ok(RecordBatch::try_new(Arc::clone(&self.output), columns)?)
    }

    fn queue_keys_of_batch(&mut self) {
        self.batches += 1;
        self.seen_in.resize(self.interner.bound(), 0);
        for key in &self.keys {
            let seen_in = &mut self.seen_in[*key as usize];
            if *seen_in != self.batches {
                *seen_in = self.batches;
                self.pending.push(*key);
            }
        }
    }
}

impl Operator<RecordBatch, RecordBatch> for Aggregate {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        self.interner.intern(&batch, &mut self.keys)?;
        self.accumulators.resize(self.interner.bound());
        self.accumulators.update(&batch, &self.keys)?;
        if self.emit == EmitResults::EachBatch {
            self.queue_keys_of_batch();
        }
        self.resume(out)
    }

    fn on_end(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        if self.emit == EmitResults::AtEnd {
            let mut keys = self.interner.bound();
            if self.interner.fields().is_empty() {
                keys = 1;
                self.accumulators.resize(1);
            }
            self.pending.extend(0..keys as u32);
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        while self.emitted < self.pending.len() {
            if out.is_full() {
                return Ok(Progress::More);
            }
            let upto = self.pending.len().min(self.emitted + BATCH_ROWS);
            let results = self.results(&self.pending[self.emitted..upto])?;
            self.emitted = upto;
            out.emit(results);
        }
        self.pending.clear();
        self.emitted = 0;
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::columnar::samples::{duplicate_names, numbers};
    use crate::operators::testing::Harness;
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    fn aggregate(keys: &[usize], emit: EmitResults) -> Harness<Aggregate, RecordBatch> {
        let specs = [
            AggregateSpec::count("rows"),
            AggregateSpec::of(AggregateKind::Sum, 1, "sum"),
        ];
        let schema = numbers(&[]).schema();
        let operator = Aggregate::new(schema, keys, &specs, emit).expect("a fitting spec");
        Harness::new(operator, 1)
    }

    fn rows(batches: Vec<RecordBatch>) -> Vec<Vec<Option<i64>>> {
        let row = |batch: &RecordBatch, at| {
            let columns = batch.columns().iter();
            columns
                .map(|column| column.as_primitive::<Int64Type>().iter().nth(at).flatten())
                .collect()
        };
        batches
            .iter()
            .flat_map(|batch| {
                (0..batch.num_rows())
                    .map(|at| row(batch, at))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn each_batch_gives_the_results_so_far_of_its_keys() {
        let mut harness = aggregate(&[1], EmitResults::EachBatch);
        harness.push(numbers(&[Some(5), None, Some(5), Some(2)]));
        harness.push(numbers(&[Some(2)]));
        assert_eq!(
            rows(harness.take_data()),
            [
                [Some(7), Some(5), Some(2), Some(10)],
                [Some(7), None, Some(1), None],
                [Some(7), Some(2), Some(1), Some(2)],
                [Some(7), Some(2), Some(2), Some(4)],
            ]
        );
        harness.end::<RecordBatch>();
        assert!(harness.take_data().is_empty());
    }

    #[test]
    fn columns_of_the_same_name_are_told_apart_and_metadata_stays() {
        let input = duplicate_names();
        let specs = [AggregateSpec::of(AggregateKind::Max, 2, "most")];
        let operator = Aggregate::new(input.schema(), &[1], &specs, EmitResults::EachBatch);
        let mut harness: Harness<_, RecordBatch> =
            Harness::new(operator.expect("a fitting spec"), 1);
        harness.push(input);
        let out = harness.take_data();
        assert_eq!(out[0].schema().metadata()["origin"], "t1");
        assert_eq!(
            rows(out),
            [[Some(0), Some(1), Some(3)], [Some(1), Some(2), Some(4)]]
        );
    }

    #[test]
    fn results_at_the_end_come_in_bounded_batches() {
        let mut harness = aggregate(&[1], EmitResults::AtEnd);
        let values: Vec<Option<i64>> = (0..2 * BATCH_ROWS as i64 + 1).map(Some).collect();
        harness.push(numbers(&values));
        assert!(harness.take_data().is_empty());
        harness.end::<RecordBatch>();
        let batches = harness.take_data();
        assert_eq!(batches.len(), 3);
        assert_eq!(rows(batches).len(), values.len());
    }

    #[test]
    fn an_aggregate_of_all_rows_has_a_result_even_without_rows() {
        let mut empty = aggregate(&[], EmitResults::AtEnd);
        empty.end::<RecordBatch>();
        assert_eq!(rows(empty.take_data()), [[None, Some(0), None]]);
        let mut some = aggregate(&[], EmitResults::AtEnd);
        some.push(numbers(&[Some(1), None, Some(2)]));
        some.end::<RecordBatch>();
        assert_eq!(rows(some.take_data()), [[Some(7), Some(3), Some(3)]]);
    }
}
