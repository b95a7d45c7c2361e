//! Where typed rows become columns, and columns typed rows.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::batch::Rows;
use crate::batcher::Batcher;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

/// Builds a record batch of each batch of rows.
pub struct RowsToColumns<T> {
    batcher: Arc<dyn Batcher<T>>,
}

impl<T> RowsToColumns<T> {
    /// An operator that builds with `batcher`.
    pub const fn new(batcher: Arc<dyn Batcher<T>>) -> Self {
        Self { batcher }
    }
}

impl<T: Clone + Send + 'static> Operator<Rows<T>, RecordBatch> for RowsToColumns<T> {
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        out.emit(self.batcher.build(&batch)?);
        Ok(Progress::Done)
    }
}

/// Parses the rows of each record batch.
pub struct ColumnsToRows<T> {
    batcher: Arc<dyn Batcher<T>>,
}

impl<T> ColumnsToRows<T> {
    /// An operator that parses with `batcher`.
    pub const fn new(batcher: Arc<dyn Batcher<T>>) -> Self {
        Self { batcher }
    }
}

impl<T: Clone + Send + 'static> Operator<RecordBatch, Rows<T>> for ColumnsToRows<T> {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        out.emit(self.batcher.parse(&batch)?);
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Row;
    use crate::batcher::Batchable;
    use crate::operators::testing::Harness;

    #[test]
    fn rows_that_become_columns_and_rows_again_are_the_same() {
        let rows = Rows::from(vec![
            Row::at(i64::MIN, ("a".to_owned(), 1)),
            Row::untimed((String::new(), i64::MAX)),
        ]);
        let mut build: Harness<_, RecordBatch> =
            Harness::new(RowsToColumns::new(<(String, i64)>::batcher()), 1);
        build.push(rows.clone());
        let mut parse: Harness<_, Rows<(String, i64)>> =
            Harness::new(ColumnsToRows::new(<(String, i64)>::batcher()), 1);
        build
            .take_data()
            .into_iter()
            .for_each(|batch| parse.push(batch));
        assert_eq!(parse.take_data(), vec![rows]);
    }
}
