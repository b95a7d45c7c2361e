//! The first row of each key.

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;

use crate::column::{event_times, filter_batch};
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, RowCounts, SideTag};
use crate::operators::SpecError;
use crate::operators::aggregate::KeyInterner;
use crate::operators::schema::{require_event_time, require_same_types};
use crate::operators::state::{FirstSeen, Seen};

/// What a [`Deduplicate`] does.
#[derive(Clone, Debug)]
pub struct DeduplicateSpec {
    /// The positions of the columns that are the key; without any, all rows have one key.
    pub key_columns: Vec<usize>,
    /// How long a key is remembered from the event time of its first row on, in milliseconds;
    /// for ever if none.
    pub ttl_ms: Option<u64>,
    /// Where rows go of which it cannot be known, because they are behind the watermark or have
    /// no event time. Without it they are counted only. There are none without a `ttl_ms`.
    pub late: Option<SideTag<RecordBatch>>,
}

/// Keeps the first row of each key, in the order in which rows come; the others are counted.
///
/// A row is another first one when its event time is `ttl_ms` or more after that of the first.
/// Its key is forgotten when the watermark is.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::datatypes::{DataType, Field, Schema};
/// use ringway::operators::columnar::{Deduplicate, DeduplicateSpec};
///
/// let payments = Arc::new(Schema::new(vec![
///     Field::new("event_time", DataType::Int64, true),
///     Field::new("payment", DataType::Utf8, false),
/// ]));
/// let spec = DeduplicateSpec { key_columns: vec![1], ttl_ms: Some(86_400_000), late: None };
/// let once = Deduplicate::new(payments, spec)?;
/// # let _ = once;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct Deduplicate {
    input: SchemaRef,
    interner: KeyInterner,
    seen: FirstSeen<u32>,
    has_ttl: bool,
    late: Option<SideTag<RecordBatch>>,
    keys: Vec<u32>,
    counts: RowCounts,
}

impl Deduplicate {
    /// An operator for batches of `input`, which come out with the same schema.
    ///
    /// # Errors
    /// When a column does not exist or cannot be a key, or `input` has no event time and there
    /// is a time to live.
    pub fn new(input: SchemaRef, spec: DeduplicateSpec) -> Result<Self, SpecError> {
        if spec.ttl_ms.is_some() {
            require_event_time(&input)?;
        }
        Ok(Self {
            interner: KeyInterner::new(&input, &spec.key_columns)?,
            input,
            seen: FirstSeen::new(spec.ttl_ms),
            has_ttl: spec.ttl_ms.is_some(),
            late: spec.late,
            keys: Vec::new(),
            counts: RowCounts::default(),
        })
    }

    /// What each row is among those of its key.
    fn see(&mut self, batch: &RecordBatch) -> Result<Vec<Seen>, OperatorError> {
        let times = match self.has_ttl {
            true => Some(event_times(batch)?),
            false => None,
        };
        self.interner.intern(batch, &mut self.keys)?;
        // Every key is held by its rows until all are seen, and by each memory of it after.
        self.keys.iter().for_each(|key| self.interner.hold(*key));
        let mut seen = Vec::with_capacity(batch.num_rows());
        for (row, key) in self.keys.iter().enumerate() {
            let time = times.filter(|times| times.is_valid(row));
            let time = time.map(|times| times.value(row));
            let is_known = self.seen.knows(key);
            let what = self.seen.see(key, time);
            if what == Seen::First && !is_known {
                self.interner.hold(*key);
            }
            seen.push(what);
        }
        self.keys.iter().for_each(|key| self.interner.release(*key));
        Ok(seen)
    }
}

impl Operator<RecordBatch, RecordBatch> for Deduplicate {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        let seen = self.see(&batch)?;
        let rows = |what| -> BooleanArray { seen.iter().map(|seen| Some(*seen == what)).collect() };
        let late = rows(Seen::Late);
        let untimed = match late.true_count() {
            0 => 0,
            _ => event_times(&batch)?.null_count(),
        };
        self.counts.untimed_rows += untimed as u64;
        self.counts.late_rows += (late.true_count() - untimed) as u64;
        self.counts.duplicate_rows += rows(Seen::Again).true_count() as u64;
        if let Some(tag) = self.late
            && late.true_count() > 0
        {
            out.emit_side(tag, filter_batch(&batch, &late)?);
        }
        out.emit(filter_batch(&batch, &rows(Seen::First))?);
        Ok(Progress::Done)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        if !watermark.idle {
            self.seen.advance(watermark.timestamp);
        }
        out.watermark(watermark);
        self.resume(out)
    }

    fn resume(&mut self, _out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        let interner = &mut self.interner;
        Ok(
            match self.seen.forget_some(&mut |key| interner.release(*key)) {
                true => Progress::Done,
                false => Progress::More,
            },
        )
    }

    fn counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::batch::{Payload, Row, Rows};
    use crate::operators::columnar::samples::{duplicate_names, zero_columns};
    use crate::operators::rows;
    use crate::operators::testing::{Harness, Random};

    const LATE: SideTag<RecordBatch> = SideTag::new(1);

    fn batch(rows: &[Row<u64>]) -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("event_time", DataType::Int64, true),
            Field::new("key", DataType::Utf8, true),
        ]);
        let times: Int64Array = rows.iter().map(|row| row.event_time).collect();
        let keys: StringArray = rows.iter().map(|row| Some(row.value.to_string())).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(keys)];
        RecordBatch::try_new(Arc::new(schema), columns).expect("columns and schema agree")
    }

    #[test]
    fn both_forms_keep_the_same_rows_and_forget_the_same_keys() {
        let mut random = Random::new("both_forms_keep_the_same_rows_and_forget_the_same_keys");
        for _ in 0..20 {
            let ttl_ms = (random.below(4) > 0).then(|| random.below(30));
            let spec = DeduplicateSpec {
                key_columns: vec![1],
                ttl_ms,
                late: Some(LATE),
            };
            let operator = Deduplicate::new(batch(&[]).schema(), spec).expect("a fitting spec");
            let mut columnar: Harness<_, RecordBatch> = Harness::new(operator, 1);
            let operator = rows::Deduplicate::new(|key: &u64| *key, ttl_ms, None);
            let mut typed: Harness<_, Rows<u64>> = Harness::new(operator, 1);
            for step in 0..60 {
                let rows: Vec<Row<u64>> = (0..random.below(9))
                    .map(|_| Row {
                        value: random.below(5),
                        event_time: (random.below(9) > 0).then(|| step + random.between(-15, 9)),
                    })
                    .collect();
                columnar.push(batch(&rows));
                typed.push(Rows::from(rows));
                let watermark = Watermark::active(step - 8);
                columnar.watermark::<RecordBatch>(watermark);
                typed.watermark::<Rows<u64>>(watermark);
                let kept: Vec<Row<u64>> = typed.take_data().into_iter().flatten().collect();
                let same = columnar.take_data();
                assert_eq!(same.iter().map(Payload::rows).sum::<usize>(), kept.len());
                if let Some(same) = same.first() {
                    assert_eq!(same, &batch(&kept));
                }
            }
            assert_eq!(columnar.counts(), typed.counts());
            let columns = &columnar.operator;
            assert_eq!(columns.interner.live(), columns.seen.len());
            columnar.watermark::<RecordBatch>(Watermark::MAX);
            let left = if ttl_ms.is_some() { 0 } else { 5 };
            assert_eq!(columnar.operator.interner.live(), left);
        }
    }

    #[test]
    fn metadata_duplicate_names_and_batches_without_columns_pass() {
        let input = duplicate_names();
        let spec = |key_columns| DeduplicateSpec {
            key_columns,
            ttl_ms: None,
            late: None,
        };
        let operator = Deduplicate::new(input.schema(), spec(vec![2])).expect("a fitting spec");
        let mut harness: Harness<_, RecordBatch> = Harness::new(operator, 1);
        harness.push(input.clone());
        harness.push(input.clone());
        assert_eq!(harness.take_data(), [input]);
        let operator = Deduplicate::new(zero_columns(0).schema(), spec(vec![]));
        let mut harness: Harness<_, RecordBatch> =
            Harness::new(operator.expect("a fitting spec"), 1);
        harness.push(zero_columns(5));
        assert_eq!(harness.take_data(), [zero_columns(1)]);
    }
}
