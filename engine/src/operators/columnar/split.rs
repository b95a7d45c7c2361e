//! Two streams of record batches out of one.

use arrow::array::RecordBatch;
use arrow::compute::filter_record_batch;

use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, SideTag};

use super::function::{BatchPredicate, decide, opposite};

/// Sends the rows for which a predicate says yes to the main output, the others (no or
/// null) to a side output.
pub struct Split {
    to_main: BatchPredicate,
    others: SideTag<RecordBatch>,
}

impl Split {
    /// An operator that keeps the rows for which `to_main` says so, and sends the others to
    /// `others`.
    pub fn new(to_main: BatchPredicate, others: SideTag<RecordBatch>) -> Self {
        Self { to_main, others }
    }
}

impl Operator<RecordBatch, RecordBatch> for Split {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        let answers = decide(&mut self.to_main, &batch)?;
        match answers.true_count() {
            0 => out.emit_side(self.others, batch),
            kept if kept == batch.num_rows() => out.emit(batch),
            _ => {
                out.emit(filter_record_batch(&batch, &answers)?);
                let others = filter_record_batch(&batch, &opposite(&answers))?;
                out.emit_side(self.others, others);
            }
        }
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::columnar::samples::{even_numbers, numbers, zero_columns};
    use crate::operators::testing::Harness;
    use arrow::array::BooleanArray;

    fn run(to_main: BatchPredicate, batch: RecordBatch) -> [Vec<RecordBatch>; 2] {
        let others = SideTag::new(0);
        let mut harness: Harness<_, RecordBatch> = Harness::new(Split::new(to_main, others), 1);
        harness.push(batch);
        [harness.take_data(), harness.take_side(others)]
    }

    #[test]
    fn each_row_goes_to_exactly_one_output_and_null_goes_aside() {
        let [main, others] = run(even_numbers(), numbers(&[Some(1), Some(2), None, Some(4)]));
        assert_eq!(main, vec![numbers(&[Some(2), Some(4)])]);
        assert_eq!(others, vec![numbers(&[Some(1), None])]);
    }

    #[test]
    fn a_batch_that_goes_one_way_leaves_the_other_output_empty() {
        let [main, others] = run(even_numbers(), numbers(&[Some(2)]));
        assert_eq!((main.len(), others.len()), (1, 0));
        let [main, others] = run(even_numbers(), numbers(&[Some(1)]));
        assert_eq!((main.len(), others.len()), (0, 1));
    }

    #[test]
    fn a_batch_without_columns_keeps_all_its_rows() {
        let two: BatchPredicate =
            Box::new(|_| Ok(BooleanArray::from(vec![true, false, true, false, false])));
        let [main, others] = run(two, zero_columns(5));
        assert_eq!(main, vec![zero_columns(2)]);
        assert_eq!(others, vec![zero_columns(3)]);
    }
}
