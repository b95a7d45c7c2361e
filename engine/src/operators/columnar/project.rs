//! A record batch computed from a record batch.

use arrow::array::RecordBatch;

use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

use super::function::BatchFunction;

/// Replaces each batch by what a function computes from it: chosen, computed or renamed
/// columns, in any number of rows.
pub struct Project {
    project: BatchFunction,
}

impl Project {
    /// An operator that replaces each batch by `project` of it.
    pub fn new(project: BatchFunction) -> Self {
        Self { project }
    }
}

impl Operator<RecordBatch, RecordBatch> for Project {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        out.emit((self.project)(&batch)?);
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::columnar::samples::{duplicate_names, zero_columns};
    use crate::operators::testing::Harness;

    fn run(project: BatchFunction, batch: RecordBatch) -> Vec<RecordBatch> {
        let mut harness: Harness<_, RecordBatch> = Harness::new(Project::new(project), 1);
        harness.push(batch);
        harness.take_data()
    }

    #[test]
    fn a_projection_to_no_column_keeps_the_rows() {
        let no_column: BatchFunction = Box::new(|batch| Ok(batch.project(&[])?));
        let out = run(no_column, duplicate_names());
        assert_eq!((out[0].num_columns(), out[0].num_rows()), (0, 2));
    }

    #[test]
    fn columns_of_the_same_name_are_told_apart_by_position() {
        let last: BatchFunction = Box::new(|batch| Ok(batch.project(&[2])?));
        let out = run(last, duplicate_names());
        assert_eq!(out[0].column(0), duplicate_names().column(2));
        assert_eq!(out[0].schema().metadata()["origin"], "t1");
    }

    #[test]
    fn an_empty_result_is_not_emitted() {
        let nothing: BatchFunction = Box::new(|batch| Ok(batch.slice(0, 0)));
        assert!(run(nothing, zero_columns(5)).is_empty());
    }
}
