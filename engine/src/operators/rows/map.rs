//! One row out for each row in.

use crate::batch::{Row, Rows};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

/// Replaces the value of each row; the event time stays.
#[derive(Clone, Debug)]
pub struct Map<F> {
    map: F,
}

impl<F> Map<F> {
    /// An operator that replaces each value by `map` of it.
    pub const fn new(map: F) -> Self {
        Self { map }
    }
}

impl<T, U, F> Operator<Rows<T>, Rows<U>> for Map<F>
where
    T: Clone + Send + 'static,
    U: Clone + Send + 'static,
    F: FnMut(T) -> U + Send,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<U>>,
    ) -> Result<Progress, OperatorError> {
        let mapped: Vec<Row<U>> = batch
            .into_vec()
            .into_iter()
            .map(|row| Row {
                value: (self.map)(row.value),
                event_time: row.event_time,
            })
            .collect();
        out.emit(mapped.into());
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{StreamElement, Watermark};
    use crate::operators::testing::Harness;

    #[test]
    fn each_value_is_replaced_and_its_event_time_stays() {
        let mut harness: Harness<_, Rows<String>> =
            Harness::new(Map::new(|value: i64| value.to_string()), 1);
        harness.push(Rows::from(vec![Row::at(5, 1), Row::untimed(2)]));
        harness.watermark::<Rows<i64>>(Watermark::idle(9));
        assert_eq!(
            harness.take(),
            vec![
                StreamElement::Data(Rows::from(vec![
                    Row::at(5, "1".to_owned()),
                    Row::untimed("2".to_owned())
                ])),
                StreamElement::Watermark(Watermark::idle(9)),
            ]
        );
    }
}
