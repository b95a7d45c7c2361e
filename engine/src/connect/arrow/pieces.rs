//! Batches cut into what an Arrow IPC source takes.

use arrow::array::RecordBatch;

use crate::batch::Payload;
use crate::limits::IPC_BODY_BYTES_MAX;

/// The rows of `batch` in pieces of at most `rows_max`, each of which can be read again.
pub(crate) fn pieces(batch: &RecordBatch, rows_max: usize) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    let piece = rows_max.min(fitting_rows(batch));
    let firsts = (0..rows).step_by(piece);
    firsts.map(move |first| batch.slice(first, piece.min(rows - first)))
}

/// How many rows of `batch` a message takes without exceeding what may be read.
fn fitting_rows(batch: &RecordBatch) -> usize {
    let rows = batch.num_rows().max(1);
    // Rows differ in size: half of what is allowed leaves room for that.
    let messages = batch.bytes().div_ceil(IPC_BODY_BYTES_MAX / 2).max(1);
    rows.div_ceil(messages).max(1)
}
