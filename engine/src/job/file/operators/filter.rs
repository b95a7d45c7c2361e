//! `filter`: the rows for which a condition holds.

use serde::Deserialize;

use super::own_keys;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::Filter;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    r#where: String,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let input = wiring.input(consumer)?;
    let condition = wiring.condition(consumer, &["where"], &keys.r#where, &input.schema)?;
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
