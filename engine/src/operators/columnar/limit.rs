//! So many rows of a stream, from one on.

use arrow::array::RecordBatch;

use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

/// Leaves out the first rows, keeps the next so many, and discards all others.
///
/// What comes before is not ended by it: its rows go on to come, and are discarded.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    offset_left: u64,
    rows_left: u64,
}

impl Limit {
    /// An operator that leaves out the first `offset` rows and keeps the next `rows`.
    pub const fn new(rows: u64, offset: u64) -> Self {
        Self {
            offset_left: offset,
            rows_left: rows,
        }
    }
}

impl Operator<RecordBatch, RecordBatch> for Limit {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        let rows = batch.num_rows() as u64;
        let left_out = self.offset_left.min(rows);
        let kept = self.rows_left.min(rows - left_out);
        self.offset_left -= left_out;
        self.rows_left -= kept;
        if kept == rows {
            out.emit(batch);
        } else {
            // Both are at most the rows of the batch.
            out.emit(batch.slice(left_out as usize, kept as usize));
        }
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::columnar::samples::{numbers, zero_columns};
    use crate::operators::testing::{Harness, Random};

    #[test]
    fn any_batches_give_the_rows_that_one_list_would() {
        let mut random = Random::new("any_batches_give_the_rows_that_one_list_would");
        for _ in 0..200 {
            let sizes: Vec<u64> = (0..random.below(6)).map(|_| random.below(5)).collect();
            let (rows, offset) = (random.below(12), random.below(12));
            let mut harness: Harness<_, RecordBatch> = Harness::new(Limit::new(rows, offset), 1);
            let mut all = Vec::new();
            for size in sizes {
                let first = all.len() as i64;
                let batch: Vec<_> = (first..first + size as i64).map(Some).collect();
                all.extend(&batch);
                harness.push(numbers(&batch));
            }
            let kept = harness.take_data();
            let expected = all.iter().skip(offset as usize).take(rows as usize);
            let expected = numbers(&expected.copied().collect::<Vec<_>>());
            let kept = arrow::compute::concat_batches(&expected.schema(), &kept).unwrap();
            assert_eq!(kept, expected);
        }
    }

    #[test]
    fn a_batch_without_columns_keeps_the_rows_that_stay() {
        let mut harness: Harness<_, RecordBatch> = Harness::new(Limit::new(2, 1), 1);
        harness.push(zero_columns(5));
        assert_eq!(harness.take_data(), vec![zero_columns(2)]);
    }
}
