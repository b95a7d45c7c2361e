//! A look at each row as it passes.

use crate::batch::{Row, Rows};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

/// Shows each row to a function and passes it on unchanged.
#[derive(Clone, Debug)]
pub struct Inspect<F> {
    see: F,
}

impl<F> Inspect<F> {
    /// An operator that calls `see` with each row.
    pub const fn new(see: F) -> Self {
        Self { see }
    }
}

impl<T, F> Operator<Rows<T>, Rows<T>> for Inspect<F>
where
    T: Clone + Send + 'static,
    F: FnMut(&Row<T>) + Send,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        batch.iter().for_each(&mut self.see);
        out.emit(batch);
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::Harness;

    #[test]
    fn every_row_is_seen_once_and_passed_on() {
        let mut seen = Vec::new();
        let see = Inspect::new(|row: &Row<i64>| seen.push(row.clone()));
        let mut harness: Harness<_, Rows<i64>> = Harness::new(see, 1);
        let batch = Rows::from(vec![Row::at(1, 10), Row::untimed(20)]);
        harness.push(batch.clone());
        let emitted = harness.take_data();
        drop(harness);
        assert_eq!(seen, batch.clone().into_vec());
        assert_eq!(emitted, vec![batch]);
    }
}
