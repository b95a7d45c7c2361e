//! Some of the rows.

use crate::batch::Rows;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

/// Keeps the rows whose value satisfies a predicate, in place.
#[derive(Clone, Debug)]
pub struct Filter<F> {
    keep: F,
}

impl<F> Filter<F> {
    /// An operator that keeps the rows for whose value `keep` says so.
    pub const fn new(keep: F) -> Self {
        Self { keep }
    }
}

impl<T, F> Operator<Rows<T>, Rows<T>> for Filter<F>
where
    T: Clone + Send + 'static,
    F: FnMut(&T) -> bool + Send,
{
    fn process(
        &mut self,
        mut batch: Rows<T>,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        batch.retain(|row| (self.keep)(&row.value));
        out.emit(batch);
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Row;
    use crate::operators::testing::Harness;

    #[test]
    fn rows_that_satisfy_the_predicate_stay_in_order_and_an_empty_rest_is_not_emitted() {
        let mut harness: Harness<_, Rows<i64>> =
            Harness::new(Filter::new(|value: &i64| value % 2 == 0), 1);
        harness.push(Rows::from_iter((0..5).map(|n| Row::at(n, n))));
        harness.push(Rows::from(vec![Row::untimed(1)]));
        assert_eq!(
            harness.take_data(),
            vec![Rows::from(vec![
                Row::at(0, 0),
                Row::at(2, 2),
                Row::at(4, 4)
            ])]
        );
    }
}
