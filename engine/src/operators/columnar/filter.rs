//! Some of the rows of a record batch.

use arrow::array::RecordBatch;
use arrow::compute::filter_record_batch;

use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

use super::function::{BatchPredicate, decide};

/// Keeps the rows for which a predicate says yes; null counts as no.
///
/// A batch of which every row stays is passed on as it is.
pub struct Filter {
    keep: BatchPredicate,
}

impl Filter {
    /// An operator that keeps the rows for which `keep` says so.
    pub fn new(keep: BatchPredicate) -> Self {
        Self { keep }
    }
}

impl Operator<RecordBatch, RecordBatch> for Filter {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        let answers = decide(&mut self.keep, &batch)?;
        match answers.true_count() {
            0 => {}
            kept if kept == batch.num_rows() => out.emit(batch),
            _ => out.emit(filter_record_batch(&batch, &answers)?),
        }
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::columnar::samples::{
        duplicate_names, even_numbers, numbers, zero_columns,
    };
    use crate::operators::testing::Harness;
    use arrow::array::{AsArray, BooleanArray};
    use arrow::datatypes::Int64Type;

    fn run(keep: BatchPredicate, batch: RecordBatch) -> Vec<RecordBatch> {
        let mut harness: Harness<_, RecordBatch> = Harness::new(Filter::new(keep), 1);
        harness.push(batch);
        harness.take_data()
    }

    #[test]
    fn rows_of_which_the_predicate_says_no_or_null_are_left_out() {
        let kept = run(even_numbers(), numbers(&[Some(1), Some(2), None, Some(4)]));
        assert_eq!(kept, vec![numbers(&[Some(2), Some(4)])]);
    }

    #[test]
    fn a_batch_that_stays_whole_is_not_copied() {
        let batch = numbers(&[Some(2), Some(4)]);
        let kept = run(even_numbers(), batch.clone());
        assert_eq!(
            kept[0]
                .column(1)
                .as_primitive::<Int64Type>()
                .values()
                .as_ptr(),
            batch
                .column(1)
                .as_primitive::<Int64Type>()
                .values()
                .as_ptr()
        );
    }

    #[test]
    fn nothing_is_emitted_when_no_row_stays() {
        assert!(run(even_numbers(), numbers(&[Some(1), None])).is_empty());
    }

    #[test]
    fn a_batch_without_columns_keeps_the_rows_that_stay() {
        let three_of_five: BatchPredicate =
            Box::new(|_| Ok(BooleanArray::from(vec![true, false, true, true, false])));
        let kept = run(three_of_five, zero_columns(5));
        assert_eq!(kept, vec![zero_columns(3)]);
    }

    #[test]
    fn metadata_and_columns_of_the_same_name_stay() {
        let first_row: BatchPredicate = Box::new(|_| Ok(BooleanArray::from(vec![true, false])));
        let kept = run(first_row, duplicate_names());
        assert_eq!(kept, vec![duplicate_names().slice(0, 1)]);
        assert_eq!(kept[0].schema().metadata()["origin"], "t1");
    }

    #[test]
    fn a_predicate_that_answers_for_too_few_rows_is_an_error() {
        let short: BatchPredicate = Box::new(|_| Ok(BooleanArray::from(vec![true])));
        let mut harness: Harness<_, RecordBatch> = Harness::new(Filter::new(short), 1);
        let error = harness
            .process(zero_columns(2))
            .expect_err("one answer for two rows");
        assert!(
            error.to_string().contains("1 rows of a batch of 2"),
            "{error}"
        );
    }
}
