//! `filter`: the rows for which a condition holds.

use super::condition::input_and_condition;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::Filter;

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let (input, condition) = input_and_condition(wiring, consumer)?;
    let node = wiring.operator(consumer, &input, &[], move |_| {
        let condition = condition.clone();
        let keep = Box::new(move |batch: &_| Ok(condition.evaluate_predicate(batch)?));
        Ok(Box::new(Filter::new(keep)))
    });
    wiring.name(
        consumer.declared.name,
        input.behind(node, Port::Main, input.schema.clone()),
    );
    Ok(())
}
