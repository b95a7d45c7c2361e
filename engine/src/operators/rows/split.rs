//! Two streams out of one.

use crate::batch::Rows;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, SideTag};

/// Sends the rows that satisfy a predicate to the main output, the others to a side output.
#[derive(Clone, Debug)]
pub struct Split<T, F> {
    to_main: F,
    others: SideTag<Rows<T>>,
}

impl<T, F> Split<T, F> {
    /// An operator that keeps the rows for whose value `to_main` says so, and sends the
    /// others to `others`.
    pub const fn new(to_main: F, others: SideTag<Rows<T>>) -> Self {
        Self { to_main, others }
    }
}

impl<T, F> Operator<Rows<T>, Rows<T>> for Split<T, F>
where
    T: Clone + Send + 'static,
    F: FnMut(&T) -> bool + Send,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        let (main, others): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .partition(|row| (self.to_main)(&row.value));
        out.emit(main.into());
        out.emit_side(self.others, others.into());
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Row;
    use crate::operators::testing::Harness;

    #[test]
    fn each_row_goes_to_exactly_one_of_the_two_outputs() {
        let tag = SideTag::new(1);
        let mut harness: Harness<_, Rows<i64>> =
            Harness::new(Split::new(|value: &i64| *value > 2, tag), 1);
        harness.push(Rows::from_iter((1..=4).map(|n| Row::at(n, n))));
        assert_eq!(
            harness.take_data(),
            vec![Rows::from(vec![Row::at(3, 3), Row::at(4, 4)])]
        );
        assert_eq!(
            harness.take_side(tag),
            vec![Rows::from(vec![Row::at(1, 1), Row::at(2, 2)])]
        );
    }
}
