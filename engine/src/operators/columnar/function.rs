//! What the columnar operators are given to compute.

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::prep_null_mask_filter;

use crate::error::OperatorError;

/// Says for each row of a batch whether it satisfies a condition; null counts as no.
pub type BatchPredicate =
    Box<dyn FnMut(&RecordBatch) -> Result<BooleanArray, OperatorError> + Send>;

/// Computes a batch from a batch.
pub type BatchFunction = Box<dyn FnMut(&RecordBatch) -> Result<RecordBatch, OperatorError> + Send>;

/// What `predicate` says of `batch`, without nulls.
pub(super) fn decide(
    predicate: &mut BatchPredicate,
    batch: &RecordBatch,
) -> Result<BooleanArray, OperatorError> {
    let answers = predicate(batch)?;
    if answers.len() != batch.num_rows() {
        return Err(OperatorError::new(format!(
            "the predicate answered for {} rows of a batch of {}: it must give one answer a row",
            answers.len(),
            batch.num_rows()
        )));
    }
    Ok(match answers.null_count() {
        0 => answers,
        _ => prep_null_mask_filter(&answers),
    })
}

/// The opposite of `answers`, which has no nulls.
pub(super) fn opposite(answers: &BooleanArray) -> BooleanArray {
    let flipped: BooleanBuffer = !answers.values();
    BooleanArray::new(flipped, None)
}
